"""
Merge a pull request: Gitea's refusals in Gitea's order, then the base branch moves once.

The commits are built first, then the landing is noted, then the base branch is moved by
compare-and-swap, then the pull request is closed (``landings`` tells what a kill in between
leaves). After a merge was tried and refused by git, Gitea checks every pull request of the
base branch anew, so the next try is told to come back later; so it is here.

Called by ``api.merges`` and, for scheduled merges, by ``api.statuses`` and ``EmbeddedForge``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from orderkit.adapters.embedded.forge import gitmerge, gitread, gitwrite, pullgit
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import events, guarding
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import ApiError
from orderkit.adapters.embedded.forge.api.pullshapes import pull_shape
from orderkit.adapters.embedded.forge.automerges import AutoMerge
from orderkit.adapters.embedded.forge.gitmerge import Landing, MergeError
from orderkit.adapters.embedded.forge.gitwrite import Person
from orderkit.adapters.embedded.forge.mergesettings import STYLES
from orderkit.adapters.embedded.forge.pullgit import Landed, Pull, Tips
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.store import timestamp
from orderkit.core.names import CommitSha

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge

log = logging.getLogger(__name__)

LATER = "Please try again later"
"""Gitea's words for a check going on, a conflict and a pull request without commits."""


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """How to merge. `message` is the whole commit message; `head` empty: whatever it is."""

    style: str
    message: str
    head: str = ""
    delete_branch: bool = False
    force: bool = False


def refuse_unmergeable(forge: EmbeddedForge, repo: RepoRow, pull: Pull) -> None:
    """
    Refuse what cannot be merged now.

    Raises:
        ApiError: 404 closed; 405 merged, in work, being checked, conflicting or without commits.
    """
    if pull.merged:
        raise ApiError(405, forge.behaviour.merged_again_says)
    if pull.closed:
        raise ApiError(404)
    if pull.draft:
        raise ApiError(405, "Work in progress PRs cannot be merged")
    state = pullgit.state(repo.path, pull, forge.pulls.checks)
    if state not in ("mergeable", "empty"):
        raise ApiError(405, LATER)


def refuse_style(forge: EmbeddedForge, repo: RepoRow, style: str) -> None:
    """
    Refuse a merge style that the repository does not allow.

    Raises:
        ApiError: 405.
    """
    if not forge.merge_settings.of(repo.id)[STYLES[style]]:
        raise ApiError(405, f"{style} is not allowed an allowed merge style for this repository")


def land(forge: EmbeddedForge, repo: RepoRow, pull: Pull, doer: Account, order: MergeOrder) -> None:
    """
    Merge, tell the listeners, and delete the head branch if wanted and possible.

    Raises:
        ApiError: 405 as above; 409 another head, a conflict, a race; 500 no fast-forward.
    """
    with forge.pulls.lock(repo.id):
        pull = forge.landings.settle(repo, forge.pulls.by_id(pull.id))
        refuse_unmergeable(forge, repo, pull)
        if not guarding.may_merge(forge, repo, doer, pull.base):
            raise ApiError(405, "User not allowed to merge PR")
        tips = pullgit.tips(repo.path, pull)
        guarding.refuse_unready(forge, repo, pull, tips, guarding.Wish(doer, order.force))
        refuse_style(forge, repo, order.style)
        try:
            commit = _move_base(_Merge(forge, repo, pull, doer, order), tips)
        except ApiError:
            forge.pulls.check_base(repo, pull.base)
            raise
    if commit == tips.base:
        return
    forge.pushed(repo.repo, pull.base, CommitSha(commit), by=doer, before=tips.base)
    events.pull_changed(
        forge,
        repo,
        lambda: pull_shape(forge, repo, forge.pulls.by_id(pull.id), Right.ADMIN),
        "closed",
        by=doer,
    )
    if order.delete_branch:
        delete_head(forge, repo, pull, doer)


@dataclass(frozen=True, slots=True)
class _Merge:
    """What is merged where by whom and how."""

    forge: EmbeddedForge
    repo: RepoRow
    pull: Pull
    doer: Account
    order: MergeOrder

    def landing(self, tips: Tips) -> Landing:
        """Name the committer, and the author: of squashed work the one who asked for it."""
        committer = Person(self.doer.name, self.doer.email, datetime.now(UTC))
        author = committer
        if self.order.style == "squash":
            poster = self.forge.accounts.by_id(self.pull.poster_id)
            author = Person(poster.name, poster.email, committer.when)
        return Landing(tips.base, tips.head, self.order.message, author, committer)


