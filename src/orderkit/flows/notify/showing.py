"""What would go where now: events that are so, their channels, and what is due. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orderkit.core.notify.event_texts import Message, message_of
from orderkit.core.notify.order_event import OrderEvent
from orderkit.core.notify.routing import Routing
from orderkit.core.platform.notification_settings import NotificationSettings
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.due_events import LedgerReader, PastStates, due_events, present_events
from orderkit.flows.notify.notified_events import NotifiedEvents
from orderkit.flows.platform import Platform


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
