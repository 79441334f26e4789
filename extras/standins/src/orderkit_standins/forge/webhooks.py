"""
Webhooks in the store, which events each one receives, and their delivery in the background.

Secrets and authorization headers lie in the state folder as they were given: they have to be sent.
What is sent, and when, is not decided here (``api.webhook_events``).

A delivery is one attempt, outside of the write that causes it. Requests wait in a bounded queue and
are sent by a few threads, which start with the first one. A request that finds the queue full, gets
no answer in time or is still waiting when the process ends is lost, with a line in the log, so
receivers must poll too. (Gitea sends its queue after a restart, and does not repeat a failed
attempt either.) Only addresses of the loopback are called, on the ports that the platform allows
(Gitea: ``webhook.ALLOWED_HOST_LIST``), redirects are not followed, proxies are not used.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import queue
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ground.errors import shorten
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.store import Store, load, timestamp

if TYPE_CHECKING:
    import requests

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


log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
QUEUE_MAX = 1000
WORKERS = 2
_ENDING_S = 0.5
_SCHEME_PORTS = {"http": 80, "https": 443}
_EVENT_OF_TYPE = {
    "pull_request_sync": "pull_request",
    "pull_request_comment": "issue_comment",
    "pull_request_review_approved": "pull_request_approved",
    "pull_request_review_rejected": "pull_request_rejected",
}


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request to a webhook."""

    url: str
    headers: Mapping[str, str]
    body: bytes


Maker = Callable[[Webhook, Repository, str, Any], tuple[dict[str, str], bytes] | None]
"""Makes a face's delivery of an event from Gitea's payload, if it has one of that event."""


def prepared(
    hook: Webhook, repo: Repository, event_type: str, payload: str, makers: Mapping[str, Maker]
) -> Delivery | None:
    """Return the request for an event, signed if the webhook has a secret; None: there is none."""
    maker = makers.get(hook.settings.content_type.partition(":")[0])
    if maker is not None:
        made = maker(hook, repo, event_type, json.loads(payload))
        return Delivery(hook.settings.url, *made) if made else None
    body, secret = payload.encode(), hook.settings.secret.encode()
    signature = hmac.new(secret, body, hashlib.sha256).hexdigest() if secret else ""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Go-http-client/1.1",
        "X-Gitea-Delivery": str(uuid.uuid4()),
        "X-Gitea-Event": _EVENT_OF_TYPE.get(event_type, event_type),
        "X-Gitea-Event-Type": event_type,
        "X-Gitea-Signature": signature,
        "X-Gitea-Hook-Installation-Target-Type": "repository" if hook.repo_id else "organization",
    }
    return Delivery(hook.settings.url, headers, body)


def is_allowed(url: str, ports: AbstractSet[int] | None) -> bool:
    """
    Say whether webhooks may call an address: one of the loopback, by number or as localhost.

    Args:
        url: The address.
        ports: Its port has to be one of these. None: any port.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _SCHEME_PORTS.get(parts.scheme)
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
    return loopback and (ports is None or port in ports)


class Deliveries:
    """The queue and its threads. Nothing here raises into the code that reports an event."""

    def __init__(self, ports: AbstractSet[int] | None = None) -> None:
        """Call these ports of the loopback only. None: any port of it."""
        self._ports = ports
        self._waiting: queue.Queue[Delivery | None] = queue.Queue(QUEUE_MAX)
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._closed = False

    def add(self, delivery: Delivery) -> None:
        """Queue a request and return at once; drop it if the queue is full."""
        if self._closed:
            return
        self._start()
        try:
            self._waiting.put_nowait(delivery)
        except queue.Full:
            log.warning("webhook to %s dropped: %d are waiting", _safe_address(delivery), QUEUE_MAX)

    def close(self) -> None:
        """Drop the queue and end the threads without waiting for a slow listener. Idempotent."""
        self._closed = True
        try:
            while True:
                self._waiting.get_nowait()
        except queue.Empty:
            pass
        with self._starting:
            for _ in self._threads:
                self._waiting.put(None)
            for thread in self._threads:
                thread.join(_ENDING_S)
            self._threads.clear()

    def _start(self) -> None:
        with self._starting:
            if self._threads or self._closed:
                return
            for number in range(WORKERS):
                thread = threading.Thread(target=self._work, name=f"webhooks-{number}", daemon=True)
                thread.start()
                self._threads.append(thread)

    def _work(self) -> None:
        import requests  # the first webhook pays for it

        with requests.Session() as session:
            # no proxies of the environment
            session.trust_env = False
            while (delivery := self._waiting.get()) is not None:
                try:
                    _send(session, delivery, self._ports)
                except Exception as error:  # noqa: BLE001  one bad webhook must not stop the others
                    log.warning(
                        "webhook to %s failed: %s", _safe_address(delivery), shorten(str(error))
                    )


def _send(session: requests.Session, delivery: Delivery, ports: AbstractSet[int] | None) -> None:
    if not is_allowed(delivery.url, ports):
        allowed = "any" if ports is None else ", ".join(map(str, sorted(ports)))
        log.warning(
            "webhook to %s refused: only loopback is allowed, port %s",
            _safe_address(delivery),
            allowed,
        )
        return
    with session.post(
        delivery.url,
        data=delivery.body,
        headers=dict(delivery.headers),
        timeout=TIMEOUT_S,
        allow_redirects=False,
        stream=True,
    ) as answer:
        if not answer.ok:
            log.warning("webhook to %s answered %d", _safe_address(delivery), answer.status_code)


def _safe_address(delivery: Delivery) -> str:
    """Return the address without credentials and query, which may be secret."""
    parts = urlsplit(delivery.url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"
