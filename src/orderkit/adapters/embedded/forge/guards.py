"""
Decide what a rule lets somebody do: push, force, delete, write files, merge.

Pure: rules and facts in, Gitea's words of refusal out, empty if nothing is refused.

Called by ``api.guarding``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.protections import Rule
from orderkit.adapters.embedded.globs import compile_glob
from orderkit.core.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Doer:
    """Who acts on a repository."""

    id: int
    name: str
    writes: bool
    team_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """A change of a branch that git wants to make; `paths` are all files it touches."""

    branch: str
    deletes: bool
    forces: bool
    commits: tuple[str, ...]
    paths: tuple[str, ...]


def may_push(rule: Rule, doer: Doer) -> bool:
    """Say whether somebody may push to the branch."""
    settings = rule.settings
    if not settings.enable_push:
        return False
    if not settings.enable_push_whitelist:
        return doer.writes
    return _listed(doer, settings.push_whitelist_usernames, settings.push_whitelist_teams)


def may_force(rule: Rule, doer: Doer) -> bool:
    """Say whether somebody may rewrite the branch."""
    settings = rule.settings
    if not settings.enable_force_push or not may_push(rule, doer):
        return False
    if not settings.enable_force_push_allowlist:
        return True
    return _listed(
        doer, settings.force_push_allowlist_usernames, settings.force_push_allowlist_teams
    )


def may_merge(rule: Rule, doer: Doer) -> bool:
    """Say whether somebody may merge pull requests into the branch."""
    settings = rule.settings
    if not settings.enable_merge_whitelist:
        return doer.writes
    return _listed(doer, settings.merge_whitelist_usernames, settings.merge_whitelist_teams)


def _listed(doer: Doer, users: Sequence[int], teams: Sequence[int]) -> bool:
    return doer.id in users or not doer.team_ids.isdisjoint(teams)


def refuse_files(rule: Rule, doer: Doer, paths: Iterable[str]) -> str:
    """Return why these files may not be written through the API, or nothing."""
    settings, pushes = rule.settings, may_push(rule, doer)
    for path in paths:
        if not pushes and not matches_any(settings.unprotected_file_patterns, path):
            return f"user cannot commit to repo [user: {doer.name.lower()}]"
        if matches_any(settings.protected_file_patterns, path):
            return f"path is protected and can not be changed [path: {path}]"
    if settings.require_signed_commits:
        return f"user cannot commit to repo [user: {doer.name.lower()}]"
    return ""


def refuse_push(rule: Rule, doer: Doer, update: RefUpdate) -> str:
    """Return why a push may not be made, or nothing."""
    always = _refuse_anybody(rule, update)
    if always:
        return f"branch {update.branch} is protected from {always}"
    if may_force(rule, doer) if update.forces else may_push(rule, doer):
        return ""
    free = rule.settings.unprotected_file_patterns
    if free and update.paths and all(matches_any(free, path) for path in update.paths):
        return ""
    verb = "force-push" if update.forces else "push"
    return f"Not allowed to {verb} to protected branch {update.branch}"


def _refuse_anybody(rule: Rule, update: RefUpdate) -> str:
    settings = rule.settings
    if update.deletes:
        return "deletion"
    if update.forces and not settings.enable_force_push:
        return "force push"
    if settings.require_signed_commits and update.commits:
        return f"unverified commit {update.commits[0]}"
    for path in update.paths:
        if matches_any(settings.protected_file_patterns, path):
            return f"changing file {path.lower()}"
    return ""


def matches_any(patterns: str, path: str) -> bool:
    """Say whether one of the globs between semicolons matches a path, whatever the case."""
    for each in patterns.lower().split(";"):
        try:
            if each.strip() and compile_glob(each.strip(), "./").fullmatch(path.lower()):
                return True
        except InvalidInputError:
            continue
    return False
