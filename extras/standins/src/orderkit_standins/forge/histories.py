"""
Which commits changed a path, newest first, without walking the same history again.

A client that lost a race reads the history of a file, and under load the forge would spend its time
walking commits. So the result for a head is cached, and a later head only needs the commits in
between. Commits never change, so the cache cannot be stale. If the old head is not on a line of
single parents (a merge, a rewritten branch), the whole history is walked again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import pygit2

from orderkit_standins.forge import git_read

KEPT = 512
"""For how many paths, of all repositories together."""
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Known:
    """The commits that changed a path, as seen from one head."""

    head: pygit2.Oid
    commits: tuple[pygit2.Oid, ...]


_kept: OrderedDict[tuple[Path, str], _Known] = OrderedDict()


def commits_of(
    repository: Path, repo: pygit2.Repository, start: pygit2.Commit, path: str
) -> tuple[pygit2.Oid, ...]:
    """Return the ids of the commits that changed `path` (all, if empty), newest first."""
    key = (repository, path)
    with _guard:
        cached = _kept.get(key)
    commits = _since(start, path, cached) if cached else None
    if commits is None:
        commits = tuple(commit.id for commit in git_read.history(repo, start, path))
    with _guard:
        _kept[key] = _Known(start.id, commits)
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return commits


def _since(start: pygit2.Commit, path: str, cached: _Known) -> tuple[pygit2.Oid, ...] | None:
    """Return the commits if a line of single parents leads from `start` to the known head."""
    fresh, commit = [], start
    while commit.id != cached.head:
        if len(commit.parent_ids) != 1:
            return None
        if not path or git_read.touches(commit, path):
            fresh.append(commit.id)
        commit = commit.parents[0]
    return (*fresh, *cached.commits)
