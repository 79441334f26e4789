"""
Commit several files at once on a branch, as Gitea's contents API does.

The commit is built on the head that was read; the branch moves by compare-and-swap, so a writer who
loses a race changes nothing and gets a `WriteError` (``race``). All checks happen before anything
is written; object files without a reference are harmless. It knows nothing of HTTP and users.

`EditedTree` changes some paths of a tree; only the folders on these paths are read and written. A
ledger has thousands of files and a commit changes one, so the cost of a commit depends on the depth
of its paths and the width of their folders, not on the size of the repository. Folders without
files disappear, as in git. It checks names, not whether a change is allowed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import pygit2
from pygit2.enums import FileMode

from orderkit_standins.forge import git_read


@dataclass(frozen=True, slots=True)
class _File:
    """A file, link or submodule that was put at a name."""

    id: pygit2.Oid
    mode: FileMode


class EditedTree:
    """A changed tree; nothing is written before `write`."""

    def __init__(self, repo: pygit2.Repository, tree: pygit2.Tree | None) -> None:
        self._repo, self._root = repo, _Folder(tree)

    def has_file(self, path: str) -> bool:
        """Say whether something that is not a folder is at a path now."""
        folder, name = self._parent(path)
        return folder is not None and folder.has_file(name)

    def put(self, path: str, blob: pygit2.Oid, mode: FileMode) -> None:
        """
        Put a blob at a path, instead of what is there and of files on the way.

        Raises:
            ValueError, pygit2.GitError, OSError: Git does not take such a path.
        """
        pygit2.Index().add(pygit2.IndexEntry(path, blob, mode))  # git's own rules for paths
        *way, name = path.split("/")
        folder = self._root
        for step in way:
            folder = folder.opened(step)
        folder.changed[name] = _File(blob, mode)

    def remove(self, path: str) -> None:
        """Take the file away from a path; a folder stays."""
        folder, name = self._parent(path)
        if folder is not None and folder.has_file(name):
            folder.changed[name] = None

    def write(self) -> pygit2.Oid:
        """Write the folders that changed and return the id of the root."""
        return self._root.write(self._repo)

    def _parent(self, path: str) -> tuple[_Folder | None, str]:
        *way, name = path.split("/")
        folder: _Folder | None = self._root
        for step in way:
            folder = folder.folder(step) if folder is not None else None
        return folder, name


@dataclass(slots=True)
class _Folder:
    """One folder: as it was, and what is else in it now (None: nothing)."""

    base: pygit2.Tree | None = None
    changed: dict[str, _Folder | _File | None] = field(default_factory=dict)

    def has_file(self, name: str) -> bool:
        if name in self.changed:
            return isinstance(self.changed[name], _File)
        entry = self._before(name)
        return entry is not None and not isinstance(entry, pygit2.Tree)

    def folder(self, name: str) -> _Folder | None:
        """Return the folder of that name for reading or changing, if there is one."""
        if name not in self.changed:
            entry = self._before(name)
            if not isinstance(entry, pygit2.Tree):
                return None
            self.changed[name] = _Folder(entry)
        now = self.changed[name]
        return now if isinstance(now, _Folder) else None

    def opened(self, name: str) -> _Folder:
        """Return the folder of that name; a new one if there is none."""
        folder = self.folder(name)
        if folder is None:
            folder = self.changed[name] = _Folder()
        return folder

    def write(self, repo: pygit2.Repository) -> pygit2.Oid:
        if self.base is not None and not self.changed:
            return self.base.id
        builder = repo.TreeBuilder(self.base) if self.base is not None else repo.TreeBuilder()
        for name, now in self.changed.items():
            entry_id = now.write(repo) if isinstance(now, _Folder) else None
            if entry_id is not None and entry_id != _EMPTY:
                builder.insert(name, entry_id, FileMode.TREE)
            elif isinstance(now, _File):
                builder.insert(name, now.id, now.mode)
            elif self._before(name) is not None:
                builder.remove(name)
        return builder.write()

    def _before(self, name: str) -> pygit2.Object | None:
        return self.base[name] if self.base is not None and name in self.base else None


_EMPTY = pygit2.Oid(hex="4b825dc642cb6eb9a060e54bf8d69288fbee4904")
"""The id of a tree with nothing in it."""


_IGNORED_BY_MACOS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters without width; HFS+ takes a name with them for the one without (git's utf8.c)."""
OperationName = Literal["create", "update", "delete"]
Problem = Literal["invalid", "stale", "missing", "no_branch", "exists", "race", "prefix", "outside"]
"""Why a write is refused; ``api.contents`` has the HTTP status of each."""


