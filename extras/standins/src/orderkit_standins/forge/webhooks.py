"""
Webhooks of repositories and organisations in the store, and which events each one receives.

Secrets and authorization headers lie in the state folder as they were given: they have to be sent.
What is sent, and when, is not decided here (``api.webhook_events``, ``deliveries``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.store import Store, load, timestamp

_SINGLE = ("push",)
_GROUPS = {
    "issues": ("issue_comment",),
    "pull_request": ("pull_request_comment", "pull_request_review", "pull_request_sync"),
}
"""Events that switch on others."""
_SWITCHES = {
    f"pull_request_review_{verdict}": "pull_request_review" for verdict in ("approved", "rejected")
}


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """What a caller may choose about a webhook."""

    url: str
    content_type: str
    secret: str = ""
    events: frozenset[str] = frozenset({"push"})
    active: bool = False


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook of a repository (`owner_id` 0) or of an organisation (`repo_id` 0)."""

    id: int
    repo_id: int
    owner_id: int
    settings: WebhookSettings


@dataclass(frozen=True, slots=True)
class WebhookOwner:
    """The repository or the organisation that webhooks belong to: one of the two ids is 0."""

    repo_id: int = 0
    owner_id: int = 0


class Webhooks:
    """The webhooks of one forge."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, owner: WebhookOwner, settings: WebhookSettings) -> Webhook:
        """Add a webhook, also beside one of the same address."""
        now, ids = timestamp(), {"repo_id": owner.repo_id, "owner_id": owner.owner_id}
        columns = {column: value or None for column, value in ids.items()}
        new_id = self._store.insert(
            "hooks", created=now, updated=now, **columns, **_values(settings)
        )
        return Webhook(new_id, owner.repo_id, owner.owner_id, settings)

    def of_owner(self, owner: WebhookOwner) -> list[Webhook]:
        """Return the webhooks of a repository or organisation, oldest first."""
        sql = "SELECT * FROM hooks WHERE repo_id IS ? AND owner_id IS ? ORDER BY id"
        rows = self._store.rows(sql, owner.repo_id or None, owner.owner_id or None)
        return [_webhook(row) for row in rows]

    def find(self, owner: WebhookOwner, hook_id: int) -> Webhook | None:
        """Return one of them, or None."""
        return next((hook for hook in self.of_owner(owner) if hook.id == hook_id), None)

    def change(self, hook: Webhook, settings: WebhookSettings) -> None:
        """Replace its settings."""
        self._store.update("hooks", hook.id, updated=timestamp(), **_values(settings))

    def delete(self, hook: Webhook) -> None:
        """Remove it; what is on its way is still delivered."""
        self._store.change("DELETE FROM hooks WHERE id = ?", hook.id)

    def receivers(self, repo: Repository, event_type: str) -> list[Webhook]:
        """Return the active webhooks of a repository and its owner that receive an event."""
        sql = (
            "SELECT * FROM hooks WHERE active = 1 AND (repo_id = ? OR owner_id = ?)"
            " ORDER BY repo_id IS NULL, id"
        )
        switch = _SWITCHES.get(event_type, event_type)
        webhooks = map(_webhook, self._store.rows(sql, repo.id, repo.owner_id))
        return [webhook for webhook in webhooks if switch in webhook.settings.events]


def events_named(names: Iterable[str]) -> frozenset[str]:
    """Return the events that a list of names switches on; unknown ones are ignored."""
    requested = frozenset(names) or frozenset({"push"})
    events = requested & frozenset(_SINGLE)
    for group, parts in _GROUPS.items():
        events |= frozenset({group, *parts}) if group in requested else requested & frozenset(parts)
        events |= {group} if f"{group}_only" in requested else frozenset()
    return events


def _values(settings: WebhookSettings) -> dict[str, object]:
    unused = {"name": "", "authorization": "", "branch_filter": ""}  # columns of earlier releases
    return {**asdict(settings), **unused, "events": " ".join(sorted(settings.events))}


def _webhook(row: sqlite3.Row) -> Webhook:
    events = frozenset(str(row["events"]).split())
    settings = load(WebhookSettings, row, events=events)
    ids = {column: row[column] or 0 for column in ("repo_id", "owner_id")}
    return load(Webhook, row, settings=settings, **ids)
