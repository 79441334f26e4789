"""
The files of commits, remembered: a commit never changes, and most folders of the next are the same.

A small repository is one request. Of a large one (more than a page of entries, as a ledger
has) only the folders that differ from the last commit seen are asked for again: git names a
folder by what is in it. What is kept is bounded: some commits, and one commit's folders of
a few large repositories.

Called by ``reading``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType

from orderkit.core.names import BlobSha, CommitSha, RepoId

Files = Mapping[PurePosixPath, BlobSha]
_FrozenFiles = MappingProxyType[PurePosixPath, BlobSha]
_COMMITS_KEPT, _LARGE_KEPT = 64, 4
_ROOT = PurePosixPath()
_MOST_FOLDERS = 40
"""More folders than this to ask for: reading everything page by page is quicker."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """An entry of a folder, or of everything below it: path from there, id."""

    path: str
    sha: str
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as the forge names it, with all files below it by their whole path."""

    sha: str
    files: Files


class TooManyError(Exception):
    """More of the commit is new than is worth asking for folder by folder."""


@dataclass(slots=True)
class Trees:
    """What is remembered, for one forge. Safe to use from threads."""

    _commits: OrderedDict[tuple[RepoId, CommitSha], _FrozenFiles] = field(
        default_factory=OrderedDict
    )
    _large: OrderedDict[RepoId, dict[PurePosixPath, Folder]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def remembered(self, repo: RepoId, commit: CommitSha) -> _FrozenFiles | None:
        """Return the files of a commit that was read before."""
        with self._lock:
            return self._commits.get((repo, commit))

    def is_large(self, repo: RepoId) -> bool:
        """Say whether folders of the repository are remembered."""
        with self._lock:
            return repo in self._large

    def keep(self, repo: RepoId, commit: CommitSha, entries: Iterable[TreeEntry]) -> Files:
        """Remember a small repository's commit."""
        files = {PurePosixPath(e.path): BlobSha(e.sha) for e in entries if not e.is_folder}
        return self._remember(repo, commit, files)

    def keep_large(self, repo: RepoId, commit: CommitSha, entries: Iterable[TreeEntry]) -> Files:
        """Remember a large repository's commit with all its folders."""
        folders, lists = {}, _Lists()
        for entry in entries:
            path = PurePosixPath(entry.path)
            if entry.is_folder:
                folders[path] = Folder(entry.sha, lists.of(entry.path)[0])
                continue
            for files in lists.of(entry.path.rpartition("/")[0]):
                files[path] = BlobSha(entry.sha)
        self._keep_folders(repo, folders)
        return self._remember(repo, commit, lists.of("")[0])

    def walk(
        self, repo: RepoId, commit: CommitSha, children: Callable[[str], Iterable[TreeEntry]]
    ) -> Files:
        """
        Read a large repository's commit, asking for the folders that are not known.

        Args:
            children: Returns what is directly in a folder, named by commit or folder id.

        Raises:
            TooManyError: Too many of them are not.
        """
        with self._lock:
            folders = self._large.get(repo, {})
        walk = _Walk(folders, children, dict(folders))
        files = walk.files(_ROOT, commit)
        self._keep_folders(repo, walk.folders)
        return self._remember(repo, commit, files)

    def follow(
        self,
        repo: RepoId,
        parent: CommitSha,
        commit: CommitSha,
        changed: Mapping[PurePosixPath, BlobSha | None],
    ) -> None:
        """Remember a commit that one write of ours made of one that is known; None: a file gone."""
        parent_files = self.remembered(repo, parent)
        if parent_files is None:
            return
        files = parent_files.copy()  # as a whole: `dict` would take every path's hash again
        for path, sha in changed.items():
            if sha is None:
                files.pop(path, None)
            else:
                files[path] = sha
        self._remember(repo, commit, files)

    def _keep_folders(self, repo: RepoId, folders: dict[PurePosixPath, Folder]) -> None:
        with self._lock:
            self._large[repo] = folders
            self._large.move_to_end(repo)
            if len(self._large) > _LARGE_KEPT:
                self._large.popitem(last=False)

    def _remember(
        self, repo: RepoId, commit: CommitSha, files: dict[PurePosixPath, BlobSha]
    ) -> Files:
        frozen_files = MappingProxyType(files)
        with self._lock:
            self._commits[repo, commit] = frozen_files
            if repo in self._large:  # of what is large only the newest is worth its memory
                for key in [key for key in self._commits if key[0] == repo and key[1] != commit]:
                    del self._commits[key]
            if len(self._commits) > _COMMITS_KEPT:
                self._commits.popitem(last=False)
        return frozen_files


class _Lists:
    """The files of each folder, gathered: a file is one of every folder that it is below."""

    def __init__(self) -> None:
        self._by_folder: dict[str, list[dict[PurePosixPath, BlobSha]]] = {"": [{}]}

    def of(self, folder: str) -> list[dict[PurePosixPath, BlobSha]]:
        """Return the files of a folder, then those of the folders it is in; to be filled."""
        lists = self._by_folder.get(folder)
        if lists is None:
            lists = self._by_folder[folder] = [{}, *self.of(folder.rpartition("/")[0])]
        return lists


@dataclass(slots=True)
class _Walk:
    """One walk down a commit, past what is known."""

    remembered: Mapping[PurePosixPath, Folder]
    children: Callable[[str], Iterable[TreeEntry]]
    folders: dict[PurePosixPath, Folder]
    """What is known now; a folder that is gone does no harm: its id still says what was in it."""
    requests: int = 0

    def files(self, path: PurePosixPath, sha: str) -> dict[PurePosixPath, BlobSha]:
        self.requests += 1
        if self.requests > _MOST_FOLDERS:
            raise TooManyError
        files: dict[PurePosixPath, BlobSha] = {}
        for entry in self.children(sha):
            entry_path = path / entry.path
            if entry.is_folder:
                files.update(self._folder(entry_path, entry.sha))
            else:
                files[entry_path] = BlobSha(entry.sha)
        return files

    def _folder(self, path: PurePosixPath, sha: str) -> Files:
        folder = self.remembered.get(path)
        if folder is None or folder.sha != sha:
            folder = self.folders[path] = Folder(sha, self.files(path, sha))
        return folder.files
