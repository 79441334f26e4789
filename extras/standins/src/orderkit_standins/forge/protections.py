"""
Branch protection rules: their settings, their storage, and which rule applies to a branch.

The oldest rule that matches a branch counts. What it permits an actor (push, delete, write, merge)
is said by pure functions from rules and facts to Gitea's refusal message, which is empty if the
action is permitted.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import ConflictError, InvalidInputError
from orderkit_standins.forge.store import Store, load, timestamp
from orderkit_standins.globs import compile_glob

_SPECIAL = re.compile(r"[*?\[\]{}\\]")


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What a rule says, under the names of the API; users and teams are kept by their ids."""

    enable_push: bool = False
    enable_push_whitelist: bool = False
    push_whitelist_usernames: tuple[int, ...] = ()
    push_whitelist_teams: tuple[int, ...] = ()
    enable_merge_whitelist: bool = False
    merge_whitelist_usernames: tuple[int, ...] = ()
    merge_whitelist_teams: tuple[int, ...] = ()
    enable_status_check: bool = False
    status_check_contexts: tuple[str, ...] | None = None
    required_approvals: int = 0
    block_admin_merge_override: bool = False
    require_signed_commits: bool = False
    """Takes no push: this forge can verify no signature. Commits of its API count as signed."""

    def consistent(self) -> RuleSettings:
        """Return it without what means nothing while pushes are forbidden."""
        return dataclasses.replace(
            self,
            enable_push_whitelist=self.enable_push and self.enable_push_whitelist,
            required_approvals=max(self.required_approvals, 0),
        )


KNOWN_SETTINGS = frozenset(field.name for field in dataclasses.fields(RuleSettings))


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a repository. `name` is a branch or a glob."""

    id: int
    repo_id: int
    name: str
    priority: int
    settings: RuleSettings

    @property
    def plain(self) -> bool:
        """Whether the name is a plain name, not a glob."""
        return not _SPECIAL.search(self.name)

    def matches(self, branch: str) -> bool:
        """Say whether the rule matches a branch; plain names ignore case."""
        if self.plain:
            return self.name.lower() == branch.lower()
        try:
            return compile_glob(self.name, "/").fullmatch(branch) is not None
        except InvalidInputError:
            return self.name == branch


class Protections:
    """The rules of one forge."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, repo_id: int, name: str, settings: RuleSettings) -> Rule:
        """
        Add a rule, behind all others.

        Raises:
            ConflictError: There is one of that name.
        """
        now = timestamp()
        with self._store.transaction():
            priority = max((rule.priority for rule in self.of_repository(repo_id)), default=0) + 1
            try:
                self._store.insert(
                    "protections",
                    repo_id=repo_id,
                    name=name,
                    priority=priority,
                    rule=_stored(settings),
                    created=now,
                    updated=now,
                )
            except sqlite3.IntegrityError as error:
                raise ConflictError("Branch protection already exist") from error
        return self._existing(repo_id, name)

    def of_repository(self, repo_id: int) -> list[Rule]:
        """Return the rules of a repository, the one that counts first first."""
        sql = "SELECT * FROM protections WHERE repo_id = ? ORDER BY priority, id"
        return [_rule(row) for row in self._store.rows(sql, repo_id)]

    def find(self, repo_id: int, name: str) -> Rule | None:
        """Return the rule of that name, or None."""
        return next((rule for rule in self.of_repository(repo_id) if rule.name == name), None)

    def for_branch(self, repo_id: int, branch: str) -> Rule | None:
        """Return the rule that counts for a branch, or None: it is not protected."""
        return next((r for r in self.of_repository(repo_id) if r.matches(branch)), None)

    def change(self, rule: Rule, settings: RuleSettings) -> Rule:
        """Replace what a rule says."""
        self._store.update("protections", rule.id, rule=_stored(settings), updated=timestamp())
        return self._existing(rule.repo_id, rule.name)

    def rename(self, rule: Rule, name: str) -> None:
        """Let a rule be about another branch."""
        self._store.update("protections", rule.id, name=name, updated=timestamp())

    def remove(self, rule: Rule) -> None:
        """Remove a rule."""
        self._store.change("DELETE FROM protections WHERE id = ?", rule.id)

    def _existing(self, repo_id: int, name: str) -> Rule:
        rule = self.find(repo_id, name)
        if rule is None:
            raise RuntimeError(f"the rule {name} vanished")
        return rule


def _stored(settings: RuleSettings) -> str:
    return json.dumps(dataclasses.asdict(settings.consistent()))


def _rule(row: sqlite3.Row) -> Rule:
    """Read a row; settings that only earlier releases knew are left out."""
    settings: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in json.loads(row["rule"]).items()
        if key in KNOWN_SETTINGS
    }
    return load(Rule, row, settings=RuleSettings(**settings))


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
