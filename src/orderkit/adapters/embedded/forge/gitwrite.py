"""
Commit several files at once on a branch, as Gitea's contents API does.

The commit is built on the head that was read; the branch moves by compare-and-swap, so a
writer who loses a race changes nothing and is told (`RaceError`). All checks happen before
anything is written; object files without a reference are harmless. It knows nothing of
HTTP and users.

Called by ``api.contents`` and ``api.branches``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import pygit2
from pygit2.enums import FileMode

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.gittree import EditedTree

OperationName = Literal["create", "update", "upload", "rename", "delete"]
OPERATIONS = frozenset({"create", "update", "upload", "rename", "delete"})
Problem = Literal[
    "invalid", "stale", "no_sha", "missing", "no_branch", "exists", "race", "prefix", "outside"
]
"""Why a write is refused; ``behaviour`` has the status of each."""


class WriteError(Exception):
    """The write is refused; nothing was written. `kind` says why, the text is Gitea's."""

    def __init__(self, kind: Problem, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class FileOperation:
    """One entry of a commit. `sha` empty: no check. `from_path` empty: not moved."""

    operation: OperationName
    path: str
    content: bytes = b""
    sha: str = ""
    from_path: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer with the time of the act."""

    name: str
    email: str
    when: datetime

    def signature(self) -> pygit2.Signature:
        """Return it as git stores it."""
        offset = self.when.utcoffset()
        minutes = int(offset.total_seconds() // 60) if offset else 0
        return pygit2.Signature(self.name, self.email, int(self.when.timestamp()), minutes)


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """What to commit, where, and in whose name."""

    branch: str
    new_branch: str
    message: str
    author: Person
    committer: Person
    files: Sequence[FileOperation]
    needs_sha: bool = False
    """An update or delete without `sha` is refused, unless the commit makes a new branch."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The new commit, and what is now at each path (None: deleted)."""

    commit: str
    branch: str
    before: str
    """Where the branch was; empty if it is new."""
    entries: tuple[gitread.Entry | None, ...]
    root: bool


def commit_files(path: Path, request: CommitRequest) -> CommitResult:
    """
    Make one commit of all operations, or none.

    Identical content makes an empty commit, as in Gitea.

    Raises:
        WriteError: A check failed, or another writer moved the branch (``race``).
    """
    repo = gitread.open_repository(path)
    target = request.new_branch or request.branch
    head, seen = _base(repo, request, target)
    operations = [_cleaned(operation) for operation in request.files]
    strict = request.needs_sha and target == request.branch
    editor = _TreeEditor(repo, head.tree if head else None, needs_sha=strict)
    entries = tuple(editor.apply(operation) for operation in operations)
    message = request.message.strip() + "\n"
    new = repo.create_commit(
        None,
        request.author.signature(),
        request.committer.signature(),
        message,
        editor.write(),
        [head.id] if head else [],
    )
    before = str(seen.target) if seen is not None else ""
    _move(repo, target, seen, new)
    return CommitResult(str(new), target, before, entries, root=head is None)


def create_branch(path: Path, name: str, commit_id: str) -> None:
    """
    Create a branch at a commit.

    Raises:
        WriteError: ``invalid`` name, ``exists``, or clashing ``prefix`` with another branch.
    """
    if not gitread.is_branch_name(name):
        raise WriteError("invalid", f"branch name is invalid [name: {name}]")
    repo = gitread.open_repository(path)
    for other in gitread.branch_names(repo):
        if other == name:
            raise WriteError("exists", f"branch already exists [name: {name}]")
        if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
            raise WriteError("prefix", f"branch name conflicts [name: {other}]")
    _move(repo, name, None, pygit2.Oid(hex=commit_id))


def delete_branch(path: Path, name: str, *, expected: str = "") -> bool:
    """
    Remove a branch. True if it was there.

    Raises:
        WriteError: ``race``: it is being written, or does not point to `expected`.
    """
    repo = gitread.open_repository(path)
    if gitread.branch_commit(repo, name) is None:
        return False
    reference = repo.references[gitread.HEADS + name]
    if expected and str(reference.target) != expected:
        raise WriteError("race", f"cannot lock ref 'refs/heads/{name}': it moved")
    try:
        reference.delete()
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        raise WriteError("race", f"cannot lock ref 'refs/heads/{name}': {error}") from error
    return True


def move_branch(path: Path, branch: str, expected: str, new: str) -> None:
    """
    Point a branch from one commit to another.

    Raises:
        WriteError: ``race``: it does not point to `expected` any more.
    """
    repo = gitread.open_repository(path)
    seen = repo.references.get(gitread.HEADS + branch)
    if seen is None or str(seen.target) != expected:
        found = seen.target if seen is not None else "nothing"
        raise WriteError(
            "race",
            f"cannot lock ref '{gitread.HEADS}{branch}': is at {found} but expected {expected}",
        )
    if new != expected:
        _move(repo, branch, seen, pygit2.Oid(hex=new))


def _base(
    repo: pygit2.Repository, request: CommitRequest, target: str
) -> tuple[pygit2.Commit | None, pygit2.Reference | None]:
    """Return the parent commit and the reference to move (None: to create)."""
    reference = repo.references.get(gitread.HEADS + request.branch)
    if reference is None and gitread.branch_names(repo):
        raise WriteError("no_branch", f"branch does not exist [name: {request.branch}]")
    if not gitread.is_branch_name(target):
        raise WriteError("invalid", f"branch name is invalid [name: {target}]")
    head = reference.peel(pygit2.Commit) if reference is not None else None
    if target == request.branch:
        return head, reference
    if repo.references.get(gitread.HEADS + target) is not None:
        raise WriteError("exists", f"branch already exists [name: {target}]")
    return head, None


def _move(
    repo: pygit2.Repository, branch: str, seen: pygit2.Reference | None, new: pygit2.Oid
) -> None:
    """
    Compare and swap. The same event appears as several errors: all of them are a race.

    A repository that was renamed or deleted meanwhile is one too: what was written went nowhere.
    """
    name = gitread.HEADS + branch
    try:
        if seen is None:
            repo.references.create(name, new, force=False)
        else:
            seen.set_target(new)
    except (pygit2.GitError, ValueError, KeyError, OSError) as error:
        expected = str(seen.target) if seen is not None else "0" * 40
        now = repo.references.get(name)
        raise WriteError(
            "race",
            f"cannot lock ref '{name}': is at {now.target if now else 'nothing'}"
            f" but expected {expected}",
        ) from error
    if not Path(repo.path, "HEAD").exists():
        raise WriteError("race", f"cannot lock ref '{name}': the repository is gone")


def _cleaned(operation: FileOperation) -> FileOperation:
    path = clean_path(operation.path)
    from_path = clean_path(operation.from_path) if operation.from_path else path
    return FileOperation(operation.operation, path, operation.content, operation.sha, from_path)


def clean_path(path: str) -> str:
    """
    Return a path with its dots resolved.

    Raises:
        WriteError: ``invalid``: empty, or a ``.git`` component; ``outside``: absolute, or
            above the root (Gitea's git stops there, which is a 500).
    """
    cleaned = posixpath.normpath(path)
    parts = cleaned.split("/")
    if cleaned.startswith("/") or parts[0] == "..":
        raise WriteError("outside", f"'{path}' is outside repository")
    if cleaned == "." or "\0" in path or any(part.lower() == ".git" for part in parts):
        raise WriteError("invalid", f"path contains a malformed path component [path: {path}]")
    return cleaned


class _TreeEditor:
    """Checks against the tree that was read, changes applied in order to a copy of it."""

    def __init__(
        self, repo: pygit2.Repository, tree: pygit2.Tree | None, *, needs_sha: bool
    ) -> None:
        self._repo = repo
        self._base = tree
        self._needs_sha = needs_sha
        self._edited = EditedTree(repo, tree)

    def apply(self, operation: FileOperation) -> gitread.Entry | None:
        """Check and apply one operation; return what is at the path afterwards."""
        old = self._at(operation.from_path)
        match operation.operation:
            case "create":
                self._refuse_existing(operation.path)
            case "update" | "rename" | "delete":
                self._check_seen(operation, old)
        if operation.operation == "delete":
            self._edited.remove(operation.path)
            return None
        self._check_way(operation)
        if operation.from_path != operation.path:
            self._refuse_existing(operation.path)
            self._edited.remove(operation.from_path)
        return self._put(operation, old)

    def write(self) -> pygit2.Oid:
        """Write the tree and return its id."""
        return self._edited.write()

    def _at(self, path: str) -> gitread.Entry | None:
        return gitread.entry_at(self._base, path) if self._base is not None else None

    def _refuse_existing(self, path: str) -> None:
        if self._edited.has_file(path):
            raise WriteError("invalid", f"repository file already exists [path: {path}]")

    def _check_seen(self, operation: FileOperation, old: gitread.Entry | None) -> None:
        where = operation.from_path
        if old is None:
            raise WriteError("missing", f"object does not exist [id: , rel_path: {where}]")
        if old.type == "dir":
            raise WriteError(
                "invalid",
                f"a directory exists where you're trying to create a file [path: {where}]",
            )
        if operation.sha and operation.sha != old.id:
            raise WriteError(
                "stale", f"sha does not match [given: {operation.sha}, expected: {old.id}]"
            )
        if not operation.sha and self._needs_sha and operation.operation != "rename":
            raise WriteError("no_sha", "a SHA or commit ID must be provided to change a file")

    def _check_way(self, operation: FileOperation) -> None:
        parts = operation.path.split("/")
        for count in range(1, len(parts) + 1):
            way = "/".join(parts[:count])
            found = self._at(way)
            if found is None:
                return
            last = count == len(parts)
            if last and found.type == "dir":
                what = "a directory exists where you're trying to create a file"
            elif found.type == "symlink":
                what = "a symbolic link exists where you're trying to create a subdirectory"
            elif not last and found.type != "dir":
                what = "a file exists where you're trying to create a subdirectory"
            else:
                continue
            raise WriteError("invalid", f"{what} [path: {way}]")

    def _put(self, operation: FileOperation, old: gitread.Entry | None) -> gitread.Entry:
        executable = old is not None and old.mode == FileMode.BLOB_EXECUTABLE
        mode = FileMode.BLOB_EXECUTABLE if executable else FileMode.BLOB
        if operation.operation == "rename" and old is not None:
            blob = pygit2.Oid(hex=old.id)
        else:
            blob = self._repo.create_blob(operation.content)
        try:
            self._edited.put(operation.path, blob, mode)
        except (pygit2.GitError, ValueError, OSError) as error:
            raise WriteError(
                "invalid",
                f"path contains a malformed path component [path: {operation.path}]",
            ) from error
        return gitread.Entry(operation.path, int(mode), str(blob))
