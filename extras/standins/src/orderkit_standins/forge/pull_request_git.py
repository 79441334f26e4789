"""
What git says of a pull request: its commits now, and whether they can be merged.

``refs/pull/<number>/head`` keeps the last head of a pull request when its branch is gone. Nothing
here is stored elsewhere, so nothing can disagree with the repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orderkit_standins.forge import git_merge, git_read
from orderkit_standins.forge.merge_check_delay import Checks

State = Literal["checking", "mergeable", "conflict", "empty", "ancestor", "error"]
PULL_REF = "refs/pull/{}/head"
_DRAFT = ("wip:", "[wip]")


@dataclass(frozen=True, slots=True)
class MergeRecord:
    """A merge that happened or is about to: which commit, by whose account, when."""

    commit: str
    by: int
    at: str

    def as_dict(self) -> dict[str, str | int]:
        """Return it as it is stored."""
        return {"commit": self.commit, "by": self.by, "at": self.at}


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request; `merge_in_progress` is noted before the base branch moves."""

    id: int
    repo_id: int
    number: int
    title: str
    poster_id: int
    closed: bool
    head: str
    base: str
    merge_base: str
    merge_in_progress: MergeRecord | None
    merged: MergeRecord | None

    @property
    def open(self) -> bool:
        return not self.closed

    @property
    def draft(self) -> bool:
        """Whether the title says that it is work in progress."""
        return self.title.lower().startswith(_DRAFT)


@dataclass(frozen=True, slots=True)
class Tips:
    """The commits of a pull request now; empty where there is none."""

    head: str
    base: str
    head_exists: bool


def branches(path: Path) -> frozenset[str]:
    """Return the names of all branches."""
    return frozenset(git_read.branch_names(git_read.open_repository(path)))


def tips(path: Path, pull: Pull) -> Tips:
    """Return the commits that head and base point to now."""
    git = git_read.open_repository(path)
    head = git_read.branch_commit(git, pull.head)
    base = git_read.branch_commit(git, pull.base)
    kept = git.references.get(PULL_REF.format(pull.number)) if head is None else None
    head_id = str(head.id) if head else str(kept.target) if kept else ""
    return Tips(head_id, str(base.id) if base else "", head_exists=head is not None)


def last_head(path: Path, pull: Pull) -> str:
    """Return the last head that the pull request had while it was open."""
    kept = git_read.open_repository(path).references.get(PULL_REF.format(pull.number))
    return str(kept.target) if kept else tips(path, pull).head


def state(path: Path, pull: Pull, checks: Checks) -> State:
    """Say whether the pull request can be merged, as far as the forge knows yet."""
    if pull.merged:
        return "mergeable"
    if pull.open and checks.running(pull.id):
        return "checking"
    now = tips(path, pull)
    if not now.head or not now.base:
        return "error"
    return git_merge.try_merge(path, now.base, now.head).verdict


def merge_base(path: Path, pull: Pull) -> str:
    """Return the merge base of head and base; empty if it was never known."""
    now = tips(path, pull)
    if pull.merged or not now.head or not now.base:
        return pull.merge_base
    return git_merge.try_merge(path, now.base, now.head).merge_base or now.base


def remember_head(path: Path, pull: Pull) -> None:
    """Update the pull request's own reference to its branch."""
    head = git_read.branch_commit(git_read.open_repository(path), pull.head)
    if head is not None:
        keep_head(path, pull, str(head.id))


def keep_head(path: Path, pull: Pull, commit: str) -> None:
    """Point the pull request's own reference to a commit."""
    git = git_read.open_repository(path)
    name = PULL_REF.format(pull.number)
    reference = git.references.get(name)
    if reference is None or str(reference.target) != commit:
        git.references.create(name, commit, force=True)
