"""
The payloads of webhooks about branches, tags, repositories and commit statuses.

Pure but for reading git: what happened in, a dict out. Called by ``api.events``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import pygit2
from pygit2.enums import DeltaStatus, SortMode

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.api.shapes import UNSIGNED, Json, when
from orderkit.adapters.embedded.forge.registry import RepoRow

COMMITS_SHOWN = 5
"""A push names its newest commits; ``total_commits`` counts them all."""
NEW_BRANCH_MAX = 10
"""A new branch counts at most these, of those that no other branch has."""
NOTHING = "0" * 40
TAGS = "refs/tags/"
NameOf = Callable[[str], str]
"""Finds the account with a mail address; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Move:
    """One reference that moved. `before` or `after` is `NOTHING` where there is nothing."""

    repo: RepoRow
    ref: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return self.ref.removeprefix(gitread.HEADS).removeprefix(TAGS)

    @property
    def kind(self) -> str:
        return "tag" if self.ref.startswith(TAGS) else "branch"


def commit_payload(repo: RepoRow, commit: pygit2.Commit, base_url: str, name_of: NameOf) -> Json:
    """Return a commit with the paths it touched."""
    changed = _changed(commit)
    people = {
        role: {"name": name, "email": email, "username": name_of(email)}
        for role, (name, email) in (
            ("author", gitread.name_and_email(commit.author)),
            ("committer", gitread.name_and_email(commit.committer)),
        )
    }
    return {
        "id": str(commit.id),
        "message": gitread.message(commit),
        "url": f"{base_url}/{repo.full_name}/commit/{commit.id}",
        **people,
        "verification": UNSIGNED,
        "timestamp": when(commit.commit_time, commit.commit_time_offset),
        **changed,
    }


def _changed(commit: pygit2.Commit) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"added": [], "removed": [], "modified": []}
    if len(commit.parents) > 1:
        return found
    diff = (
        commit.parents[0].tree.diff_to_tree(commit.tree)
        if commit.parents
        else commit.tree.diff_to_tree(swap=True)
    )
    for delta in diff.deltas:
        key = {DeltaStatus.ADDED: "added", DeltaStatus.DELETED: "removed"}.get(delta.status)
        found[key or "modified"].append(delta.new_file.path)
    return found


def push_payload(move: Move, base_url: str, name_of: NameOf) -> Json:
    """Return what a push says; the caller adds repository, pusher and sender."""
    git = gitread.open_repository(move.repo.path)
    head = None if move.after == NOTHING else git[move.after].peel(pygit2.Commit)
    commits, total = _commits(git, move, head) if head is not None else ([], 0)

    def shaped(commit: pygit2.Commit) -> Json:
        return commit_payload(move.repo, commit, base_url, name_of)

    return {
        "ref": move.ref,
        "before": move.before,
        "after": move.after,
        "compare_url": f"{base_url}/{_compared(move, commits)}",
        "commits": [shaped(commit) for commit in commits[:COMMITS_SHOWN]],
        "total_commits": total,
        "head_commit": None if head is None else shaped(head),
    }


def _commits(
    git: pygit2.Repository, move: Move, head: pygit2.Commit
) -> tuple[list[pygit2.Commit], int]:
    """Return the commits of a push, newest first, and their number."""
    if move.kind == "tag":
        return [], 0
    walker = git.walk(head.id, SortMode.TOPOLOGICAL)
    if move.before != NOTHING:
        walker.hide(pygit2.Oid(hex=move.before))
        found = list(walker)
    else:
        for other in gitread.branch_names(git):
            tip = gitread.branch_commit(git, other)
            if other != move.name and tip is not None:
                walker.hide(tip.id)
        found = list(islice(walker, NEW_BRANCH_MAX))
    return found, len(found)


def _compared(move: Move, commits: Sequence[pygit2.Commit]) -> str:
    """Return the path of the comparison page, empty where there is nothing to compare."""
    old = move.before
    if move.kind == "branch" and old == NOTHING:
        if commits and commits[-1].parent_ids:
            old = str(commits[-1].parent_ids[0])
        elif move.name != move.repo.default_branch:
            old = move.repo.default_branch
    if move.after == NOTHING or (move.kind == "branch" and old == NOTHING):
        return ""
    return f"{move.repo.full_name}/compare/{old}...{move.after}"
