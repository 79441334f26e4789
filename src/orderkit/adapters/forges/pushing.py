"""
Push one commit: all its files at once, or nothing, on top of the head that was read.

No limit of content counts a push. It names the id that the branch had, so it cannot replace what
somebody else pushed meanwhile. Nothing is fetched for it: git names a folder by its content, so the
folders follow from the names, modes and ids of the parent's files. The commit is built in memory
and sent as git's protocol does (``git help protocol-pack``), with credentials in a header only.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol, TypeVar

from ground.errors import (
    AccessError,
    ConflictError,
    MovedError,
    NotFoundError,
    OrderkitError,
    RemoteError,
    TooFastError,
    UnreachableError,
)
from ground.names import BlobSha, CommitSha, RepoId
from orderkit.adapters.forges.answers import (
    GarbledError,
    LostAnswerError,
    ServerError,
    foreign,
    refusal,
)
from orderkit.adapters.forges.calls import FORBIDDEN, MISSING, UNAUTHORIZED
from orderkit.adapters.forges.reading import Trees
from orderkit.adapters.forges.transport import ForgeTransport
from orderkit.adapters.forges.writing import WritableForge, Write, WriteFailure
from orderkit.ports.forge import EXECUTABLE, PLAIN, FileChange, SpecialFile, Written
from orderkit.ports.urgency import is_pushed

if TYPE_CHECKING:
    import pygit2

log = logging.getLogger(__name__)
_NOTHING = "0" * 40
_FOLDER = 0o040000


class StaleHeadError(ConflictError):
    """The branch moved before our commit; nothing was written."""


class PushDeclinedError(RemoteError):
    """The forge takes no such push to the branch, such as one of unsigned commits."""


class PushableForge(Protocol):
    """What a push asks of its forge."""

    @property
    def http(self) -> ForgeTransport: ...

    @property
    def identity(self) -> tuple[str, str]:
        """Name and address of our account, as the forge gives them to its commits."""
        ...

    def git_address(self, repo: RepoId) -> str:
        """Return the path of a repository for git, for the transport."""
        ...

    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None: ...

    def tree(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]: ...

    def special_files(
        self, repo: RepoId, commit: CommitSha
    ) -> Mapping[PurePosixPath, SpecialFile]: ...


@dataclass(frozen=True, slots=True)
class Push:
    """What is pushed; `head` is the commit that it is made on, None in an empty repository."""

    repo: RepoId
    branch: str
    head: CommitSha | None
    changes: Sequence[FileChange]
    message: str


def push_commit(forge: PushableForge, push: Push) -> CommitSha:
    """
    Put a commit with these changes on a branch.

    Raises:
        StaleHeadError: The branch is elsewhere by now; nothing was written.
        PushDeclinedError: The forge refuses such a push; nothing was written.
        AccessError: We may not push. NotFoundError: no such repository.
        OrderkitError: As the transport says; a lost answer leaves the outcome open.
    """
    commit, pack = _packed(push, _files(forge, push), forge.identity)
    # without report-status the answer would not say whether the branch was moved
    line = f"{push.head or _NOTHING} {commit} refs/heads/{push.branch}\0 report-status\n"
    body = _packet(line.encode()) + b"0000" + pack
    doing = f"push to {push.repo}"
    answer = forge.http.send("POST", f"{forge.git_address(push.repo)}/git-receive-pack", body=body)
    if answer.status in (UNAUTHORIZED, FORBIDDEN):
        raise AccessError(f"no right: {doing}: {answer.text}", hint="see docs/forge.md for rights")
    if answer.status == MISSING:
        raise NotFoundError(f"{doing}: {answer.text}", hint="orderkit doctor names missing rights")
    if not answer.ok:
        raise refusal(answer, doing)
    report = answer.body
    if f"ok refs/heads/{push.branch}\n".encode() in report:
        return commit
    if not report.strip():
        raise GarbledError(f"{doing}: the forge reports nothing of it")
    # Where the branch is tells a lost race from a rule, never the text.
    if push.head is None or forge.head(push.repo, push.branch) != push.head:
        raise StaleHeadError(f"{doing}: {foreign(report)}", hint="repeat the command")
    raise PushDeclinedError(f"{doing}: {foreign(report)}")


class PushedForge(WritableForge, PushableForge, Protocol):
    """What a write asks of its forge that may be a push."""

    @property
    def trees(self) -> Trees:
        """The cache of files."""
        ...

    def note_write(self, repo: RepoId, branch: str, old: CommitSha, new: CommitSha) -> None:
        """Remember that a head was replaced, in case the forge shows the old one for a while."""
        ...

    @property
    def declined(self) -> set[tuple[RepoId, str]]:
        """The branches that took no push of ours."""
        ...


PushedT = TypeVar("PushedT", bound=PushedForge)


@dataclass(slots=True)
class PushedWrite(Write[PushedT]):
    """A write that is pushed if that is wanted and the branch takes it."""

    def _push(self, changes: Sequence[FileChange]) -> Written | WriteFailure | None:
        """Push them, if that is wanted; None: not pushed, nor written."""
        place = self.repo, self.branch
        if not is_pushed() or self.head is None or place in self.forge.declined:
            return None
        paths = {change.path for change in changes}
        message = self._message(paths, int(time.time()))
        self.request_sent, self.refused = True, False
        # noted before it is sent: after a lost answer it may still be carried out
        self.doubtful.append(frozenset(paths))
        try:
            commit = push_commit(self.forge, Push(*place, self.head, changes, message))
        except (LostAnswerError, ServerError, GarbledError) as error:
            return self._find_commit() or WriteFailure(error, again=True)
        except (StaleHeadError, UnreachableError, MovedError, TooFastError) as error:
            self.doubtful.pop()  # the forge's own word, or it did nothing
            again = isinstance(error, (StaleHeadError, UnreachableError))
            return WriteFailure(error, again=again)
        except OrderkitError as error:
            found = self._find_commit()  # a proxy may have refused what the forge carried out
            self.doubtful.pop()
            if found is None:
                self.forge.declined.add(place)
                log.warning("%s goes through the API, which is slower: %s", self.repo, error)
            return found
        self._remember(changes, commit)
        return Written(commit, changed=True, parent=self.head)

    def _remember(self, changes: Sequence[FileChange], commit: CommitSha) -> None:
        """Cache the new commit's files, and that it replaced the head that was read."""
        self.forge.trees.follow(self.repo, self.head, commit, changes)
        if self.head is not None:
            self.forge.note_write(self.repo, self.branch, self.head, commit)


