"""
Keep a source's files of the catalog repository as the registry wants them.

One commit when something differs and none otherwise; a head and a registry that were found in
step are not compared again. Each entry of a commit carries the blob id that was read, and the
commit's operation id follows from the entries: a second watcher, or the same one after a lost
answer, finds the commit and makes none.

Called by ``watching``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from orderkit.adapters.gitea.writing import blob_sha
from orderkit.core.names import BlobSha, CommitSha, RepoId
from orderkit.core.objects.kube_objects import Manifest
from orderkit.ports.forge import FileChange, Forge, Operation
from whisperops.entities import Dataset, Entities, is_kept

REQUESTER = "component:default/dataset-watcher"
"""Who asks for the commits: nobody's name."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the entities lie, and whose they are."""

    repo: RepoId
    source: str
    owner: str = "group:default/platform"


class CatalogRepo:
    """One source's folder of a catalog repository."""

    def __init__(self, forge: Forge, place: Place) -> None:
        self._forge, self._place = forge, place
        self._entities = Entities(place.source, place.owner)
        self._in_step: tuple[CommitSha, frozenset[Dataset]] | None = None

    def sync(self, records: Iterable[Manifest]) -> CommitSha | None:
        """
        Bring the files in step with the records; return the commit, or None if none was needed.

        The repository is made if it does not exist; its organisation is not.

        Raises:
            ConflictError: Somebody else writes the same files; the next call sees theirs.
            NotFoundError: No such organisation. RemoteError, UnreachableError, AccessError: the
                forge failed; nothing is lost, call again.
        """
        datasets = frozenset(map(Dataset.of, records))
        head = self._forge.head(self._place.repo)
        if head is None:
            self._forge.ensure_repo(self._place.repo, description="Datasets, for the portal")
        elif (head, datasets) == self._in_step:
            return None
        tree = self._forge.tree(self._place.repo, head) if head else {}
        changes = _changes(self._entities.files(datasets), tree, self._place.source)
        commit = self._write(changes) if changes else None
        found = commit or head
        self._in_step = (found, datasets) if found else None
        return commit

    def _write(self, changes: Sequence[FileChange]) -> CommitSha | None:
        summary = f"{self._place.source}: {_told(changes)}"
        operation = Operation(_operation_id(self._place, changes), REQUESTER, summary)
        written = self._forge.write(self._place.repo, changes, operation)
        return written.commit if written.changed else None


def _changes(
    files: Mapping[PurePosixPath, bytes], tree: Mapping[PurePosixPath, BlobSha], source: str
) -> list[FileChange]:
    """Return what differs, in the order of the paths."""
    like = next(iter(tree.values()), "")
    put = [
        FileChange(path, data, tree.get(path))
        for path, data in files.items()
        if tree.get(path) != blob_sha(data, like)
    ]
    gone = [
        FileChange(path, None, sha)
        for path, sha in tree.items()
        if is_kept(path, source) and path not in files
    ]
    return sorted([*put, *gone], key=lambda change: change.path)


def _operation_id(place: Place, changes: Sequence[FileChange]) -> str:
    digest = hashlib.sha256(f"{place.repo} {place.source}".encode())
    for change in changes:
        new = "" if change.data is None else hashlib.sha256(change.data).hexdigest()
        digest.update(f"\0{change.path}\0{change.expected_sha or ''}\0{new}".encode())
    return f"datasets-{digest.hexdigest()[:24]}"


def _told(changes: Sequence[FileChange]) -> str:
    files = f"{len(changes)} file" + ("s" if len(changes) != 1 else "")
    return f"bring {files} in step with the registry"
