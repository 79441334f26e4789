"""
Judge a repository commit by commit: whose each is, and whether it did what was asked.

It looks at git itself, past the API, and knows nothing of faults. Used by every test of
`tests/faults` and by the tests that kill.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pygit2

from ground.names import BlobSha, RepoId, blob_sha
from orderkit.ports.forge import OPERATION_TRAILER, FileChange

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Step:
    """One commit: the operations it names, and each path it changed with its blob ids."""

    commit: str
    operations: tuple[str, ...]
    changed: Mapping[str, tuple[str | None, str | None]]
    parents: int


def steps(repository: Path, branch: str = "main") -> list[Step]:
    """Return the commits of a branch, oldest first."""
    repo = pygit2.Repository(str(repository))
    if f"refs/heads/{branch}" not in repo.references:
        return []
    start = repo.references[f"refs/heads/{branch}"].target
    order = pygit2.enums.SortMode.TOPOLOGICAL | pygit2.enums.SortMode.REVERSE
    return [_step(repo, commit) for commit in repo.walk(start, order)]


def files(repository: Path, at: str = "refs/heads/main") -> Files:
    """Return every file of a commit, or at the head of main, with its blob id."""
    repo = pygit2.Repository(str(repository))
    return _files(repo, repo.revparse_single(at).peel(pygit2.Commit).tree)


def is_done(change: FileChange, there: Files) -> bool:
    """Say whether a file is as a change wants it."""
    return there.get(str(change.path)) == _wanted(change)


def _wanted(change: FileChange) -> str | None:
    return None if change.data is None else blob_sha(change.data)


def replayed(found: Sequence[Step]) -> Files:
    """Return the files that the steps come to when they are made one after the other."""
    here: dict[str, str] = {}
    for step in found:
        for path, (_, after) in step.changed.items():
            here.pop(path, None)
            here |= {} if after is None else {path: after}
    return here


def _step(repo: pygit2.Repository, commit: pygit2.Commit) -> Step:
    before = _files(repo, commit.parents[0].tree) if commit.parents else {}
    after = _files(repo, commit.tree)
    changed = {
        path: (before.get(path), after.get(path))
        for path in sorted(before | after)
        if before.get(path) != after.get(path)
    }
    return Step(str(commit.id), operations_in(commit.message), changed, len(commit.parents))


def operations_in(message: str) -> tuple[str, ...]:
    """Return the operation ids that a commit message names."""
    mark = f"{OPERATION_TRAILER}: "
    return tuple(line.removeprefix(mark) for line in message.splitlines() if line.startswith(mark))


def _files(repo: pygit2.Repository, tree: pygit2.Tree, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in tree:
        path = f"{prefix}{entry.name}"
        if isinstance(entry, pygit2.Tree):
            found |= _files(repo, entry, f"{path}/")
        else:
            found[path] = str(entry.id)
    return found


def did_its_operation(step: Step, changes: Sequence[FileChange]) -> None:
    """Assert that a commit changed what its operation asked, from what was seen, and no more."""
    wanted = {str(change.path): (change.expected_sha, _wanted(change)) for change in changes}
    assert step.changed, f"{step.operations} made an empty commit"
    for path, pair in step.changed.items():
        assert wanted.get(path) == pair, f"{step.operations} on {path}: {pair}, asked {wanted}"


def copy_of(url: str, token: str, repo: RepoId, folder: Path) -> Path:
    """Return a new bare copy, with all branches, of a repository of a forge that is elsewhere."""
    place = Path(tempfile.mkdtemp(prefix=f"{repo.name}-", dir=folder))
    copy = pygit2.init_repository(str(place), bare=True, initial_head="main")
    callbacks = pygit2.RemoteCallbacks(pygit2.UserPass(token, "x-oauth-basic"))
    remote = copy.remotes.create_anonymous(f"{url}/{repo}.git")
    remote.fetch(["+refs/heads/*:refs/heads/*"], callbacks=callbacks)
    return place


def blob(text: str) -> str:
    """Return git's blob id of a text."""
    return blob_sha(text.encode())


def change(path: str, text: str | None, seen: str | None) -> FileChange:
    """Return a change in short."""
    data = None if text is None else text.encode()
    return FileChange(PurePosixPath(path), data, BlobSha(seen) if seen else None)
