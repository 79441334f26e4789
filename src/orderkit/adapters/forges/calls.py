"""
What the parts of every forge's client share: fields of an answer, and files of commits.

`ForgeCalls` has the forge's address. `object_in`, `text_in` and the like read an object or a field
of an answer. `ForgeClient` says who we are, and closes the client.

`Trees` is a cache of the files of commits: a commit never changes, and most folders of the next are
the same. A small repository needs one request. Of a large one (more than a page of entries, such as
a ledger) only the folders that differ from the last commit are requested: git names a folder by its
content. The cache is bounded: some commits, and one commit's folders of a few large repositories.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType, TracebackType
from typing import Any, Self

from ground.errors import NotFoundError
from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.adapters.forges.answers import OTHER_FORGE, ForgeResponse, GarbledError, refusal
from orderkit.adapters.forges.transport import ForgeTransport
from orderkit.ports.forge import ForgeUser
from orderkit.ports.revisions import PLAIN, SUBMODULE, FileChange, FileRevision, SpecialFile
from orderkit.ports.signatures import Signatures
from orderkit.ports.workflows import ForgeWorkflows

Files = Mapping[PurePosixPath, BlobSha]
Special = Mapping[PurePosixPath, SpecialFile]
_FrozenFiles = MappingProxyType[PurePosixPath, BlobSha]
LARGE = 1_000
"""Entries from which a repository counts as large: then only changed folders are read."""
_COMMITS_KEPT, _LARGE_KEPT, _LARGE_COMMITS_KEPT = 64, 4, 2
_FILES_KEPT, _FILE_MAX_BYTES = 2_000, 64 * 1024
"""A file is kept twice: by its commit, and by its own id, which other commits have too."""
_NO_FILES: _FrozenFiles = MappingProxyType({})
_ATTRIBUTES = ".gitattributes"
_ROOT = PurePosixPath()
_FOLDER = 0o040000
_MOST_FOLDERS = 40
"""Folders requested at most: beyond that, reading all pages of the tree is faster."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """An entry of a tree: its path from there, and its id."""

    path: str
    sha: str
    mode: int

    @property
    def is_folder(self) -> bool:
        return self.mode == _FOLDER

    @property
    def is_file(self) -> bool:
        return self.mode not in (_FOLDER, SUBMODULE)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with its id, and all that is below it by its full path."""

    sha: str
    files: Files
    special: Special


def special_in(entries: Iterable[TreeEntry]) -> Special:
    """Return those of the entries that are neither folders nor plain files."""
    return {
        PurePosixPath(entry.path): SpecialFile(entry.mode, entry.sha)
        for entry in entries
        if not entry.is_folder and entry.mode != PLAIN
    }


class TooManyError(Exception):
    """Too much of the commit is new to read it folder by folder."""


