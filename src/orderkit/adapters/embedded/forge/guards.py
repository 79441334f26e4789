"""
Decide what a rule lets somebody do: push, delete, write files, merge.

Pure: rules and facts in, Gitea's words of refusal out, empty if nothing is refused.

Called by ``api.branchrules`` and ``api.pushcheck``.
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
    deletes: bool = False
    forces: bool = False
    paths: tuple[str, ...] = ()


def may_push(rule: Rule, doer: Doer) -> bool:
    """Say whether somebody may push to the branch."""
    settings = rule.settings
    if not settings.enable_push:
        return False
    if not settings.enable_push_whitelist:
        return doer.writes
    return _listed(doer, settings.push_whitelist_usernames, settings.push_whitelist_teams)


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
    return ""


def refuse_push(rule: Rule, doer: Doer, update: RefUpdate) -> str:
    """Return why a push may not be made, or nothing."""
    settings, branch = rule.settings, update.branch
    if update.deletes or update.forces:
        change = "deletion" if update.deletes else "force push"
        return f"branch {branch} is protected from {change}"
    for path in update.paths:
        if matches_any(settings.protected_file_patterns, path):
            return f"branch {branch} is protected from changing file {path.lower()}"
    free = settings.unprotected_file_patterns
    if may_push(rule, doer) or (update.paths and all(matches_any(free, p) for p in update.paths)):
        return ""
    return f"Not allowed to push to protected branch {branch}"


def matches_any(patterns: str, path: str) -> bool:
    """Say whether one of the globs between semicolons matches a path, whatever the case."""
    for pattern in patterns.lower().split(";"):
        try:
            if pattern.strip() and compile_glob(pattern.strip(), "./").fullmatch(path.lower()):
                return True
        except InvalidInputError:
            continue
    return False