@dataclass(slots=True)
class _Folder:
    """A folder of the new commit: files and folders by their names."""

    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    folders: dict[str, _Folder] = field(default_factory=dict)
    is_new: bool = False
    """Whether a change is below it, so that the forge may not have it."""

    def below(self, parts: Iterable[str], *, is_new: bool) -> _Folder:
        """Return the folder of a path."""
        folder = self
        folder.is_new |= is_new
        for part in parts:
            folder = folder.folders.setdefault(part, _Folder())
            folder.is_new |= is_new
        return folder

    def write(self, repository: pygit2.Repository) -> str:
        """Return the id, and write what is new; "" for a folder without files."""
        import pygit2

        written = {name: folder.write(repository) for name, folder in self.folders.items()}
        below = {name: (_FOLDER, sha) for name, sha in written.items() if sha}
        if both := self.files.keys() & below.keys():
            raise PushDeclinedError(f"{min(both)} cannot be a file and a folder")
        entries = {**self.files, **below}
        if not entries:
            return ""
        ordered = sorted(entries.items(), key=_place)
        data = b"".join(
            f"{mode:o} {name}\0".encode() + bytes.fromhex(sha) for name, (mode, sha) in ordered
        )
        # every other folder is at the forge already: its id is enough, and nothing is fetched
        if self.is_new:
            return str(repository.write(pygit2.enums.ObjectType.TREE, data))
        return hashlib.sha1(b"tree %d\0" % len(data) + data).hexdigest()  # noqa: S324  git's name


def _place(entry: tuple[str, tuple[int, str]]) -> bytes:
    """Return what git orders the entries of a folder by."""
    name, (mode, _) = entry
    # git orders a folder as if its name ended in a slash
    return f"{name}/".encode() if mode == _FOLDER else name.encode()


def _files(forge: PushableForge, push: Push) -> dict[PurePosixPath, tuple[int, str]]:
    """Return mode and id of every file of the parent."""
    if push.head is None:
        return {}
    special = forge.special_files(push.repo, push.head)
    files = {path: (PLAIN, str(sha)) for path, sha in forge.tree(push.repo, push.head).items()}
    return files | {path: (entry.mode, str(entry.id)) for path, entry in special.items()}


def _packed(
    push: Push, files: dict[PurePosixPath, tuple[int, str]], identity: tuple[str, str]
) -> tuple[CommitSha, bytes]:
    """Return the id of the commit, and a pack with all its new objects."""
    import pygit2

    with tempfile.TemporaryDirectory() as name:
        repository, root = pygit2.init_repository(name, bare=True), _Folder(is_new=True)
        for change in push.changes:
            before = files.pop(change.path, None)
            folder = root.below(change.path.parts[:-1], is_new=True)
            if change.data is not None:
                is_executable = change.executable or (before is not None and before[0] & 0o111)
                mode = EXECUTABLE if is_executable else PLAIN
                folder.files[change.path.name] = mode, str(repository.create_blob(change.data))
        for path, entry in files.items():
            root.below(path.parts[:-1], is_new=False).files[path.name] = entry
        when = f"{int(time.time())} +0000"
        person = f"{identity[0]} <{identity[1]}> {when}"
        # no file is left: git's empty tree
        tree = root.write(repository) or str(repository.TreeBuilder().write())
        parent = f"parent {push.head}\n" if push.head else ""
        text = f"tree {tree}\n{parent}author {person}\ncommitter {person}\n\n{push.message}"
        commit = repository.write(pygit2.enums.ObjectType.COMMIT, text.encode())
        return CommitSha(str(commit)), _pack(repository)


def _pack(repository: pygit2.Repository) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        repository.pack(folder)
        (pack,) = Path(folder).glob("*.pack")
        return pack.read_bytes()


def _packet(line: bytes) -> bytes:
    return f"{len(line) + 4:04x}".encode() + line