class WriteError(Exception):
    """The write is refused; nothing was written. `kind` says why, the text is Gitea's."""

    def __init__(self, kind: Problem, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class FileOperation:
    """One entry of a commit. `sha` empty: no check."""

    operation: OperationName
    path: str
    content: bytes = b""
    sha: str = ""
    executable: bool = False


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
    message: str
    author: Person
    committer: Person
    files: Sequence[FileOperation]


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The new commit, and what is now at each path (None: deleted)."""

    commit: str
    before: str
    """Where the branch was; empty if it is new."""
    entries: tuple[git_read.Entry | None, ...]


def commit_files(path: Path, request: CommitRequest) -> CommitResult:
    """
    Make one commit of all operations, or no commit.

    Identical content makes an empty commit, as in Gitea.

    Raises:
        WriteError: A check failed, or another writer moved the branch (``race``).
    """
    repo = git_read.open_repository(path)
    reference = _branch_to_move(repo, request.branch)
    head = reference.peel(pygit2.Commit) if reference is not None else None
    editor = _TreeEditor(repo, head.tree if head else None)
    entries = tuple(
        editor.apply(replace(operation, path=clean_path(operation.path)))
        for operation in request.files
    )
    new = repo.create_commit(
        None,
        request.author.signature(),
        request.committer.signature(),
        request.message.strip() + "\n",
        editor.write(),
        [head.id] if head else [],
    )
    before = str(reference.target) if reference is not None else ""
    _move(repo, request.branch, reference, new)
    return CommitResult(str(new), before, entries)


def create_branch(path: Path, name: str, commit_id: str) -> None:
    """
    Create a branch at a commit.

    Raises:
        WriteError: ``invalid`` name, ``exists``, or clashing ``prefix`` with another branch.
    """
    if not git_read.is_branch_name(name):
        raise WriteError("invalid", f"branch name is invalid [name: {name}]")
    repo = git_read.open_repository(path)
    for other in git_read.branch_names(repo):
        if other == name:
            raise WriteError("exists", f"branch already exists [name: {name}]")
        if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
            raise WriteError("prefix", f"branch name conflicts [name: {other}]")
    _move(repo, name, None, pygit2.Oid(hex=commit_id))


def delete_branch(path: Path, name: str, *, expected: str = "") -> bool:
    """
    Remove a branch. True if it existed.

    Raises:
        WriteError: ``race``: it is being written, or does not point to `expected`.
    """
    repo = git_read.open_repository(path)
    if git_read.branch_commit(repo, name) is None:
        return False
    reference = repo.references[git_read.HEADS + name]
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
    repo = git_read.open_repository(path)
    reference = repo.references.get(git_read.HEADS + branch)
    if reference is None or str(reference.target) != expected:
        raise _race(branch, reference, expected)
    _move(repo, branch, reference, pygit2.Oid(hex=new))


def _branch_to_move(repo: pygit2.Repository, branch: str) -> pygit2.Reference | None:
    """Return the branch; None if it is the first of an empty repository."""
    reference = repo.references.get(git_read.HEADS + branch)
    if reference is None and git_read.branch_names(repo):
        raise WriteError("no_branch", f"branch does not exist [name: {branch}]")
    if not git_read.is_branch_name(branch):
        raise WriteError("invalid", f"branch name is invalid [name: {branch}]")
    return reference


def _move(
    repo: pygit2.Repository, branch: str, reference: pygit2.Reference | None, new: pygit2.Oid
) -> None:
    """Compare and swap. The same event appears as several errors: all of them are a race."""
    name = git_read.HEADS + branch
    try:
        if reference is None:
            repo.references.create(name, new, force=False)
        else:
            reference.set_target(new)
    except (pygit2.GitError, ValueError, KeyError, OSError) as error:
        expected = str(reference.target) if reference is not None else "0" * 40
        raise _race(branch, repo.references.get(name), expected) from error
    # a repository that was renamed or deleted in the meantime
    if not Path(repo.path, "HEAD").exists():
        raise WriteError("race", f"cannot lock ref '{name}': the repository is gone")


def _race(branch: str, reference: pygit2.Reference | None, expected: str) -> WriteError:
    target = reference.target if reference is not None else "nothing"
    name = git_read.HEADS + branch
    return WriteError("race", f"cannot lock ref '{name}': is at {target} but expected {expected}")


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
    plain_parts = {_IGNORED_BY_MACOS.sub("", part).lower() for part in parts}
    if cleaned == "." or "\0" in path or ".git" in plain_parts:
        raise _malformed(path)
    return cleaned


class _TreeEditor:
    """Checks against the tree that was read, changes applied in order to a copy of it."""

    def __init__(self, repo: pygit2.Repository, tree: pygit2.Tree | None) -> None:
        self._repo, self._base = repo, tree
        self._edited = EditedTree(repo, tree)

    def apply(self, operation: FileOperation) -> git_read.Entry | None:
        """Check and apply one operation; return what is at the path afterwards."""
        old = self._at(operation.path)
        if operation.operation == "create":
            if self._edited.has_file(operation.path):
                text = f"repository file already exists [path: {operation.path}]"
                raise WriteError("invalid", text)
        else:
            _check_expected(operation, old)
        if operation.operation == "delete":
            self._edited.remove(operation.path)
            return None
        self._check_folders(operation.path)
        return self._write_blob(operation, old)

    def write(self) -> pygit2.Oid:
        """Write the tree and return its id."""
        return self._edited.write()

    def _at(self, path: str) -> git_read.Entry | None:
        return git_read.entry_at(self._base, path) if self._base is not None else None

    def _check_folders(self, path: str) -> None:
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            entry, is_path = self._at(folder), count == len(parts)
            if entry is None:
                return
            if is_path and entry.type == "dir":
                problem = "a directory exists where you're trying to create a file"
            elif entry.type == "symlink":
                problem = "a symbolic link exists where you're trying to create a subdirectory"
            elif not is_path and entry.type != "dir":
                problem = "a file exists where you're trying to create a subdirectory"
            else:
                continue
            raise WriteError("invalid", f"{problem} [path: {folder}]")

    def _write_blob(self, operation: FileOperation, old: git_read.Entry | None) -> git_read.Entry:
        was_executable = old is not None and old.mode == FileMode.BLOB_EXECUTABLE
        executable = operation.executable or was_executable
        mode = FileMode.BLOB_EXECUTABLE if executable else FileMode.BLOB
        blob = self._repo.create_blob(operation.content)
        try:
            self._edited.put(operation.path, blob, mode)
        except (pygit2.GitError, ValueError, OSError) as error:
            raise _malformed(operation.path) from error
        return git_read.Entry(operation.path, int(mode), str(blob))


def _check_expected(operation: FileOperation, old: git_read.Entry | None) -> None:
    if old is None:
        raise WriteError("missing", f"object does not exist [id: , rel_path: {operation.path}]")
    if old.type == "dir":
        text = "a directory exists where you're trying to create a file"
        raise WriteError("invalid", f"{text} [path: {operation.path}]")
    if operation.sha and operation.sha != old.id:
        text = f"sha does not match [given: {operation.sha}, expected: {old.id}]"
        raise WriteError("stale", text)


def _malformed(path: str) -> WriteError:
    return WriteError("invalid", f"path contains a malformed path component [path: {path}]")