@dataclass(slots=True)
class Trees:
    """The cache for one forge. Safe to use from several threads."""

    _commits: OrderedDict[tuple[RepoId, CommitSha], _FrozenFiles] = field(
        default_factory=OrderedDict
    )
    _special: dict[tuple[RepoId, CommitSha], Special] = field(default_factory=dict)
    """Of the commits in the cache, those of which it is known."""
    _large: OrderedDict[RepoId, dict[PurePosixPath, Folder]] = field(default_factory=OrderedDict)
    _texts: OrderedDict[tuple[RepoId, str, PurePosixPath], FileRevision] = field(
        default_factory=OrderedDict
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def file(self, repo: RepoId, commit: str, path: PurePosixPath) -> FileRevision | None:
        """Return a file of a commit that is in the cache, maybe from another commit, or None."""
        key = repo, CommitSha(commit)
        with self._lock:
            kept = self._texts.get((repo, commit, path))
            # the content of a link is no file's
            if kept or path in self._special.get(key, {path: None}):
                return kept
            blob = self._commits.get(key, _NO_FILES).get(path, "")
            return self._texts.get((repo, blob, path))

    def lacks(self, repo: RepoId, commit: str, path: PurePosixPath) -> bool:
        """Say whether a commit is in the cache and has no such file."""
        files = self.remembered(repo, CommitSha(commit))
        return files is not None and path not in files

    def keep_file(self, repo: RepoId, commit: str, file: FileRevision) -> None:
        """Cache a file of a commit, unless it is large."""
        if len(file.data) <= _FILE_MAX_BYTES:
            with self._lock:
                self._texts[repo, commit, file.path] = self._texts[repo, file.sha, file.path] = file
                while len(self._texts) > _FILES_KEPT:
                    self._texts.popitem(last=False)

    def remembered(self, repo: RepoId, commit: CommitSha) -> _FrozenFiles | None:
        """Return the files of a commit that is in the cache, or None."""
        with self._lock:
            return self._commits.get((repo, commit))

    def remembered_special(self, repo: RepoId, commit: CommitSha) -> Special | None:
        """Return the special files of a commit, or None if they are not in the cache."""
        with self._lock:
            return self._special.get((repo, commit))

    def is_large(self, repo: RepoId) -> bool:
        """Say whether folders of the repository are cached."""
        with self._lock:
            return repo in self._large

    def keep(self, repo: RepoId, commit: CommitSha, entries: Iterable[TreeEntry]) -> Files:
        """Cache a commit of a small repository."""
        entries = tuple(entries)
        files = {PurePosixPath(e.path): BlobSha(e.sha) for e in entries if e.is_file}
        return self._remember(repo, commit, files, special_in(entries))

    def keep_large(self, repo: RepoId, commit: CommitSha, entries: Iterable[TreeEntry]) -> Files:
        """Cache a commit of a large repository with all its folders."""
        folders, lists, entries = {}, _Lists(), tuple(entries)
        special = special_in(entries)
        below: dict[PurePosixPath, dict[PurePosixPath, SpecialFile]] = {}
        for path, file in special.items():
            for parent in path.parents:
                below.setdefault(parent, {})[path] = file
        for entry in entries:
            path = PurePosixPath(entry.path)
            if entry.is_folder:
                files = lists.of(entry.path)[0]
                folders[path] = Folder(entry.sha, files, below.get(path, {}))
            if not entry.is_file:
                continue
            for files in lists.of(entry.path.rpartition("/")[0]):
                files[path] = BlobSha(entry.sha)
        self._keep_folders(repo, folders)
        return self._remember(repo, commit, lists.of("")[0], special)

    def walk(
        self,
        repo: RepoId,
        commit: CommitSha,
        children: Callable[[PurePosixPath, str], Iterable[TreeEntry]],
    ) -> Files:
        """
        Read a commit of a large repository; only folders that are not cached are requested.

        Args:
            children: Returns the direct entries of a folder, given its path and its id; of the
                root, the commit's.

        Raises:
            TooManyError: Too many folders are not cached.
        """
        with self._lock:
            folders = self._large.get(repo, {})
        walk = _Walk(folders, children, dict(folders))
        root = walk.folder(_ROOT, commit)
        self._keep_folders(repo, walk.folders)
        return self._remember(repo, commit, dict(root.files), root.special)

    def follow(
        self,
        repo: RepoId,
        parent: CommitSha | None,
        commit: CommitSha,
        changes: Sequence[FileChange],
    ) -> None:
        """Cache the commit of our own write, if its parent is cached; None: it has no parent."""
        parent_files = self.remembered(repo, parent) if parent else _NO_FILES
        if parent_files is None:
            return
        files = parent_files.copy()  # `dict(...)` would hash every path again
        for change in changes:
            if change.data is None:
                files.pop(change.path, None)
            else:
                files[change.path] = blob_sha(change.data, commit)
        special = self.remembered_special(repo, parent) if parent else {}
        # A forge keeps the mode of a file that it changes, or not: then nothing is known.
        is_known = special is not None and not any(
            change.executable or change.path in special for change in changes
        )
        kept = special if is_known else None
        self._remember(repo, commit, files, kept)
        for change in changes if is_known else ():
            # by these a forge may store something else, such as a pointer to large content
            is_filtered = any(folder / _ATTRIBUTES in files for folder in change.path.parents)
            if change.data is not None and not is_filtered:
                self.keep_file(
                    repo, commit, FileRevision(change.path, change.data, files[change.path])
                )

    def _keep_folders(self, repo: RepoId, folders: dict[PurePosixPath, Folder]) -> None:
        with self._lock:
            self._large[repo] = folders
            self._large.move_to_end(repo)
            if len(self._large) > _LARGE_KEPT:
                self._large.popitem(last=False)

    def _remember(
        self,
        repo: RepoId,
        commit: CommitSha,
        files: dict[PurePosixPath, BlobSha],
        special: Special | None = None,
    ) -> Files:
        frozen_files = MappingProxyType(files)
        with self._lock:
            self._commits[repo, commit] = frozen_files
            self._commits.move_to_end((repo, commit))
            if special is not None:
                self._special[repo, commit] = special
            if repo in self._large:  # keep only the newest commits, of main and a branch
                for key in [key for key in self._commits if key[0] == repo][:-_LARGE_COMMITS_KEPT]:
                    del self._commits[key]
                    self._special.pop(key, None)
            if len(self._commits) > _COMMITS_KEPT:
                self._special.pop(self._commits.popitem(last=False)[0], None)
        return frozen_files


class _Lists:
    """Collects the files of each folder; a file belongs to every folder above it."""

    def __init__(self) -> None:
        self._by_folder: dict[str, list[dict[PurePosixPath, BlobSha]]] = {"": [{}]}

    def of(self, folder: str) -> list[dict[PurePosixPath, BlobSha]]:
        """Return the files of a folder, then those of its parents; the caller adds to them."""
        lists = self._by_folder.get(folder)
        if lists is None:
            lists = self._by_folder[folder] = [{}, *self.of(folder.rpartition("/")[0])]
        return lists


@dataclass(slots=True)
class _Walk:
    """One walk through a commit; cached folders are not requested."""

    remembered: Mapping[PurePosixPath, Folder]
    children: Callable[[PurePosixPath, str], Iterable[TreeEntry]]
    folders: dict[PurePosixPath, Folder]
    """The new cache. A folder that was deleted may stay: its id still determines its content."""
    requests: int = 0

    def folder(self, path: PurePosixPath, sha: str) -> Folder:
        self.requests += 1
        if self.requests > _MOST_FOLDERS:
            raise TooManyError
        files: dict[PurePosixPath, BlobSha] = {}
        special: dict[PurePosixPath, SpecialFile] = {}
        for entry in self.children(path, sha):
            entry_path = path / entry.path
            if entry.is_folder:
                below = self._below(entry_path, entry.sha)
                files.update(below.files)
                special.update(below.special)
                continue
            if entry.is_file:
                files[entry_path] = BlobSha(entry.sha)
            if entry.mode != PLAIN:
                special[entry_path] = SpecialFile(entry.mode, entry.sha)
        return Folder(sha, files, special)

    def _below(self, path: PurePosixPath, sha: str) -> Folder:
        folder = self.remembered.get(path)
        if folder is None or folder.sha != sha:
            folder = self.folders[path] = self.folder(path, sha)
        return folder


class ForgeClient:
    """What every forge's client has. Safe to use from threads."""

    _http: ForgeTransport
    declined: set[tuple[RepoId, str]]
    """The branches that took no push of ours."""

    def _set_up(self, http: ForgeTransport, source: str, signatures: Signatures | None) -> None:
        self._http, self._source, self.signatures = http, source, signatures
        self._trees, self.declined = Trees(), set()

    @property
    def trees(self) -> Trees:
        """The cache of files."""
        return self._trees

    @property
    def workflows(self) -> ForgeWorkflows | None:
        """None: this forge has none; see the port."""
        return None

    @property
    def credentials_source(self) -> str:
        """Where our credentials came from; see the port."""
        return self._source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def repository_named(self, full_name: str) -> RepoId | None:
        """Return the repository that the forge itself calls so; see the port."""
        return RepoId.parse(full_name)

    def read_ahead(self, repo: RepoId, paths: Iterable[PurePosixPath], commit: CommitSha) -> None:
        """Do nothing: `read` asks for each file; see the port."""

    def remember(self) -> None:
        """Ask each thing once from now on; see the port."""
        self._http.remember()

    def close(self) -> None:
        """Close idle connections. Idempotent; the client stays usable."""
        self._http.close()


PAGE = 50
"""The most that Gitea gives as it is installed (`max_response_items`)."""
PASSES = 3
"""How many times a list is read if it changes between its pages."""
OK, CREATED, BAD, UNAUTHORIZED, FORBIDDEN, MISSING, NOT_NOW, CONFLICT, INVALID = (
    200, 201, 400, 401, 403, 404, 405, 409, 422,
)  # fmt: skip
Found = Mapping[str, Any]
"""A JSON object of the forge."""


class ForgeCalls(ForgeClient):
    """The shared part: the forge's address, and conversion of answers to values or errors."""

    @property
    def base_url(self) -> str:
        """The address of the forge, without a final slash."""
        return self._http.base_url

    def _object(self, path: str, doing: str) -> Found:
        item = self._optional(path, doing)
        if item is None:
            raise NotFoundError(f"{doing}: 404", hint=OTHER_FORGE)
        return item

    def _optional(self, path: str, doing: str) -> Found | None:
        answer = self._http.get(path)
        if answer.status == MISSING:
            return None
        return object_in(checked(answer, doing), doing)


def checked(answer: ForgeResponse, doing: str) -> ForgeResponse:
    """
    Return the answer if it is a success.

    Raises:
        GarbledError: An HTML page: something between us and the forge answered.
        OrderkitError: The forge refused the request; the class says why.
    """
    if not answer.ok:
        raise refusal(answer, doing)
    if answer.headers.get("content-type", "").startswith("text/html"):
        raise GarbledError(
            f"{doing}: a page came back without JSON: {answer.text}",
            hint=OTHER_FORGE,
        )
    return answer


def done(answer: ForgeResponse, doing: str) -> bool:
    """
    Return True if the answer is a success.

    Raises:
        OrderkitError: The forge refused the request; the class says why.
    """
    return checked(answer, doing).ok


def object_in(answer: ForgeResponse, doing: str) -> Found:
    """
    Return the JSON object of an answer.

    Raises:
        GarbledError: The answer is not an object.
    """
    document = answer.json()
    if not isinstance(document, dict):
        raise GarbledError(f"{doing}: the forge answered no object", hint=OTHER_FORGE)
    return document


def text_in(document: Any, key: str) -> str:
    """
    Return a text field that must exist.

    Raises:
        GarbledError: It is missing or empty.
    """
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, str) or not value:
        raise GarbledError(f"the forge's answer has no {key}", hint=OTHER_FORGE)
    return value


def number_in(document: Any, key: str) -> int:
    """
    Return a number field that must exist.

    Raises:
        GarbledError: It is missing.
    """
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise GarbledError(f"the forge's answer has no {key}", hint=OTHER_FORGE)
    return value


def user_in(document: Found) -> ForgeUser:
    """
    Return the ``user`` of a document.

    GitHub names an App's account a bot; Gitea gives the account of its pipelines a negative id.

    Raises:
        GarbledError: It is missing.
    """
    user: Any = document.get("user")
    number, login = number_in(user, "id"), text_in(user, "login")
    return ForgeUser(number, login, is_machine=user.get("type") == "Bot" or number < 0)


def list_in(items: Any) -> list[Found]:
    """
    Return a list of objects.

    Raises:
        GarbledError: It is not a list.
    """
    if not isinstance(items, list):
        raise GarbledError("the forge's answer is not a list", hint=OTHER_FORGE)
    return [item for item in items if isinstance(item, dict)]
