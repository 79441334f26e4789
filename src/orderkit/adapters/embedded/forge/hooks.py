"""
Webhooks of repositories and organisations, in the store, and who wants which event.

Secrets and authorization headers lie in the state folder as they were given: they have to be
sent. What is sent, and when, is not decided here (``api.events``, ``deliveries``).

Called by ``api.hooks`` and ``api.events``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.store import Store, timestamp
from orderkit.adapters.embedded.globs import compile_glob

_PLAIN = ("create", "push", "delete", "fork", "repository", "wiki", "release", "package", "status")
_ISSUE = ("issue_assign", "issue_label", "issue_milestone", "issue_comment")
_PULL = (
    "pull_request_assign",
    "pull_request_label",
    "pull_request_milestone",
    "pull_request_comment",
    "pull_request_review",
    "pull_request_review_request",
    "pull_request_sync",
)
BRANCHES = "refs/heads/"


@dataclass(frozen=True, slots=True)
class HookSettings:
    """What a caller may choose about a webhook."""

    url: str
    content_type: str
    name: str = ""
    secret: str = ""
    events: frozenset[str] = frozenset({"push"})
    branch_filter: str = ""
    authorization: str = ""
    active: bool = False


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook of a repository (`owner_id` 0) or of an organisation (`repo_id` 0)."""

    id: int
    repo_id: int
    owner_id: int
    settings: HookSettings
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class HookOwner:
    """Where webhooks belong to: one of the two ids is 0."""

    repo_id: int = 0
    owner_id: int = 0


class Hooks:
    """The webhooks of one forge."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, place: HookOwner, settings: HookSettings) -> Hook:
        """Add a webhook, also beside one of the same address."""
        now = timestamp()
        new_id = self._store.insert(
            "INSERT INTO hooks (repo_id, owner_id, created, updated, url, content_type, name,"
            " secret, events, branch_filter, authorization, active)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            place.repo_id or None,
            place.owner_id or None,
            now,
            now,
            *_values(settings),
        )
        return Hook(new_id, place.repo_id, place.owner_id, settings, now, now)

    def of(self, place: HookOwner) -> list[Hook]:
        """Return the webhooks of a repository or organisation, oldest first."""
        rows = self._store.rows(
            "SELECT * FROM hooks WHERE repo_id IS ? AND owner_id IS ? ORDER BY id",
            place.repo_id or None,
            place.owner_id or None,
        )
        return [_hook(row) for row in rows]

    def find(self, place: HookOwner, hook_id: int) -> Hook | None:
        """Return one of them, or None."""
        return next((hook for hook in self.of(place) if hook.id == hook_id), None)

    def change(self, hook: Hook, settings: HookSettings) -> None:
        """Replace its settings."""
        self._store.change(
            "UPDATE hooks SET updated = ?, url = ?, content_type = ?, name = ?, secret = ?,"
            " events = ?, branch_filter = ?, authorization = ?, active = ? WHERE id = ?",
            timestamp(),
            *_values(settings),
            hook.id,
        )

    def delete(self, hook: Hook) -> None:
        """Remove it; what is on its way is still delivered."""
        self._store.change("DELETE FROM hooks WHERE id = ?", hook.id)

    def wanting(self, repo: RepoRow, event_type: str, ref: str = "") -> list[Hook]:
        """
        Return the active webhooks of a repository and its owner that want an event.

        Args:
            ref: The full name of the reference it is about, if it is about one: then the
                webhook's branch filter decides too.
        """
        rows = self._store.rows(
            "SELECT * FROM hooks WHERE active = 1 AND (repo_id = ? OR owner_id = ?)"
            " ORDER BY repo_id IS NULL, id",
            repo.id,
            repo.owner_id,
        )
        found = [_hook(row) for row in rows]
        return [
            hook
            for hook in found
            if event_type in hook.settings.events and lets_through(hook.settings, ref)
        ]


def events_meant(names: Iterable[str]) -> frozenset[str]:
    """Return the events that a list of names switches on; unknown ones are ignored."""
    wanted = frozenset(names) or frozenset({"push"})
    issue = {"issues"} & wanted
    pull = {"pull_request"} & wanted
    return frozenset(
        {
            *(each for each in _PLAIN if each in wanted),
            *(each for each in _ISSUE if issue or each in wanted),
            *(each for each in _PULL if pull or each in wanted),
            *(["issues"] if issue or "issues_only" in wanted else []),
            *(["pull_request"] if pull or "pull_request_only" in wanted else []),
        }
    )


def lets_through(settings: HookSettings, ref: str) -> bool:
    """Say whether the branch filter admits a reference; it filters nothing else."""
    if not ref or settings.branch_filter in ("", "*", "**"):
        return True
    pattern = compile_glob(settings.branch_filter)
    is_branch = ref.startswith(BRANCHES)
    return bool((is_branch and pattern.match(ref.removeprefix(BRANCHES))) or pattern.match(ref))


def _values(settings: HookSettings) -> tuple[object, ...]:
    return (
        settings.url,
        settings.content_type,
        settings.name,
        settings.secret,
        " ".join(sorted(settings.events)),
        settings.branch_filter,
        settings.authorization,
        int(settings.active),
    )


def _hook(row: sqlite3.Row) -> Hook:
    return Hook(
        id=row["id"],
        repo_id=row["repo_id"] or 0,
        owner_id=row["owner_id"] or 0,
        settings=HookSettings(
            url=row["url"],
            content_type=row["content_type"],
            name=row["name"],
            secret=row["secret"],
            events=frozenset(str(row["events"]).split()),
            branch_filter=row["branch_filter"],
            authorization=row["authorization"],
            active=bool(row["active"]),
        ),
        created=row["created"],
        updated=row["updated"],
    )
