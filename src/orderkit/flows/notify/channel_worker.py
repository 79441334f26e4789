"""
One channel's deliveries: a thread that sends what is due and notes what was told.

`offer` replaces what is due; an event that is no longer true is not sent. Events of one order are
sent one after the other, and one that fails holds up only this order. A failure that concerns the
receiver, or its Retry-After, pauses the channel. Channels share nothing, so a receiver that is down
or slow delays nobody else. What is sent is noted before it is written down: if the process is
killed in between, the event is sent again with the same id.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ground.errors import OrderkitError, UnreachableError, shorten
from ground.secrets import redact
from orderkit.core.notify.event_texts import Message, digest_of, message_of
from orderkit.core.notify.order_event import OrderEvent, Topic
from orderkit.core.platform.notification_settings import NotificationSettings, QuietTime, seconds
from orderkit.flows.notify.notified_events import GivenUp, NotifiedEvents
from orderkit.flows.repeating import WorkerThread
from orderkit.ports.clock import Clock
from orderkit.ports.notifier import NotDeliveredError, Notifier

GIVE_UP_S = 86_400.0
"""For how long a delivery is tried."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 900.0
_IDLE_S = 1.0
_REASON_MAX = 200

logger = logging.getLogger(__name__)
DueEvents = Mapping[str, Sequence[OrderEvent]]
"""By order: at most one event of each topic."""


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """How a channel delivers."""

    id: str
    notifier: Notifier
    notified: NotifiedEvents
    settings: NotificationSettings
    for_people: bool
    """Quiet hours and digests apply."""
    address: str
    """The service as a browser reaches it."""
    quiet: Mapping[str, tuple[QuietTime, ...]] = field(default_factory=dict)
    """By team: its own quiet hours, beside the platform's."""


@dataclass(slots=True)
class _Delivery:
    """An event that is due."""

    event: OrderEvent
    since_s: float
    failures: int = 0
    not_before_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ChannelState:
    """Figures of one channel since the process started."""

    channel: str
    sent: Mapping[str, int]
    """Events by kind."""
    failed: int
    """Attempts."""
    given_up: int
    queued: int
    age_s: float
    """For how long the oldest event is due; 0 if none is."""
    problem: str = ""
    """Why the last attempt failed; empty if it did not."""


