"""
Keep the files of the catalog repository equal to the registry.

Makes one commit if a file differs and none otherwise. A repository head and a registry that were
equal are not compared again. Every change carries the blob id that was read, and the commit's
operation id is a digest of the changes: a second watcher, or the same one after a lost answer,
finds the commit and makes no other.

Called by ``watching``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from orderkit.controllers import (
    BlobSha,
    CommitSha,
    FileChange,
    Forge,
    Manifest,
    Operation,
    RepoId,
    blob_sha,
)
from whisperops.entities import Dataset, Entities, is_kept

REQUESTER = "component:default/dataset-watcher"
"""The author of the commits, as a catalog reference."""


@dataclass(frozen=True, slots=True)
class CatalogFolder:
    """Which folder of which repository has the entities, and who owns them."""

    repo: RepoId
    source: str
    owner: str = "group:default/platform"


class CatalogRepo:
    """One source's folder of a catalog repository."""

    def __init__(self, forge: Forge, folder: CatalogFolder) -> None:
        self._forge, self._folder = forge, folder
        self._entities = Entities(folder.source, folder.owner)
        self._equal: tuple[CommitSha, frozenset[Dataset]] | None = None
        """The last head and datasets that were equal."""

    def sync(self, records: Iterable[Manifest]) -> CommitSha | None:
        """
        Make the files equal to the records; return the commit, or None if nothing differed.

        Creates the repository if it does not exist, but not its organisation.

        Raises:
            ConflictError: Somebody else wrote the same files; the next call reads theirs.
            NotFoundError: There is no such organisation.
            RemoteError: The forge failed; nothing is lost, call again.
        """
        datasets = frozenset(map(Dataset.of, records))
        head = self._forge.head(self._folder.repo)
        if head is None:
            self._forge.ensure_repo(self._folder.repo, description="Datasets, for the portal")
        elif (head, datasets) == self._equal:
            return None
        tree = self._forge.tree(self._folder.repo, head) if head else {}
        changes = _changes(self._entities.files(datasets), tree, self._folder.source)
        commit = self._write(changes) if changes else None
        new_head = commit or head
        self._equal = (new_head, datasets) if new_head else None
        return commit

    def _write(self, changes: Sequence[FileChange]) -> CommitSha | None:
        summary = f"{self._folder.source}: {_summary(changes)}"
        operation = Operation(_operation_id(self._folder, changes), REQUESTER, summary)
        written = self._forge.write(self._folder.repo, changes, operation)
        return written.commit if written.changed else None


def _changes(
    files: Mapping[PurePosixPath, bytes], tree: Mapping[PurePosixPath, BlobSha], source: str
) -> list[FileChange]:
    """Return a change for every file that differs, sorted by path."""
    any_sha = next(iter(tree.values()), "")  # tells SHA-1 from SHA-256
    writes = [
        FileChange(path, data, tree.get(path))
        for path, data in files.items()
        if tree.get(path) != blob_sha(data, any_sha)
    ]
    deletions = [
        FileChange(path, None, sha)
        for path, sha in tree.items()
        if is_kept(path, source) and path not in files
    ]
    return sorted([*writes, *deletions], key=lambda change: change.path)


def _operation_id(folder: CatalogFolder, changes: Sequence[FileChange]) -> str:
    digest = hashlib.sha256(f"{folder.repo} {folder.source}".encode())
    for change in changes:
        data = "" if change.data is None else hashlib.sha256(change.data).hexdigest()
        digest.update(f"\0{change.path}\0{change.expected_sha or ''}\0{data}".encode())
    return f"datasets-{digest.hexdigest()[:24]}"


def _summary(changes: Sequence[FileChange]) -> str:
    files = f"{len(changes)} file" + ("s" if len(changes) != 1 else "")
    return f"bring {files} in step with the registry"
