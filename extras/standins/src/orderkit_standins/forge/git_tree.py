"""
Change some paths of a tree; only the folders on these paths are read and written.

A ledger has thousands of files and a commit changes one, so the cost of a commit depends on the
depth of its paths and the width of their folders, not on the size of the repository. Folders
without files disappear, as in git. It checks names, not whether a change is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pygit2
from pygit2.enums import FileMode


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
