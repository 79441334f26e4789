"""
What a branch that moves has to pass, and who learns that it moved.

`BranchRules` applies the rules of protected branches to what the API, git and merges are about to
do.

`BranchUpdates` tells pull requests, listeners and webhooks. It is for everything that moves a
branch (contents, branches, merges, pushes), always after it moved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from ground.names import CommitSha, RepoId
from orderkit_standins.forge import protections
from orderkit_standins.forge.accounts import Account, Actor
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.webhook_events import (
    NO_COMMIT,
    BranchMove,
    WebhookEvents,
    new_commits,
)
from orderkit_standins.forge.protections import Doer, Protections, Rule
from orderkit_standins.forge.pull_requests import Pull, Pulls, Tips
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import Reviews
from orderkit_standins.forge.statuses import Statuses, required

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


@dataclass(frozen=True, slots=True)
class BranchRules:
    """The rules of one forge, applied to a person and an action."""

    access: Access
    protections: Protections
    statuses: Statuses
    reviews: Reviews

    def doer(self, repo: Repository, account: Account) -> Doer:
        """Return what the rules need to know of somebody."""
        right = self.access.right_on(Actor(account), repo)
        teams = self.access.teams.of_user(account.id, repo.owner_id)
        ids = frozenset(team.id for team in teams)
        return Doer(account.id, account.name, right >= Right.WRITE, ids)

    def rule(self, repo: Repository, branch: str) -> Rule | None:
        """Return the rule that counts for a branch, or None."""
        return self.protections.for_branch(repo.id, branch)

    def refuse_commit(self, repo: Repository, account: Account, branch: str) -> None:
        """
        Refuse a commit through the API on an existing branch.

        Raises:
            ApiError: 403.
        """
        rule = self.rule(repo, branch)
        if rule is not None:
            _refuse(protections.refuse_commit(rule, self.doer(repo, account)), 403)

    def refuse_new_branch(self, repo: Repository, account: Account, branch: str) -> None:
        """
        Refuse that a branch of this name appears.

        Raises:
            ApiError: 500, as git's hook makes Gitea fail.
        """
        rule = self.rule(repo, branch)
        if rule is not None:
            _refuse(protections.refuse_push(rule, self.doer(repo, account), branch), 500)

    def may_merge(self, repo: Repository, account: Account, branch: str) -> bool:
        """Say whether somebody may merge into a branch at all."""
        doer, rule = self.doer(repo, account), self.rule(repo, branch)
        return protections.may_merge(rule, doer) if rule is not None else doer.writes

    def refuse_unready(
        self, repo: Repository, pull: Pull, tips: Tips, doer: Account, *, force: bool
    ) -> None:
        """
        Refuse a merge of `tips` that does not satisfy the base branch's rule.

        The rule may ask for checks and approvals.

        Args:
            repo: The repository.
            pull: The pull request.
            tips: Its commits.
            doer: Who merges.
            force: An admin merges whatever the rule says, unless it forbids that.

        Raises:
            ApiError: 405 with the reason.
        """
        rule = self.rule(repo, pull.base)
        if rule is None:
            return
        admin = self.access.right_on(Actor(doer), repo) >= Right.ADMIN
        if not (force and admin and not rule.settings.block_admin_merge_override):
            _refuse(self.unready(repo, pull, tips), 405)

    def unready(self, repo: Repository, pull: Pull, tips: Tips) -> str:
        """Return what a merge of `tips` still lacks by the base branch's rule, or nothing."""
        rule = self.rule(repo, pull.base)
        if rule is None:
            return ""
        settings = rule.settings
        if settings.enable_status_check:
            latest = self.statuses.latest(repo.id, tips.head)
            if required(latest, settings.status_check_contexts or ()) != "success":
                return "Not all required status checks successful"
        if self.reviews.approvals(pull.id) < settings.required_approvals:
            return "Does not have enough approvals"
        return ""


def _refuse(reason: str, status: int) -> None:
    if reason:
        raise ApiError(status, reason)
