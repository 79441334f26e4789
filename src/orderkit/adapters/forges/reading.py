"""
Read files and history: what forges share, and a cache of the files of commits.

A commit never changes, and most folders of the next are the same. A small repository needs one
request. Of a large one (more than a page of entries, such as a ledger) only the folders that differ
from the last commit are requested: git names a folder by its content. The cache (`Trees`) is
bounded: some commits, and one commit's folders of a few large repositories.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType

from ground.errors import RefusedError
from ground.names import MAIN, BlobSha, CommitSha, RepoId, blob_sha
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import MISSING, ForgeCalls, Found, checked, list_in, text_in
from orderkit.adapters.forges.transport import ForgeTransport, Query
from orderkit.ports.revisions import PLAIN, SUBMODULE, Commit, FileChange, FileRevision, SpecialFile
from orderkit.ports.signatures import Signatures

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


class SharedReading(ForgeCalls):
    """The part of the port about files and history that no forge differs in."""

    trees: Trees
    """The cache of files."""

    def _set_up(self, http: ForgeTransport, source: str, signatures: Signatures | None) -> None:
        super()._set_up(http, source, signatures)
        self.trees = Trees()

    @property
    def _most_of_small(self) -> int:
        """How many entries a repository has at most that is read as a whole."""
        return LARGE

    @abstractmethod
    def _children(
        self, repo: RepoId, commit: CommitSha, path: PurePosixPath, sha: str, /
    ) -> Iterable[TreeEntry]:
        """Return the direct entries of a folder; see `Trees.walk`."""

    @abstractmethod
    def _all_entries(self, repo: RepoId, commit: CommitSha) -> Iterable[TreeEntry]:
        """
        Return all entries of a commit.

        Raises:
            NotFoundError: No such repository or commit.
        """

    @abstractmethod
    def _history_of(self, repo: RepoId, ref: str, size: int) -> tuple[str, Query] | None:
        """Return the path and query of a list of commits; None: there is no such branch."""

    def tree(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]:
        """
        Return every file of a commit with its blob id; see the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        remembered = self.trees.remembered(repo, commit)
        if remembered is not None:
            return remembered
        if self.trees.is_large(repo):
            with suppress(TooManyError):
                return self.trees.walk(repo, commit, partial(self._children, repo, commit))
        entries = list(self._all_entries(repo, commit))
        is_large = len(entries) > self._most_of_small
        return (self.trees.keep_large if is_large else self.trees.keep)(repo, commit, entries)

    def read_ahead(self, repo: RepoId, paths: Iterable[PurePosixPath], commit: CommitSha) -> None:
        """Do nothing: `read` asks for each file; see the port."""

    def special_files(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, SpecialFile]:
        """
        Return what a commit has besides plain files; see the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        self.tree(repo, commit)
        special = self.trees.remembered_special(repo, commit)
        if special is None:  # our own write changed what was special
            entries = list(self._all_entries(repo, commit))
            self.trees.keep(repo, commit, entries)
            special = special_in(entries)
        return special

    def commits(
        self, repo: RepoId, *, ref: str = MAIN, path: PurePosixPath | None = None, limit: int = 50
    ) -> Sequence[Commit]:
        """Return the newest commits first; see the port."""
        size, page, commits = min(limit, self._page_size), 1, list[Commit]()
        place = self._history_of(repo, ref, size)
        if place is None:
            return []
        query = {**place[1], **({} if path is None else {"path": str(path)})}
        while page and len(commits) < limit:
            answer = self._http.get(place[0], {**query, "page": page})
            if self._ends_history(answer, repo, ref):
                break
            items = list_in(checked(answer, f"read the history of {repo}").json() or [])
            commits += map(self._commit_of, items)
            page = self._page_after(answer, page, size - len(items))
        return commits[:limit]

    def _ends_history(self, answer: ForgeResponse, _repo: RepoId, _ref: str, /) -> bool:
        """Say whether an answer means that there are no commits."""
        return answer.status == MISSING

    def _commit_of(self, entry: Found) -> Commit:
        """
        Read a commit as lists of commits show it.

        Raises:
            GarbledError: It is not a commit.
        """
        inner = entry.get("commit")
        details: Found = inner if isinstance(inner, dict) else {}
        author = details.get("author")
        person: Found = author if isinstance(author, dict) else {}
        parents = list_in(entry.get("parents") or [])
        return Commit(
            CommitSha(text_in(entry, "sha")),
            str(details.get("message") or ""),
            tuple(CommitSha(text_in(parent, "sha")) for parent in parents),
            author=f"{person.get('name') or ''} <{person.get('email') or ''}>" if person else "",
            when=str(person.get("date") or ""),
        )


def refused_name(repo: RepoId, commit: str) -> RefusedError:
    """Make the error for a branch or tag that the forge answers with instead of a commit."""
    return RefusedError(
        f"{repo}: the forge shows something else as commit {commit}",
        hint="delete the branch or tag of that name",
    )


def misleading(branch: str, refs: Iterable[str]) -> tuple[str, ...]:
    """Return those of some refs that may be taken for a branch, in order."""
    own, names = f"refs/heads/{branch}", (branch, f"heads/{branch}", f"refs/heads/{branch}")
    taken = {f"refs/{kind}/{name}" for kind in ("tags", "heads") for name in names}
    # Argo CD cuts off what follows a space
    return tuple(sorted(ref for ref in {*refs} - {own} if ref.split()[0] in taken))
