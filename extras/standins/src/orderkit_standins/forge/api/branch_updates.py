"""
What follows when a branch moved: pull requests, listeners and webhooks learn of it.

For everything that moves a branch (contents, branches, merges, pushes), always after it moved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from ground.names import CommitSha, RepoId
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.webhook_events import (
    NO_COMMIT,
    BranchMove,
    WebhookEvents,
    new_commits,
)
from orderkit_standins.forge.pulls import Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import Reviews

log = logging.getLogger(__name__)

PushListener = Callable[[RepoId, str, CommitSha | None], None]
"""Called with repository, branch and new head (None: the branch was deleted)."""


@dataclass(frozen=True, slots=True)
class BranchUpdates:
    """Passes on that branches moved."""

    pulls: Pulls
    events: WebhookEvents
    reviews: Reviews
    listeners: list[PushListener] = field(default_factory=list)

    def branch_moved(
        self, repo: Repository, branch: str, commit: str, *, by: Account, before: str = ""
    ) -> None:
        """
        Let pull requests follow a branch; tell listeners and webhooks that it moved.

        Args:
            repo: Its repository.
            branch: Its name.
            commit: Where it is now; empty if it was deleted.
            by: Who moved it.
            before: Where it was; empty for a new branch.
        """
        follow = self.pulls.branch_moved if commit else self.pulls.branch_deleted
        followers = follow(repo, branch)
        if commit and followers:
            commits = new_commits(repo, BranchMove(repo, branch, before or NO_COMMIT, commit))
            for pull in followers:
                self.reviews.note_push(pull.id, by.id, commits)
        for listener in tuple(self.listeners):
            try:
                listener(repo.repo, branch, CommitSha(commit) if commit else None)
            except Exception:
                log.exception("a push listener failed for %s", repo.full_name)
        if commit:
            self.events.pushed(BranchMove(repo, branch, before or NO_COMMIT, commit), by=by)
        for pull in followers:
            action, kind = ("closed", "") if pull.closed else ("synchronized", "_sync")
            event_type = f"pull_request{kind}"
            self.events.pull_changed(repo, pull.id, action, by=by, event_type=event_type)
