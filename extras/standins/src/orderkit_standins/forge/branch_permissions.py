"""
Decide what a branch rule permits an actor: push, delete, write, merge.

Pure functions from rules and facts to Gitea's refusal message, empty if the action is permitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderkit_standins.forge.protections import Rule


@dataclass(frozen=True, slots=True)
class Doer:
    """The actor on a repository."""

    id: int
    name: str
    writes: bool
    team_ids: frozenset[int]


def may_push(rule: Rule, doer: Doer) -> bool:
    """Say whether somebody may push to the branch."""
    settings = rule.settings
    if not settings.enable_push:
        return False
    if not settings.enable_push_whitelist:
        return doer.writes
    return _is_listed(doer, settings.push_whitelist_usernames, settings.push_whitelist_teams)


def may_merge(rule: Rule, doer: Doer) -> bool:
    """Say whether somebody may merge pull requests into the branch."""
    settings = rule.settings
    if not settings.enable_merge_whitelist:
        return doer.writes
    return _is_listed(doer, settings.merge_whitelist_usernames, settings.merge_whitelist_teams)


def _is_listed(doer: Doer, users: Sequence[int], teams: Sequence[int]) -> bool:
    return doer.id in users or not doer.team_ids.isdisjoint(teams)


def refuse_commit(rule: Rule, doer: Doer) -> str:
    """Return why no commit may be made through the API, or nothing."""
    return "" if may_push(rule, doer) else f"user cannot commit to repo [user: {doer.name.lower()}]"


def refuse_push(rule: Rule, doer: Doer, branch: str, *, deletes: bool = False) -> str:
    """Return why a push may not be made, or nothing."""
    if deletes:
        return f"branch {branch} is protected from deletion"
    return "" if may_push(rule, doer) else f"Not allowed to push to protected branch {branch}"
