"""
The events of an order, derived from what its row says now, and the channels they go to.

Nothing notifies anybody when something happens. An order has at most one present event of each
*topic*; it is due on a channel that was told something else about the topic before, or nothing. So
a restart, a second replica and a lost hint all come to the same events. The id of an event is a
digest of the order, the event, what it is about, and how many the channel was told of before.

platform.yaml and the teams' files choose the channels. A team's file reaches the team's own events
only, on channels that the platform offers to teams, or webhooks to hosts that it allows. What a
team's file wants beyond that is left out and reported.

Pure. ``event_texts`` says it in words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlsplit

from ground.errors import InvalidInputError
from orderkit.core.durations import parse_duration
from orderkit.core.order.end_record import EndRecord
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import (
    ChannelSettings,
    EventKind,
    NotificationSettings,
    TeamChannel,
    TeamNotifications,
)

Topic = Literal["health", "approval", "lease"]
_DIGEST_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class OrderEvent:
    """Something to tell about one order. Texts of strangers in it are masked, not yet escaped."""

    kind: EventKind
    topic: Topic
    order: str
    team: str
    kit: str
    subject: str
    """What it is about, for example the commit: a digest."""
    when: str
    """RFC 3339 in UTC; empty: nobody knows."""
    owner: str = ""
    phase: str = ""
    detail: str = ""
    """The reason, the sentence, or who did it."""
    remedy: str = ""
    commit: str = ""
    expires: str = ""
    stage: str = ""
    """How long before `expires` the warning is."""
    repository: str = ""
    number: int = 0
    """How many events of the topic a channel was told of before this one."""

    @property
    def id(self) -> str:
        """The same for the same event on the same channel, whoever derives it."""
        return _digest(self.team, self.order, self.kind, self.subject, str(self.number), size=32)

    def numbered(self, number: int) -> OrderEvent:
        """Return it as the event that follows `number` others."""
        return replace(self, number=number)


@dataclass(frozen=True, slots=True)
class Notified:
    """The last event of a topic that a channel was told of."""

    number: int
    kind: str
    subject: str

    def is_about(self, event: OrderEvent) -> bool:
        """Say whether this is the event, or one that says the same."""
        return (self.kind, self.subject) == (event.kind, event.subject)


NOTHING: Mapping[str, Notified] = {}


def due(event: OrderEvent, notified: Mapping[str, Notified], *, began: str) -> OrderEvent | None:
    """
    Return an event as it is to be sent on a channel; None if the channel needs no message.

    A new channel first learns what needs somebody now, and nothing that was well before.

    Args:
        notified: By topic: the last that the channel was told of this order.
        began: When the channel was first used, RFC 3339 in UTC.
    """
    last = notified.get(event.topic)
    if last is None and event.kind in ("ready", "ended") and event.when and event.when < began:
        return None
    if last is not None and last.is_about(event):
        return None
    return event.numbered(last.number + 1 if last else 0)


def row_events(row: OrderRow, failing_since: datetime | None) -> Iterator[OrderEvent]:
    """
    Yield the present event of each topic that a row has one of.

    Args:
        failing_since: Since when the order has been failing for long enough; None: it is not.
    """
    health = _health(row, failing_since)
    if health is not None:
        yield health
    if row.approval:
        is_reason = row.reason.endswith(row.approval)
        detail = f"It {row.reason}" if is_reason else row.approval
        yield _event(row, "approval-wanted", "approval", row.approval, detail=detail)
    elif row.change_approval:
        detail = f"Change {row.change_approval}"
        yield _event(row, "approval-wanted", "approval", row.change_approval, detail=detail)
    if row.expires and row.lease_warning:
        yield _event(
            row,
            "expiring",
            "lease",
            f"{row.expires} {row.lease_warning}",
            when=_warned(row),
        )


def approval_decided(
    row: OrderRow | None, wanted: OrderEvent | Notified, before: OrderRow | None
) -> OrderEvent:
    """
    Return the event that an order does not wait for approval any more.

    Args:
        row: As it is now; None: the order was withdrawn before it was delivered.
        wanted: What was told before.
        before: The row while it waited; None if nobody knows. One of the rows must be known.

    Raises:
        ValueError: Neither row is known.
    """
    known = row or before
    if known is None:
        raise ValueError("an approval of an unknown order")
    ended = "It was withdrawn." if known.phase == "Waiting" else "The order has ended."
    outcome = "" if row else ended
    event = _event(known, "approval-decided", "approval", "", detail=outcome, when="")
    return replace(event, subject=wanted.subject, phase=row.phase if row else "")


def ended(order: str, team: str, record: EndRecord) -> OrderEvent:
    """Return the event of a tombstone."""
    row = OrderRow(order, team, record.kit, "Ended", owner=record.requester)
    when = record.ended_at.replace("+00:00", "Z")
    return _event(row, "ended", "health", record.started_at, detail=record.requester, when=when)


def _health(row: OrderRow, failing_since: datetime | None) -> OrderEvent | None:
    if row.attention and row.phase in ("Ready", "Attention"):
        sentences = " ".join(attention.sentence for attention in row.attention)
        # A sentence with a number in it, such as what was spent, is not news each time it changes.
        subject = "".join(letter for letter in sentences if not letter.isdigit())
        return _event(row, "attention", "health", subject, detail=sentences)
    if row.phase == "Ready":
        return _event(row, "ready", "health", row.delivered, commit=row.delivered)
    if row.phase == "Failing" and failing_since is not None:
        when = failing_since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return _event(
            row,
            "failing",
            "health",
            row.revision,
            detail=row.reason,
            commit=row.revision,
            when=when,
        )
    return None


def _event(
    row: OrderRow,
    kind: EventKind,
    topic: Topic,
    subject: str,
    *,
    detail: str = "",
    commit: str = "",
    when: str | None = None,
) -> OrderEvent:
    return OrderEvent(
        kind,
        topic,
        row.order,
        row.team,
        row.kit,
        _digest(subject, size=_DIGEST_CHARACTERS),
        row.since if when is None else when,
        owner=row.owner,
        phase=row.phase,
        detail=detail,
        remedy=row.remedy if kind in ("failing", "attention") else "",
        commit=commit,
        expires=row.expires,
        stage=row.lease_warning,
        repository=row.repository,
    )


def _warned(row: OrderRow) -> str:
    """Return when the warning fell due."""
    try:
        end = datetime.fromisoformat(row.expires)
        moment = end - parse_duration(row.lease_warning, field="lease")
    except (InvalidInputError, ValueError, OverflowError):
        return ""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _digest(*texts: str, size: int) -> str:
    joined = "\0".join(texts).encode(errors="surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:size]


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of the platform or of a team."""

    id: str
    """Its name; that of a team's own is ``<team>.<name>``."""
    settings: ChannelSettings
    team: str = ""
    """Whose it is; empty: the platform's."""


