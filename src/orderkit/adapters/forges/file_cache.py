"""
A cache of the files of commits: a commit never changes, and most folders of the next are the same.

A small repository needs one request. Of a large one (more than a page of entries, such as a ledger)
only the folders that differ from the last commit are requested: git names a folder by its content.
The cache is bounded: some commits, and one commit's folders of a few large repositories.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType

from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.ports.revisions import PLAIN, SUBMODULE, FileChange, FileRevision, SpecialFile

Files = Mapping[PurePosixPath, BlobSha]
Special = Mapping[PurePosixPath, SpecialFile]
_FrozenFiles = MappingProxyType[PurePosixPath, BlobSha]
LARGE = 1_000
"""Entries from which a repository counts as large: then only changed folders are read."""
_COMMITS_KEPT, _LARGE_KEPT = 64, 4
_FILES_KEPT, _FILE_MAX_BYTES = 1_000, 64 * 1024
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
        """Return a file of a commit that is in the cache, or None."""
        with self._lock:
            return self._texts.get((repo, commit, path))

    def keep_file(self, repo: RepoId, commit: str, file: FileRevision) -> None:
        """Cache a file of a commit, unless it is large."""
        if len(file.data) <= _FILE_MAX_BYTES:
            with self._lock:
                self._texts[repo, commit, file.path] = file
                if len(self._texts) > _FILES_KEPT:
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
        parent: CommitSha,
        commit: CommitSha,
        changes: Sequence[FileChange],
    ) -> None:
        """Cache the commit of our own write, if its parent is cached."""
        parent_files = self.remembered(repo, parent)
        if parent_files is None:
            return
        files = parent_files.copy()  # `dict(...)` would hash every path again
        for change in changes:
            if change.data is None:
                files.pop(change.path, None)
            else:
                files[change.path] = blob_sha(change.data, commit)
        special = self.remembered_special(repo, parent)
        # A forge keeps the mode of a file that it changes, or not: then nothing is known.
        is_known = special is not None and not any(
            change.executable or change.path in special for change in changes
        )
        kept = special if is_known else None
        self._remember(repo, commit, files, kept)

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
            if special is not None:
                self._special[repo, commit] = special
            if repo in self._large:  # keep only the newest commit of a large repository
                for key in [key for key in self._commits if key[0] == repo and key[1] != commit]:
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
