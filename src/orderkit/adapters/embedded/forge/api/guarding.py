"""
Apply the rules of protected branches to what the API, git and merges are about to do.

Called by the endpoints of contents, branches, pull requests and by ``api.smart``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orderkit.adapters.embedded.forge import gitmerge, gitread, guards, statuses
from orderkit.adapters.embedded.forge.accounts import Account, Actor
from orderkit.adapters.embedded.forge.api import access
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import ApiError
from orderkit.adapters.embedded.forge.guards import Doer, RefUpdate
from orderkit.adapters.embedded.forge.protections import Rule
from orderkit.adapters.embedded.forge.pullgit import Pull, Tips
from orderkit.adapters.embedded.forge.registry import RepoRow

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge


def doer_on(forge: EmbeddedForge, repo: RepoRow, account: Account) -> Doer:
    """Return what the rules need to know of somebody."""
    right = access.right_on(forge.accounts, Actor(account), repo)
    teams = forge.accounts.teams.of_user(account.id, org_id=repo.owner_id)
    ids = frozenset(team.id for team in teams)
    return Doer(account.id, account.name, right >= Right.WRITE, ids)


def rule_for(forge: EmbeddedForge, repo: RepoRow, branch: str) -> Rule | None:
    """Return the rule that counts for a branch, or None."""
    return forge.protections.for_branch(repo.id, branch)


def refuse_write(
    forge: EmbeddedForge, repo: RepoRow, account: Account, branch: str, paths: Iterable[str]
) -> None:
    """
    Refuse a commit through the API on an existing branch.

    Raises:
        ApiError: 403.
    """
    rule = rule_for(forge, repo, branch)
    if rule is not None:
        _refuse(guards.refuse_files(rule, doer_on(forge, repo, account), paths), 403)


def refuse_new_branch(
    forge: EmbeddedForge,
    repo: RepoRow,
    account: Account,
    branch: str,
    paths: Iterable[str],
    *,
    status: int,
) -> None:
    """
    Refuse that a branch of this name appears; `paths` are the files it changes.

    Raises:
        ApiError: `status`, which differs from endpoint to endpoint.
    """
    rule = rule_for(forge, repo, branch)
    if rule is not None:
        update = RefUpdate(branch, deletes=False, forces=False, commits=(), paths=tuple(paths))
        _refuse(guards.refuse_push(rule, doer_on(forge, repo, account), update), status)


def refuse_move(
    forge: EmbeddedForge, repo: RepoRow, account: Account, branch: str, way: tuple[str, str]
) -> None:
    """
    Refuse that a branch moves from one commit to another, `way`.

    Raises:
        ApiError: 403.
    """
    rule = rule_for(forge, repo, branch)
    if rule is None:
        return
    git, (old, new) = gitread.open_repository(repo.path), way
    commits = tuple(str(each.id) for each in gitmerge.commits_between(git, old, new))
    update = RefUpdate(
        branch,
        deletes=False,
        forces=not gitmerge.is_ancestor(git, old, new),
        commits=commits,
        paths=gitmerge.changed_paths(git, old, new),
    )
    _refuse(guards.refuse_push(rule, doer_on(forge, repo, account), update), 403)


def _refuse(reason: str, status: int) -> None:
    if reason:
        raise ApiError(status, reason)


def may_merge(forge: EmbeddedForge, repo: RepoRow, account: Account, branch: str) -> bool:
    """Say whether somebody may merge into a branch at all."""
    doer, rule = doer_on(forge, repo, account), rule_for(forge, repo, branch)
    return guards.may_merge(rule, doer) if rule is not None else doer.writes


def may_update(
    forge: EmbeddedForge, repo: RepoRow, account: Account, branch: str, *, rebases: bool
) -> bool:
    """Say whether somebody may bring the base of a pull request into its head branch."""
    doer, rule = doer_on(forge, repo, account), rule_for(forge, repo, branch)
    if rule is None:
        return doer.writes
    return guards.may_force(rule, doer) if rebases else guards.may_push(rule, doer)


@dataclass(frozen=True, slots=True)
class Wish:
    """Who wants a merge; `force`: whatever the rule says, which it may forbid even an admin."""

    doer: Account
    force: bool


def refuse_unready(forge: EmbeddedForge, repo: RepoRow, pull: Pull, tips: Tips, wish: Wish) -> None:
    """
    Refuse a merge of `tips` that does not satisfy the base branch's rule.

    The rule may ask for checks, approvals, unchanged files, a head that has all of the base.

    Raises:
        ApiError: 405 with the reason.
    """
    rule = rule_for(forge, repo, pull.base)
    if rule is None:
        return
    admin = access.right_on(forge.accounts, Actor(wish.doer), repo) >= Right.ADMIN
    if not (wish.force and admin and not rule.settings.block_admin_merge_override):
        _refuse(_unready(forge, repo, tips, rule), 405)
    if rule.settings.require_signed_commits:
        raise ApiError(405, "wont sign: nokey")


def _unready(forge: EmbeddedForge, repo: RepoRow, tips: Tips, rule: Rule) -> str:
    settings = rule.settings
    if settings.enable_status_check:
        latest = forge.statuses.latest(repo.id, tips.head)
        if statuses.required(latest, settings.status_check_contexts or ()) != "success":
            return "Not all required status checks successful"
    if settings.required_approvals:
        return "Does not have enough approvals"
    git = gitread.open_repository(repo.path)
    if settings.block_on_outdated_branch and not gitmerge.is_ancestor(git, tips.base, tips.head):
        return "The head branch is behind the base branch"
    start = gitmerge.merge_base_of(git, tips.base, tips.head)
    paths = gitmerge.changed_paths(git, start, tips.head)
    if any(guards.matches_any(settings.protected_file_patterns, path) for path in paths):
        return "Changed protected files"
    return ""