def platform_channels(settings: NotificationSettings) -> dict[str, Channel]:
    """Return the platform's channels by id."""
    return {name: Channel(name, channel) for name, channel in settings.channels.items()}


@dataclass(frozen=True, slots=True)
class Routing:
    """The rules of platform and teams."""

    settings: NotificationSettings
    teams: Mapping[str, TeamNotifications] = field(default_factory=dict)
    _known: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict, compare=False)

    def channels(self) -> dict[str, Channel]:
        """Return all usable channels by id: the platform's, and those of teams."""
        channels = platform_channels(self.settings)
        for team, own in sorted(self.teams.items()):
            for name, channel in sorted(own.channels.items()):
                if not self._refusal(channel):
                    id_ = team_channel(team, name)
                    channels[id_] = Channel(id_, ChannelSettings("webhook", channel.url), team)
        return channels

    def problems(self) -> Iterator[str]:
        """Yield what teams' files want and do not get."""
        for team, own in sorted(self.teams.items()):
            for name, channel in sorted(own.channels.items()):
                if why := self._refusal(channel):
                    yield f"team {team}: channel {name}: {why}"
            names = {name for route in own.routes for name in route.to}
            for name in sorted(names - own.channels.keys()):
                offered = self.settings.channels.get(name)
                if offered is None or not offered.for_teams:
                    yield f"team {team}: '{name}' is not a channel that teams may use"

    def destinations(self, event: OrderEvent) -> frozenset[str]:
        """Return the ids of the channels that an event goes to."""
        key = (event.kind, event.team, event.kit)
        if key not in self._known:
            self._known[key] = frozenset(self._destinations(event))
        return self._known[key]

    def _destinations(self, event: OrderEvent) -> Iterator[str]:
        for general in self.settings.routes:
            if general.matches(event.kind, event.team, event.kit):
                yield from general.to
        own = self.teams.get(event.team)
        for route in own.routes if own else ():
            if not route.matches(event.kind, event.team, event.kit):
                continue
            for name in route.to:
                if own and name in own.channels:
                    if not self._refusal(own.channels[name]):
                        yield team_channel(event.team, name)
                elif name in self.settings.channels and self.settings.channels[name].for_teams:
                    yield name

    def _refusal(self, channel: TeamChannel) -> str:
        try:
            host = (urlsplit(channel.url).hostname or "").lower()
        except ValueError:
            host = ""
        if host in map(str.lower, self.settings.team_hosts):
            return ""
        return f"{host or 'the address'} is not in notifications.teamHosts of platform.yaml"


def team_channel(team: str, name: str) -> str:
    """Return the id of a team's own channel: no name of the platform's has a dot."""
    return f"{team}.{name}"