def _move_base(merge: _Merge, tips: Tips) -> str:
    """Return where the base branch is now: where it was, if nothing was left to rebase."""
    repo, pull = merge.repo, merge.pull
    if merge.order.head not in ("", tips.head):
        raise ApiError(409, "head out of date")
    git = gitread.open_repository(repo.path)
    style = cast("gitmerge.Style", merge.order.style)  # the route admits only these
    try:
        commit = gitmerge.build(git, style, merge.landing(tips))
    except MergeError as error:
        raise _refusal(error) from error
    if commit == tips.base:
        return commit
    landings = merge.forge.landings
    landed = Landed(commit, merge.doer.id, timestamp())
    pullgit.keep_head(repo.path, pull, tips.head)
    landings.begin(repo, pull, landed)
    try:
        gitwrite.move_branch(repo.path, pull.base, tips.base, commit)
    except gitwrite.WriteError as error:
        landings.abandon(pull)
        raise ApiError(409, "merge push out of date") from error
    landings.finish(repo, pull, landed)
    return commit


def _refusal(error: MergeError) -> ApiError:
    if error.kind == "diverged":
        return ApiError(500, f"Merge DivergingFastForwardOnly Error: {error}")
    body: Mapping[str, object] = {
        "Style": error.style,
        **({"CommitSHA": error.commit} if error.commit else {}),
        "StdOut": "" if error.kind == "unrelated" else "CONFLICT (content): Merge conflict\n",
        "StdErr": f"fatal: {error}\n",
        "Err": {},
    }
    return ApiError(409, str(error), body=body)


def delete_head(forge: EmbeddedForge, repo: RepoRow, pull: Pull, doer: Account) -> None:
    """Delete the head branch of a merged pull request unless something still needs it."""
    head = pullgit.last_head(repo.path, pull)
    if pull.head == repo.default_branch or guarding.rule_for(forge, repo, pull.head):
        return
    if forge.pulls.is_head_of_open(repo.id, pull.head):
        return
    try:
        deleted = gitwrite.delete_branch(repo.path, pull.head, expected=head)
    except gitwrite.WriteError:
        return  # it has new commits: Gitea keeps it too
    if deleted:
        forge.pushed(repo.repo, pull.head, None, by=doer, before=head)


def schedule(
    forge: EmbeddedForge, repo: RepoRow, pull: Pull, doer: Account, order: MergeOrder
) -> None:
    """
    Keep a merge until the required checks pass; Gitea 1.26 looks at once whether they do.

    Raises:
        ConflictError: One is kept already.
    """
    forge.auto_merges.add(
        AutoMerge(pull.id, doer.id, order.style, order.message, order.delete_branch)
    )
    if forge.behaviour.scheduled_merge_starts_check:
        _land_ordered(forge, repo, pull.id)


def land_scheduled(forge: EmbeddedForge, repo: RepoRow, *, head: str = "") -> None:
    """Try the waiting merges of a repository, or those whose head is this commit."""
    for order in forge.auto_merges.in_repository(repo.id):
        pull = forge.pulls.by_id(order.pull_id)
        if pull.open and (not head or pullgit.tips(repo.path, pull).head == head):
            _land_ordered(forge, repo, pull.id)


def _land_ordered(forge: EmbeddedForge, repo: RepoRow, pull_id: int) -> None:
    """Merge what was ordered if it can be; a refusal leaves it waiting."""
    ordered = forge.auto_merges.of(pull_id)
    if ordered is None:
        return
    forge.pulls.checks.end(pull_id)  # Gitea tries when its check is over
    doer, pull = forge.accounts.by_id(ordered.doer_id), forge.pulls.by_id(pull_id)
    order = MergeOrder(ordered.style, ordered.message, delete_branch=ordered.delete_branch)
    try:
        land(forge, repo, pull, doer, order)
    except ApiError as refusal:
        log.info("%s#%s waits: %s", repo.full_name, pull.number, refusal)
