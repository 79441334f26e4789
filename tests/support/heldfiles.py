"""A forge that holds files of one commit for each repository, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType

from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.ports.forge import FileRevision

FIRST = CommitSha("c" * 40)


@dataclass
class HeldFiles:
    """Reads are counted by path. `base_url` is where a browser would find it."""

    files: Mapping[RepoId, Mapping[str, str]]
    base_url: str = "https://forge.example.com"
    commit: CommitSha = FIRST
    reads: Counter[str] = field(default_factory=Counter)

    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None:
        return self.commit if repo in self.files and branch == "main" else None

    def tree(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]:
        assert commit == self.commit
        blobs = {PurePosixPath(path): blob_sha(text.encode()) for path, text in self._of(repo)}
        return MappingProxyType(blobs)

    def read_ahead(self, repo: RepoId, paths: Iterable[PurePosixPath], commit: CommitSha) -> None:
        """Do nothing: all files are at hand."""

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        assert ref in (self.commit, "main")
        self.reads[str(path)] += 1
        text = dict(self._of(repo)).get(str(path))
        return None if text is None else FileRevision(path, text.encode(), blob_sha(text.encode()))

    def _of(self, repo: RepoId) -> list[tuple[str, str]]:
        return list(self.files.get(repo, {}).items())
