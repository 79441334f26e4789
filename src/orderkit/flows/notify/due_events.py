"""
What is so now, which of it a channel is to be told, and what would go where.

`LedgerReader` reads what notifications need of the ledger: the teams' own rules, and the orders
that ended lately. Files are read once for each version of them.

`present_events` says what is so now, `due_events` which of it a channel is to be told.
`notifications_view` has the events that are so, their channels, and what is due. It writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import BlobSha, CommitSha, TeamName
from orderkit.core.notify.event_texts import Message, message_of
from orderkit.core.notify.order_event import (
    OrderEvent,
    Routing,
    approval_decided,
    due,
    ended,
    row_events,
)
from orderkit.core.order import end_record, team_file
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import (
    NotificationSettings,
    TeamNotifications,
    seconds,
)
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.notified_events import NotifiedEvents
from orderkit.flows.platform import Platform, ledger_snapshot, read_text

ENDS_FOR = timedelta(days=7)
"""How long after its beginning an end is still told."""
_ENDS_MAX = 2_000
_TOMBSTONE, _TEAM_FILE = "tombstone-", "team.yaml"
_STAMP = len("20261123T055124")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LedgerNotes:
    """The ledger at one commit, as far as notifications need it."""

    commit: CommitSha | None = None
    teams: Mapping[str, TeamNotifications] = field(default_factory=dict)
    ends: tuple[OrderEvent, ...] = ()


class LedgerReader:
    """Reads the ledger again if it moved."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._notes = LedgerNotes()
        self._team_files: dict[tuple[PurePosixPath, BlobSha], TeamNotifications] = {}
        self._tombstones: dict[tuple[PurePosixPath, BlobSha], OrderEvent | None] = {}

    def read(self) -> LedgerNotes:
        """
        Return the ledger as it is now.

        Raises:
            OrderkitError: The forge cannot be asked, or the platform has no ledger.
        """
        head = self._platform.forge.head(self._platform.ledger)
        if head is not None and head == self._notes.commit:
            return self._notes
        snapshot = ledger_snapshot(self._platform)
        teams, ends = {}, []
        oldest = (self._platform.clock.now() - ENDS_FOR).astimezone(UTC).strftime("%Y%m%dT%H%M%S")
        for path, blob in snapshot.blobs.items():
            match path.parts:
                case ("data", team, name) if name == _TEAM_FILE:
                    teams[team] = self._team(TeamName(team), path, blob, snapshot.commit)
                case ("data", team, _, name) if name.startswith(_TOMBSTONE):
                    if name.removeprefix(_TOMBSTONE)[:_STAMP] >= oldest:
                        ends.append((team, path, blob))
        newest = sorted(ends, key=lambda end: end[1].name)[-_ENDS_MAX:]
        events: dict[str, OrderEvent] = {}
        for team, path, blob in newest:
            event = self._end(team, path, blob, snapshot.commit)
            if event is not None:
                events[event.order] = event  # of several ends of one id the last
        self._notes = LedgerNotes(snapshot.commit, teams, tuple(events.values()))
        return self._notes

    def _team(
        self, team: TeamName, path: PurePosixPath, blob: BlobSha, commit: CommitSha
    ) -> TeamNotifications:
        key = (path, blob)
        if key not in self._team_files:
            text = read_text(self._platform.forge, self._platform.ledger, path, commit)
            try:
                own = team_file.parse(text or "", team=team).notifications
            except InvalidInputError as error:
                logger.warning("no notifications by the file of team %s: %s", team, error)
                own = TeamNotifications()
            self._team_files[key] = own
        return self._team_files[key]

    def _end(
        self, team: str, path: PurePosixPath, blob: BlobSha, commit: CommitSha
    ) -> OrderEvent | None:
        key = (path, blob)
        if key not in self._tombstones:
            text = read_text(self._platform.forge, self._platform.ledger, path, commit)
            try:
                record = end_record.parse(text or "", name=str(path))
                event = ended(path.parts[2], team, record) if record.ended_at else None
            except InvalidInputError as error:
                logger.warning("a tombstone cannot be read: %s", error)
                event = None
            self._tombstones[key] = event
        return self._tombstones[key]


_FORGOTTEN_AFTER = timedelta(hours=1)
"""For how long an order is absent before what was told of it is forgotten."""