class ChannelWorker(WorkerThread):
    """Delivers to one channel. Thread-safe."""

    def __init__(
        self,
        plan: ChannelPlan,
        clock: Clock,
        may_send: Callable[[], bool],
        *,
        first_pause_s: float = _FIRST_PAUSE_S,
    ) -> None:
        super().__init__(f"notify {plan.id}")
        self.plan = plan
        self._clock, self._may_send, self._first_pause_s = clock, may_send, first_pause_s
        self._gather_s = seconds(plan.settings.digest.within) if plan.for_people else 0.0
        self._due: dict[tuple[str, Topic], _Delivery] = {}
        self._paused_until_s = 0.0
        self._failures_in_a_row = 0
        self._is_dirty = False
        self._sent: Counter[str] = Counter()
        self._failed = self._given_up = 0
        self._problem = ""

    def offer(self, events: DueEvents) -> None:
        """Take everything that is due now; what was due before and is not any more is dropped."""
        now_s = self._clock.monotonic_s()
        with self._wake:
            due: dict[tuple[str, Topic], _Delivery] = {}
            for order, order_events in events.items():
                for event in order_events:
                    known = self._due.get((order, event.topic))
                    is_known = known is not None and known.event.id == event.id
                    delivery = known if known and is_known else _Delivery(event, now_s)
                    due[order, event.topic] = delivery
            if due.keys() != self._due.keys() or any(
                self._due[key] is not delivery for key, delivery in due.items()
            ):
                # Of one order, what is due for longer goes first.
                self._due = dict(sorted(due.items(), key=lambda item: item[1].since_s))
                self._wake.notify_all()

    def state(self) -> ChannelState:
        """Return the figures."""
        now_s = self._clock.monotonic_s()
        with self._wake:
            age_s = max((now_s - entry.since_s for entry in self._due.values()), default=0.0)
            return ChannelState(
                self.plan.id,
                dict(self._sent),
                self._failed,
                self._given_up,
                len(self._due),
                age_s,
                self._problem,
            )

    def _run(self) -> None:
        while not self._is_closed:
            try:
                batch = self._next_batch()
                if batch and self._may_send():
                    self._deliver(batch)
                elif batch:
                    self._wait()
                # killed before this, the next process sends the event again with the same id
                if self._is_dirty:
                    self._write_down()
            except Exception:
                logger.exception("a bug while notifying %s", self.plan.id)
                self._pause(self._backoff_s(1))

    def _wait(self) -> None:
        with self._wake:
            if not self._is_closed:
                self._wake.wait(_IDLE_S)

    def _next_batch(self) -> list[_Delivery]:
        """Return what to send in one message: several events of a kind, or one; wait if none."""
        with self._wake:
            ready = self._ready()
            if not ready and not self._is_closed:
                self._wake.wait(self._idle_s())
                ready = self._ready()
        if not ready or self._is_closed:
            return []
        first = ready[0]
        if not self.plan.for_people:
            return [first]
        event = first.event
        alike = [e for e in ready if (e.event.kind, e.event.team) == (event.kind, event.team)]
        return alike if len(alike) >= self.plan.settings.digest.from_ else [first]

    def _ready(self) -> list[_Delivery]:
        """Return what may be sent now: of each order the first event that is due."""
        now_s = self._clock.monotonic_s()
        if now_s < self._paused_until_s:
            return []
        now, orders, ready = self._clock.now(), set[str](), []
        for (order, _), delivery in self._due.items():
            if order in orders or self._is_quiet(delivery.event, now):
                continue
            orders.add(order)
            if now_s >= max(delivery.not_before_s, delivery.since_s + self._gather_s):
                ready.append(delivery)
        return ready

    def _idle_s(self) -> float:
        """Return how long nothing can be sent, as far as that is known."""
        times_s = [max(d.not_before_s, d.since_s + self._gather_s) for d in self._due.values()]
        next_s = max(min(times_s, default=0.0), self._paused_until_s)
        rest_s = next_s - self._clock.monotonic_s()
        return min(rest_s, _IDLE_S) if rest_s > 0 else _IDLE_S

    def _is_quiet(self, event: OrderEvent, now: datetime) -> bool:
        plan = self.plan
        if not plan.for_people or event.kind in plan.settings.urgent:
            return False
        times = (*plan.settings.quiet_hours, *plan.quiet.get(event.team, ()))
        return any(time.ends(now) is not None for time in times)

    def _deliver(self, batch: Sequence[_Delivery]) -> None:
        events = [delivery.event for delivery in batch]
        message = self._message(events)
        try:
            self.plan.notifier.send(message)
        except OrderkitError as error:
            self._fail(batch, error)
            return
        with self._wake:
            self._problem, self._failures_in_a_row = "", 0
            for delivery in batch:
                self._done(delivery)
                self._sent[delivery.event.kind] += 1

    def _message(self, events: Sequence[OrderEvent]) -> Message:
        if len(events) == 1:
            return message_of(events[0], address=self.plan.address)
        return digest_of(events, address=self.plan.address)

    def _done(self, delivery: _Delivery) -> None:
        """Note it as told; whether it is still due or was replaced meanwhile."""
        event = delivery.event
        self.plan.notified.note(event)
        self._is_dirty = True
        if self._due.get((event.order, event.topic)) is delivery:
            del self._due[event.order, event.topic]

    def _fail(self, batch: Sequence[_Delivery], error: OrderkitError) -> None:
        reason = shorten(redact(str(error)), limit=_REASON_MAX)
        now_s = self._clock.monotonic_s()
        given_up: list[OrderEvent] = []
        with self._wake:
            if self._problem != reason:
                logger.warning("channel %s: %s", self.plan.id, reason)
            self._problem = reason
            self._failed += 1
            self._failures_in_a_row += 1
            for delivery in batch:
                delivery.failures += 1
                delivery.not_before_s = now_s + self._backoff_s(delivery.failures)
                if now_s - delivery.since_s >= GIVE_UP_S:
                    self._done(delivery)
                    self._given_up += 1
                    given_up.append(delivery.event)
            retry_after_s = error.retry_after_s if isinstance(error, NotDeliveredError) else None
            if retry_after_s is not None:
                self._pause(retry_after_s)
            elif isinstance(error, UnreachableError | NotDeliveredError):
                # One order after the other would otherwise wait for a receiver that is down.
                self._pause(self._backoff_s(self._failures_in_a_row) / 2)
        self._report(given_up, reason)

    def _report(self, events: Sequence[OrderEvent], reason: str) -> None:
        when = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        for event in events:
            logger.error(
                "channel %s: gave up '%s' of %s after a day: %s",
                self.plan.id,
                event.kind,
                event.order,
                reason,
            )
            try:
                self.plan.notified.report(GivenUp(event.order, event.kind, when, reason))
            except OrderkitError as error:
                logger.warning("channel %s: not written down: %s", self.plan.id, error)

    def _write_down(self) -> None:
        try:
            self.plan.notified.flush()
            self._is_dirty = False
        except OrderkitError as error:
            logger.warning("channel %s: what was told is not written: %s", self.plan.id, error)
            self._wait()

    def _pause(self, pause_s: float) -> None:
        self._paused_until_s = max(self._paused_until_s, self._clock.monotonic_s() + pause_s)

    def _backoff_s(self, failures: int) -> float:
        # bounded, since a float overflows at 2.0 ** 1024
        longest_s = min(self._first_pause_s * 2.0 ** min(failures - 1, 20), _LONGEST_PAUSE_S)
        return longest_s * random.uniform(0.7, 1.0)  # noqa: S311 - no secret
