"""
Rules that protect branches: what each says, which one counts for a branch, where they are kept.

The first rule that matches counts: lowest priority number, then plain names before globs, then
the oldest. What follows for a push or merge is decided by ``guards``.

Called by ``guards`` and the endpoints.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
from dataclasses import dataclass
from typing import Any

from orderkit.adapters.embedded.forge.store import Store, timestamp
from orderkit.adapters.embedded.globs import compile_glob
from orderkit.core.errors import ConflictError, InvalidInputError

_SPECIAL = re.compile(r"[*?\[\]{}\\]")


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What a rule says, under the names of the API; users and teams are kept by their ids."""

    enable_push: bool = False
    enable_push_whitelist: bool = False
    push_whitelist_usernames: tuple[int, ...] = ()
    push_whitelist_teams: tuple[int, ...] = ()
    push_whitelist_deploy_keys: bool = False
    enable_force_push: bool = False
    enable_force_push_allowlist: bool = False
    force_push_allowlist_usernames: tuple[int, ...] = ()
    force_push_allowlist_teams: tuple[int, ...] = ()
    force_push_allowlist_deploy_keys: bool = False
    enable_merge_whitelist: bool = False
    merge_whitelist_usernames: tuple[int, ...] = ()
    merge_whitelist_teams: tuple[int, ...] = ()
    enable_status_check: bool = False
    status_check_contexts: tuple[str, ...] | None = None
    required_approvals: int = 0
    enable_approvals_whitelist: bool = False
    approvals_whitelist_username: tuple[int, ...] = ()
    approvals_whitelist_teams: tuple[int, ...] = ()
    block_on_rejected_reviews: bool = False
    block_on_official_review_requests: bool = False
    block_on_outdated_branch: bool = False
    dismiss_stale_approvals: bool = False
    ignore_stale_approvals: bool = False
    require_signed_commits: bool = False
    protected_file_patterns: str = ""
    unprotected_file_patterns: str = ""
    block_admin_merge_override: bool = False

    def consistent(self) -> RuleSettings:
        """Return it without what means nothing while pushes are forbidden or free."""
        push = self.enable_push
        force = push and self.enable_force_push
        listed = push and self.enable_push_whitelist
        forced = force and self.enable_force_push_allowlist
        return dataclasses.replace(
            self,
            enable_push_whitelist=listed,
            push_whitelist_deploy_keys=listed and self.push_whitelist_deploy_keys,
            enable_force_push=force,
            enable_force_push_allowlist=forced,
            force_push_allowlist_deploy_keys=forced and self.force_push_allowlist_deploy_keys,
            required_approvals=max(self.required_approvals, 0),
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a repository. `name` is a branch or a glob."""

    id: int
    repo_id: int
    name: str
    priority: int
    settings: RuleSettings
    created: str
    updated: str

    @property
    def plain(self) -> bool:
        """Whether the name is no glob."""
        return not _SPECIAL.search(self.name)

    def matches(self, branch: str) -> bool:
        """Say whether the rule is about a branch; plain names do not mind the case."""
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

    def add(self, repo_id: int, name: str, settings: RuleSettings, *, priority: int = 0) -> Rule:
        """
        Add a rule, behind all others unless it comes with a priority.

        Raises:
            ConflictError: There is one of that name.
        """
        now = timestamp()
        with self._store.transaction():
            last = self._store.row(
                "SELECT max(priority) AS last FROM protections WHERE repo_id = ?", repo_id
            )
            place = priority or int((last["last"] if last else None) or 0) + 1
            try:
                self._store.insert(
                    "INSERT INTO protections (repo_id, name, priority, rule, created, updated)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    repo_id,
                    name,
                    place,
                    json.dumps(dataclasses.asdict(settings.consistent())),
                    now,
                    now,
                )
            except sqlite3.IntegrityError as error:
                raise ConflictError("Branch protection already exist") from error
        return self._named(repo_id, name)

    def of(self, repo_id: int) -> list[Rule]:
        """Return the rules of a repository, the one that counts first first."""
        rows = self._store.rows("SELECT * FROM protections WHERE repo_id = ? ORDER BY id", repo_id)
        return sorted(map(_rule, rows), key=lambda rule: (rule.priority, not rule.plain))

    def find(self, repo_id: int, name: str) -> Rule | None:
        """Return the rule of that name, or None."""
        found = [rule for rule in self.of(repo_id) if rule.name == name]
        return found[0] if found else None

    def for_branch(self, repo_id: int, branch: str) -> Rule | None:
        """Return the rule that counts for a branch, or None: it is not protected."""
        found = [rule for rule in self.of(repo_id) if rule.matches(branch)]
        return found[0] if found else None

    def change(self, rule: Rule, settings: RuleSettings, *, priority: int) -> Rule:
        """Replace what a rule says."""
        self._store.change(
            "UPDATE protections SET rule = ?, priority = ?, updated = ? WHERE id = ?",
            json.dumps(dataclasses.asdict(settings.consistent())),
            priority,
            timestamp(),
            rule.id,
        )
        return self._named(rule.repo_id, rule.name)

    def rename(self, repo_id: int, old: str, new: str) -> None:
        """Let the rule of a branch's own name follow the branch, if the new name is free."""
        self._store.change(
            "UPDATE OR IGNORE protections SET name = ? WHERE repo_id = ? AND name = ?",
            new,
            repo_id,
            old,
        )

    def remove(self, rule: Rule) -> None:
        """Remove a rule."""
        self._store.change("DELETE FROM protections WHERE id = ?", rule.id)

    def _named(self, repo_id: int, name: str) -> Rule:
        found = self.find(repo_id, name)
        if found is None:
            raise RuntimeError(f"the rule {name} vanished")
        return found


def _rule(row: sqlite3.Row) -> Rule:
    said: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in json.loads(row["rule"]).items()
    }
    return Rule(
        id=row["id"],
        repo_id=row["repo_id"],
        name=row["name"],
        priority=row["priority"],
        settings=RuleSettings(**said),
        created=row["created"],
        updated=row["updated"],
    )
