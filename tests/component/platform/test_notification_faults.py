"""Channels under faults of their receivers, on a real cluster: nothing is lost, nobody waits."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from receivers import Fault, Receiver, receiving

from ground.errors import UnreachableError
from ground.shapes import changed
from orderkit.adapters.notify.notifiers import WebhookNotifier, WebhookTarget
from orderkit.core.notify.event_texts import Message
from orderkit.core.notify.order_event import OrderEvent, due, row_events
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import Digest, NotificationSettings, QuietTime
from orderkit.flows.notify.channel_worker import ChannelPlan, ChannelWorker
from orderkit.flows.notify.notified_events import NotifiedEvents, given_up
from orderkit.ports.clock import Clock
from orderkit.ports.notifier import Notifier
from orderkit_standins.serve_platform import Running

DEADLINE_S = 60.0
ADDRESS = "https://orders.example.org"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


@pytest.fixture
def namespace() -> str:
    return f"notify-{secrets.token_hex(4)}"


def ready(order: str, commit: str = "a" * 40) -> OrderEvent:
    row = OrderRow(order, "ae86", "garage", "Ready", since="2999-01-01T00:00:00Z", delivered=commit)
    (event,) = row_events(row, None)
    return event


def to(receiver: Receiver, *, answer_s: float = 10.0) -> Notifier:
    networks = ("127.0.0.0/8",)
    return WebhookNotifier(WebhookTarget(receiver.url, "key", ADDRESS, networks, answer_s))


def offer(worker: ChannelWorker, *events: OrderEvent) -> None:
    """Offer what the channel was not told of, as the flow does."""
    notified = worker.plan.notified
    offered: dict[str, list[OrderEvent]] = {}
    for event in events:
        if numbered := due(event, notified.of(event.order), began=notified.began):
            offered.setdefault(event.order, []).append(numbered)
    worker.offer(offered)


def stored(running: Running, namespace: str, channel: str = "hook") -> NotifiedEvents:
    """Return what the cluster holds."""
    notified = NotifiedEvents(running.platform, namespace, channel)
    notified.load()
    return notified


@contextmanager
def working(
    running: Running,
    namespace: str,
    notifier: Notifier,
    channel: str = "hook",
    **settings: object,
) -> Iterator[ChannelWorker]:
    notified = stored(running, namespace, channel)
    for_people = bool(settings)
    made = changed(NotificationSettings(digest=Digest(within="0s")), **settings)
    plan = ChannelPlan(channel, notifier, notified, made, for_people, ADDRESS)
    worker = ChannelWorker(plan, running.platform.clock, lambda: True, first_pause_s=0.05)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
        worker.join(DEADLINE_S)


def until(is_met: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not is_met():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.parametrize("fault", ["500", "404", "429", "close", "redirect"])
def test_what_a_receiver_did_not_take_is_sent_again(
    platform: Running, namespace: str, receiver: Receiver, fault: Fault
) -> None:
    receiver.fault = fault
    with working(platform, namespace, to(receiver)) as worker:
        offer(worker, ready("garage-a"), ready("garage-b"))
        receiver.wait(lambda requests: len(requests) >= 2)
        until(lambda: worker.state().failed >= 1)
        assert worker.state().queued == 2
        receiver.fault = ""
        receiver.wait_for(("garage-a", "ready"), ("garage-b", "ready"))
        until(lambda: worker.state().queued == 0)

    assert {request.path for request in receiver.requests()} == {"/hook"}
    first, *more = [r.event["id"] for r in receiver.requests() if r.label[0] == "garage-a"]
    assert set(more) <= {first}
    assert len(receiver.accepted()) == 2


def test_what_was_due_while_a_receiver_was_down_arrives_when_it_is_up(
    platform: Running, namespace: str
) -> None:
    with receiving() as gone:
        port = gone.port
        notifier = to(gone)
    with working(platform, namespace, notifier) as worker:
        offer(worker, *(ready(f"garage-{number}") for number in range(20)))
        until(lambda: worker.state().failed >= 2)
        with receiving(port) as back:
            back.wait_for(*((f"garage-{number}", "ready") for number in range(20)))
            until(lambda: worker.state().queued == 0)
            assert len(back.accepted()) == 20


def test_a_receiver_that_never_finishes_its_answer_delays_no_other_channel(
    platform: Running, namespace: str, receiver: Receiver
) -> None:
    receiver.fault = "drip"
    with (
        receiving() as other,
        working(platform, namespace, to(receiver, answer_s=1.0), "slow") as slow,
        working(platform, namespace, to(other), "quick") as quick,
    ):
        offer(slow, ready("garage-a"))
        receiver.wait(lambda requests: len(requests) == 1)
        offer(quick, ready("garage-a"))
        other.wait_for(("garage-a", "ready"))
        assert slow.state().queued == 1
        until(lambda: slow.state().failed >= 1)


def test_one_order_that_a_receiver_refuses_holds_up_no_other(
    platform: Running, namespace: str, receiver: Receiver
) -> None:
    receiver.fault_of["garage-bad"] = "500"
    with working(platform, namespace, to(receiver)) as worker:
        offer(worker, ready("garage-bad"), *(ready(f"garage-{n}") for n in range(5)))
        receiver.wait_for(*((f"garage-{number}", "ready") for number in range(5)))
        until(lambda: worker.state().queued == 1)


def test_a_kill_between_sending_and_writing_down_repeats_the_same_id(
    platform: Running, namespace: str, receiver: Receiver
) -> None:
    killed = replace(platform, platform=replace(platform.platform, cluster=_unwritable(platform)))
    with working(platform, namespace, to(receiver)):
        pass  # the channel has begun
    with working(killed, namespace, to(receiver)) as worker:
        offer(worker, ready("garage-a"))
        receiver.wait_for(("garage-a", "ready"))
    with working(platform, namespace, to(receiver)) as worker:
        offer(worker, ready("garage-a"))
        receiver.wait(lambda _: len(receiver.accepted()) == 2)
    with working(platform, namespace, to(receiver)) as worker:
        offer(worker, ready("garage-a"))
        offer(worker, ready("garage-a"), ready("garage-z"))
        receiver.wait_for(("garage-z", "ready"))

    first, second, other = (delivery.event["id"] for delivery in receiver.accepted())
    assert first == second != other


def _unwritable(running: Running) -> Any:
    """Return the real cluster, but nothing is written any more, as after a kill."""

    class Unwritable:
        def __getattr__(self, name: str) -> Any:
            if name in ("create", "replace"):
                raise UnreachableError("killed")
            return getattr(running.platform.cluster, name)

    return Unwritable()


def test_a_replica_that_was_replaced_takes_nothing_back(
    platform: Running, namespace: str, receiver: Receiver
) -> None:
    with working(platform, namespace, to(receiver)) as old:
        offer(old, ready("garage-a", "a" * 40))
        receiver.wait_for(("garage-a", "ready"))
        until(lambda: old.state().queued == 0)
        until(lambda: bool(stored(platform, namespace).of("garage-a")))  # written down after that
        with working(platform, namespace, to(receiver)) as new:
            until(lambda: bool(new.plan.notified.of("garage-a")))
            offer(new, ready("garage-a", "b" * 40))
            receiver.wait(lambda _: len(receiver.accepted()) == 2)
        old.plan.notified.note(ready("garage-a", "a" * 40))
        old.plan.notified.flush()

    with working(platform, namespace, to(receiver)) as worker:
        assert worker.plan.notified.of("garage-a")["health"].number == 1


def test_a_hundred_orders_that_fail_are_one_message(platform: Running, namespace: str) -> None:
    notifier = _Noting()
    with working(platform, namespace, notifier, digest=Digest(10, "1s")) as worker:
        offer(worker, *(ready(f"garage-{number}") for number in range(100)))
        until(lambda: worker.state().queued == 0)

    (message,) = notifier.messages
    assert message.title == "100 orders are Ready"
    assert "and 80 more" in message.sentence


class _Noting:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    def send(self, message: Message) -> None:
        self.messages.append(message)


def test_quiet_hours_hold_back_what_is_not_urgent(platform: Running, namespace: str) -> None:
    notifier, always = _Noting(), (QuietTime("00:00", "24:00"),)
    row = OrderRow("garage-b", "ae86", "garage", "Failing", "no quota", revision="a" * 40)
    (failing,) = row_events(row, platform.platform.clock.now())
    with working(platform, namespace, notifier, quiet_hours=always, urgent=("failing",)) as worker:
        offer(worker, ready("garage-a"), failing)
        until(lambda: worker.state().queued == 1)

    assert [message.title for message in notifier.messages] == ["garage-b is failing"]


def test_after_a_day_an_event_is_given_up_and_reported(
    platform: Running, namespace: str, receiver: Receiver
) -> None:
    receiver.fault = "500"
    clock = _Later(platform.platform.clock)
    later = replace(platform, platform=replace(platform.platform, clock=clock))
    with working(later, namespace, to(receiver)) as worker:
        offer(worker, ready("garage-a"))
        until(lambda: worker.state().failed >= 1)
        assert worker.state().given_up == 0
        clock.ahead_s = 86_400.0
        until(lambda: worker.state().given_up == 1)
        offer(worker, ready("garage-a"))
        assert worker.state().queued == 0

    (report,) = given_up(platform.platform.cluster, namespace)["hook"]
    assert (report.order, report.kind) == ("garage-a", "ready")
    assert "answered 500" in report.reason


class _Later:
    """The real clock, moved ahead."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead_s = 0.0

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self.ahead_s)

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s() + self.ahead_s

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
