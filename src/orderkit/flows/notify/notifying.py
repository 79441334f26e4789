"""
Notify about orders, level-based: compare what is so now with what each channel was told.

One thread looks whenever a row changed, and every few seconds because time passes, too. Only one
replica sends: the holder of the Lease. It reads from the cluster what was told, and its channels'
threads deliver the rest (``channel_worker``). Nothing is queued outside memory, because everything
that is still due can be derived again.

Started and closed with the service (``web.service``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from ground.errors import OrderkitError
from ground.objects.kube_objects import ObjectKey
from orderkit.core.notify.order_event import Channel, OrderEvent, Routing, platform_channels
from orderkit.core.platform.notification_settings import (
    NotificationSettings,
    QuietTime,
)
from orderkit.flows.leader_election import LEASE, Candidate, LeaderElection
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.channel_worker import ChannelPlan, ChannelState, ChannelWorker
from orderkit.flows.notify.due_events import (
    LedgerNotes,
    LedgerReader,
    PastStates,
    due_events,
    present_events,
)
from orderkit.flows.notify.notified_events import NotifiedEvents, ensure_namespace
from orderkit.flows.platform import Platform
from orderkit.ports.notifier import Notifier

LEASE_NAME = "orderkit-notifications"
_TICK_S, _GATHER_S = 2.0, 0.2
_JOIN_S = 15.0
_REST = 5.0
"""How much longer than a look the pause after it is: thousands of orders must not keep a core."""

logger = logging.getLogger(__name__)
MakeNotifier = Callable[[Platform, Channel], Notifier]


@dataclass(frozen=True, slots=True)
class NotifyOptions:
    """How one platform's notifications are set up."""

    settings: NotificationSettings
    make_notifier: MakeNotifier
    address: str
    """The service as a browser reaches it."""
    identity: str
    """Different for every process."""
    tick_s: float = _TICK_S
    first_pause_s: float = 2.0
    """After a delivery failed for the first time."""
    lease_s: int = 15


class Notifications:
    """The notifications of one platform in this process."""

    def __init__(self, platform: Platform, model: OrderModel, options: NotifyOptions) -> None:
        """
        Contact nobody yet.

        Raises:
            OrderkitError: A channel of platform.yaml cannot be used: a file or package is missing.
        """
        self._platform, self._model, self._options = platform, model, options
        for channel in platform_channels(options.settings).values():
            options.make_notifier(platform, channel)
        candidate = Candidate(
            ObjectKey(LEASE, LEASE_NAME, options.settings.namespace),
            options.identity,
            options.lease_s,
        )
        self._election = LeaderElection(platform.cluster, platform.clock, candidate)
        self._is_elected = False
        self._ledger = LedgerReader(platform)
        self._past = PastStates()
        self._workers: dict[str, ChannelWorker] = {}
        self._lock = threading.Lock()
        self._reported: frozenset[str] = frozenset()
        self._news, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin."""
        self._unsubscribe = self._model.log.subscribe(self._news.set)
        self._thread.start()

    def close(self) -> None:
        """End what runs, and give the Lease to another replica. Idempotent."""
        self._stop.set()
        self._news.set()
        self._unsubscribe()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)
        self._dismiss(list(self._workers))
        if self._is_elected:
            self._election.release()

    def states(self) -> tuple[ChannelState, ...]:
        """Return the figures of the channels that this process serves; none if it waits."""
        with self._lock:
            workers = tuple(self._workers.values())
        return tuple(worker.state() for worker in workers)

    @property
    def is_leader(self) -> bool:
        """Whether this process is the one that sends."""
        return self._is_elected and self._election.is_leader()

    def _run(self) -> None:
        while not self._stop.is_set():
            began_s = self._platform.clock.monotonic_s()
            try:
                self._turn()
            except OrderkitError as error:
                logger.warning("notifications wait: %s", error)
            except Exception:
                logger.exception("a bug while looking for what to notify about")
            took_s = self._platform.clock.monotonic_s() - began_s
            self._news.wait(self._options.tick_s)
            self._news.clear()
            self._stop.wait(max(_GATHER_S, _REST * took_s))

    def _turn(self) -> None:
        """Look once. Raises OrderkitError if cluster or forge do not answer."""
        if not self._model.state().is_complete:
            return
        if not self._is_elected:
            ensure_namespace(self._platform.cluster, self._options.settings.namespace)
            self._election.start()
            self._is_elected = True
        if not self._election.is_leader():
            self._dismiss(list(self._workers))
            return
        notes = self._ledger.read()
        routing = Routing(self._options.settings, notes.teams)
        self._report_problems(routing)
        self._employ(routing)
        self._offer(routing, notes)

    def _report_problems(self, routing: Routing) -> None:
        problems = frozenset(routing.problems())
        for problem in sorted(problems - self._reported):
            logger.warning("notifications: %s", problem)
        self._reported = problems

    def _employ(self, routing: Routing) -> None:
        """Have a thread for each channel, and none for others."""
        channels = routing.channels()
        former = {
            name
            for name, worker in self._workers.items()
            if name not in channels or worker.plan.quiet != _quiet(routing)
        }
        self._dismiss(former)
        for name, channel in channels.items():
            if name in self._workers:
                continue
            try:
                worker = self._new_worker(channel, routing)
            except OrderkitError as error:
                logger.warning("channel %s cannot be used now: %s", name, error)
                continue
            worker.start()
            with self._lock:
                self._workers[name] = worker

    def _new_worker(self, channel: Channel, routing: Routing) -> ChannelWorker:
        options = self._options
        notified = NotifiedEvents(self._platform, options.settings.namespace, channel.id)
        notified.load()
        plan = ChannelPlan(
            channel.id,
            options.make_notifier(self._platform, channel),
            notified,
            options.settings,
            channel.settings.is_for_people,
            options.address,
            _quiet(routing),
        )
        return ChannelWorker(
            plan,
            self._platform.clock,
            self._election.is_leader,
            first_pause_s=options.first_pause_s,
        )

    def _dismiss(self, names: Iterable[str]) -> None:
        with self._lock:
            workers = [self._workers.pop(name) for name in list(names)]
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join(_JOIN_S)

    def _offer(self, routing: Routing, notes: LedgerNotes) -> None:
        now = self._platform.clock.now()
        rows = {live.row.order: live.row for live in self._model.rows()}
        events = list(present_events(rows, notes, self._past, routing.settings, now))
        self._forget(rows.keys() | {event.order for event in notes.ends}, now)
        for name, worker in self._workers.items():
            notified = worker.plan.notified
            offered: dict[str, list[OrderEvent]] = {}
            channel_events = (e for e in events if name in routing.destinations(e))
            for event in due_events(channel_events, notified, rows, self._past):
                if name in routing.destinations(event):
                    offered.setdefault(event.order, []).append(event)
            worker.offer(offered)

    def _forget(self, kept: set[str], now: datetime) -> None:
        """Forget orders that have been gone for long."""
        memories = [worker.plan.notified for worker in self._workers.values()]
        notified_orders = set[str]().union(*(notified.orders() for notified in memories))
        for order in self._past.forgotten(notified_orders, kept, now):
            for notified in memories:
                notified.forget(order)


def _quiet(routing: Routing) -> dict[str, tuple[QuietTime, ...]]:
    return {t: own.quiet_hours for t, own in routing.teams.items() if own.quiet_hours}
