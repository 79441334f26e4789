"""
Merge one branch into another in memory: try it, and write the merge commit.

Nothing here moves a reference: the commits that are written are harmless until a branch points to
them. It knows nothing of pull requests, users and HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

import pygit2
from pygit2.enums import SortMode

from orderkit_standins.forge import git_read
from orderkit_standins.forge.git_write import Person

Verdict = Literal["mergeable", "conflict", "empty", "ancestor"]
"""``empty``: head has commits but changes nothing; ``ancestor``: base has all of head."""
_REMEMBERED = 4096


class MergeError(Exception):
    """The commit cannot be made: ``conflict``, or ``unrelated`` histories."""

    def __init__(self, kind: Literal["conflict", "unrelated"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class TrialMerge:
    """What a merge of two commits would do. `merge_base` is empty for unrelated histories."""

    verdict: Verdict
    merge_base: str


@dataclass(frozen=True, slots=True)
class MergeCommit:
    """Two commits, and in whose name and with which message they are joined."""

    base: str
    head: str
    message: str
    author: Person
    committer: Person


def try_merge(path: Path, base: str, head: str) -> TrialMerge:
    """Say whether `head` can be merged into `base`, both commit ids."""
    return _trial(str(path), base, head)


@lru_cache(_REMEMBERED)
def _trial(path: str, base: str, head: str) -> TrialMerge:
    git = git_read.open_repository(Path(path))
    merge_base = merge_base_of(git, base, head)
    if not merge_base:
        return TrialMerge("empty", "")
    if merge_base == head:
        return TrialMerge("ancestor", head)
    index = git.merge_commits(_commit(git, base), _commit(git, head))
    if index.conflicts:
        return TrialMerge("conflict", merge_base)
    unchanged = index.write_tree(git) == _commit(git, base).tree_id
    return TrialMerge("empty" if unchanged else "mergeable", merge_base)


def commits_between(git: pygit2.Repository, base: str, head: str) -> list[pygit2.Commit]:
    """Return the commits of `head` that are not in `base`, newest first."""
    walker = git.walk(head, SortMode.TOPOLOGICAL | SortMode.TIME)
    walker.hide(base)
    return list(walker)


def merge_base_of(git: pygit2.Repository, ours: str, theirs: str) -> str:
    """Return the merge base of two histories; empty if they are unrelated."""
    merge_base = cast("pygit2.Oid | None", git.merge_base(ours, theirs))  # the type stubs lack None
    return str(merge_base) if merge_base is not None else ""


def is_ancestor(git: pygit2.Repository, old: str, new: str) -> bool:
    """Say whether `new` contains `old`; a commit contains itself."""
    if git.get(old) is None or git.get(new) is None:
        return False
    return old == new or git.descendant_of(new, old)


def write_merge(git: pygit2.Repository, merge: MergeCommit, *, squash: bool) -> str:
    """
    Write the commit of a merge and return its id: two parents, or one if squashed.

    Raises:
        MergeError: The branches conflict, or have no common history.
    """
    base, head = _commit(git, merge.base), _commit(git, merge.head)
    if not merge_base_of(git, merge.base, merge.head):
        raise MergeError("unrelated", "refusing to merge unrelated histories")
    index = git.merge_commits(base, head)
    if index.conflicts:
        raise MergeError("conflict", "Automatic merge failed")
    new = git.create_commit(
        None,
        merge.author.signature(),
        merge.committer.signature(),
        merge.message.strip() + "\n",
        index.write_tree(git),
        [base.id] if squash else [base.id, head.id],
    )
    return str(new)


def _commit(git: pygit2.Repository, commit_id: str) -> pygit2.Commit:
    commit = git_read.commit_by_id(git, commit_id)
    if commit is None:
        raise LookupError(f"{commit_id} is not a commit")
    return commit