@dataclass(slots=True)
class PastStates:
    """What rows alone do not say: since when an order fails, and that it waited for approval."""

    failing: dict[str, datetime] = field(default_factory=dict)
    waiting: dict[str, tuple[OrderRow, OrderEvent]] = field(default_factory=dict)
    absent: dict[str, datetime] = field(default_factory=dict)
    events: dict[str, tuple[OrderRow, tuple[OrderEvent, ...]]] = field(default_factory=dict)
    """Of rows that do not fail: they depend on the row alone."""

    def failing_since(self, row: OrderRow, now: datetime, after_s: float) -> datetime | None:
        """Return since when an order fails, if that is long enough; it was not Ready meanwhile."""
        if row.phase == "Failing":
            since = min(_time(row.since) or now, now)
            since = min(since, self.failing.setdefault(row.order, since))
            self.failing[row.order] = since
            return since if (now - since).total_seconds() >= after_s else None
        if row.phase in ("Ready", "Attention", "Ending"):
            self.failing.pop(row.order, None)
        return None

    def forgotten(self, notified: set[str], kept: set[str], now: datetime) -> set[str]:
        """
        Return the orders that have been absent for long enough to be forgotten.

        Args:
            notified: Those that any channel was told of.
            kept: Those that are there, or ended lately.
        """
        absent = (notified | self.waiting.keys()) - kept
        self.absent = {order: self.absent.get(order, now) for order in absent}
        old = {order for order, since in self.absent.items() if now - since >= _FORGOTTEN_AFTER}
        for order in old:
            self.waiting.pop(order, None)
        return old


def present_events(
    rows: Mapping[str, OrderRow],
    notes: LedgerNotes,
    past: PastStates,
    settings: NotificationSettings,
    now: datetime,
) -> Iterator[OrderEvent]:
    """Yield what is so now, whoever was told of it."""
    for row in rows.values():
        since = past.failing_since(row, now, seconds(settings.failing_after))
        former, events = past.events.get(row.order, (None, ()))
        if former is not row or row.phase == "Failing":
            events = tuple(row_events(row, since))
            past.events[row.order] = (row, events)
        for event in events:
            if event.kind == "approval-wanted":
                past.waiting[row.order] = (row, event)
            yield event
    for order in past.events.keys() - rows.keys():
        del past.events[order]
        past.failing.pop(order, None)
    for event in notes.ends:
        if event.order not in rows:
            yield event


def due_events(
    events: Iterable[OrderEvent],
    notified: NotifiedEvents,
    rows: Mapping[str, OrderRow],
    past: PastStates,
) -> Iterator[OrderEvent]:
    """Yield what a channel is to be told."""
    for event in events:
        numbered = due(event, notified.of(event.order), began=notified.began)
        if numbered is not None:
            yield numbered
    for order in _decided(notified, rows, past):
        row, last = rows.get(order), notified.of(order).get("approval")
        before, wanted = past.waiting.get(order, (None, last))
        if wanted is None:
            continue
        event = approval_decided(row, wanted, before)
        numbered = due(event, notified.of(order), began=notified.began)
        if numbered is not None:
            yield numbered


def _decided(notified: NotifiedEvents, rows: Mapping[str, OrderRow], past: PastStates) -> set[str]:
    """Return the orders that waited for approval, as far as anybody knows, and do not now."""
    waited = past.waiting.keys() | {
        order
        for order in notified.orders()
        if order in rows
        and (last := notified.of(order).get("approval"))
        and last.kind == "approval-wanted"
    }
    return {
        order
        for order in waited
        if order not in rows or not (rows[order].approval or rows[order].change_approval)
    }


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class RoutedEvent:
    """An event that is so now, and one of its channels."""

    event: OrderEvent
    message: Message
    channel: str
    is_due: bool
    """The channel was not told of it yet."""


@dataclass(frozen=True, slots=True)
class NotificationsView:
    """What would go where."""

    channels: tuple[str, ...]
    events: tuple[RoutedEvent, ...]
    problems: tuple[str, ...]
    """What teams' files want and do not get."""


def notifications_view(
    platform: Platform, model: OrderModel, settings: NotificationSettings, *, address: str
) -> NotificationsView:
    """
    Return what would go where now.

    Args:
        model: Complete.
        address: The service as a browser reaches it.

    Raises:
        OrderkitError: Forge or cluster cannot be asked.
    """
    notes = LedgerReader(platform).read()
    routing = Routing(settings, notes.teams)
    past, now = PastStates(), platform.clock.now()
    rows = {live.row.order: live.row for live in model.rows()}
    present = list(present_events(rows, notes, past, settings, now))

    def routed(channel: str) -> Iterator[RoutedEvent]:
        notified = NotifiedEvents(platform, settings.namespace, channel)
        notified.load(begin=False)
        events = [event for event in present if channel in routing.destinations(event)]
        due = {(e.order, e.topic): e for e in due_events(events, notified, rows, past)}
        decided = [e for e in due.values() if e.kind == "approval-decided"]
        for event in (*events, *decided):
            is_due = (event.order, event.topic) in due
            yield RoutedEvent(event, message_of(event, address=address), channel, is_due)

    channels = tuple(sorted(routing.channels()))
    events = [event for channel in channels for event in routed(channel)]
    events.sort(key=lambda entry: (entry.event.team, entry.event.order, entry.channel))
    return NotificationsView(channels, tuple(events), tuple(routing.problems()))
