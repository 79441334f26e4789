"""Orders of a running platform notify webhooks: what is so is told once, whoever tells it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from receivers import Receiver, receiving

from orderkit.cli.connecting import notify_options, webhook_key
from orderkit.cli.serving.embedded_platform import Running
from orderkit.core.platform.notification_settings import read_notifications
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.end.destroying import EndRequest, destroy
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.notifying import Notifications
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.ports.requesters import Requester

DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def model(platform: Running) -> Iterator[OrderModel]:
    """A model of the shared platform."""
    made = OrderModel(platform.platform)
    made.start()
    made.wait_complete(DEADLINE_S)
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


def settings_for(running: Running, spec: dict[str, Any]) -> PlatformSettings:
    """Return the platform's settings with notifications, whose memory nobody else uses."""
    networks = {"allowedNetworks": ["127.0.0.0/8"], "namespace": f"notify-{secrets.token_hex(4)}"}
    parsed = read_notifications({**networks, **spec}, lambda _: running.settings.kubeconfig)
    return replace(running.settings, notifications=parsed)


@contextmanager
def notifying(running: Running, model: OrderModel, settings: PlatformSettings) -> Iterator[None]:
    """Notify as the service does."""
    options = notify_options(settings)
    assert options is not None
    options = replace(options, tick_s=0.2, first_pause_s=0.1, lease_s=3)
    notifications = Notifications(running.platform, model, options)
    notifications.start()
    try:
        yield
    finally:
        notifications.close()


def to_hook(receiver: Receiver, **route: Any) -> dict[str, Any]:
    return {
        "channels": {"hook": {"type": "webhook", "url": receiver.url}},
        "routes": [{"to": ["hook"], **route}],
    }


def order(running: Running, team: str) -> str:
    values = {"team_name": team, "stage": "stage1"}
    run_task(running.platform, TaskRequest("garage", values, Requester("user:default/eve")))
    return f"garage-{team}"


def end(running: Running, name: str) -> None:
    request = EndRequest(name, "user:default/eve", timeout_s=DEADLINE_S)
    destroy(running.platform, request, on_step=lambda *_: None)


def until(is_met: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not is_met():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_new_order_is_told_when_it_is_ready_and_when_it_has_ended(
    platform: Running, model: OrderModel, team: str, receiver: Receiver
) -> None:
    settings = settings_for(platform, to_hook(receiver, teams=[team]))
    with notifying(platform, model, settings):
        name = order(platform, team)
        receiver.wait_for((name, "ready"))
        end(platform, name)
        receiver.wait_for((name, "ended"))

    ready, ended = receiver.accepted()
    assert ready.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert ready.event["specversion"] == "1.0"
    assert ready.event["source"] == platform.settings.service_address
    assert ready.event["data"]["title"] == f"{name} is Ready"
    assert ready.event["data"]["team"] == team
    assert ready.event["data"]["link"] == f"{platform.settings.service_address}/orders/{name}"
    assert ended.event["type"] == "dev.orderkit.order.ended"
    assert "user:default/eve" in ended.event["data"]["sentence"]
    key = webhook_key(settings, settings.notifications.channels["hook"])
    stamp = ready.headers["X-Orderkit-Timestamp"]
    expected = hmac.new(key.encode(), stamp.encode() + b"." + ready.body, hashlib.sha256)
    assert ready.headers["X-Orderkit-Signature"] == f"sha256={expected.hexdigest()}"


def test_a_second_process_tells_nothing_again(
    platform: Running, model: OrderModel, team: str, receiver: Receiver
) -> None:
    settings = settings_for(platform, to_hook(receiver, teams=[team]))
    with notifying(platform, model, settings):
        name = order(platform, team)
        receiver.wait_for((name, "ready"))
    with notifying(platform, model, settings):
        end(platform, name)
        receiver.wait_for((name, "ended"))

    assert [delivery.label[1] for delivery in receiver.requests()] == ["ready", "ended"]


def test_a_channel_that_is_new_hears_nothing_of_what_was_well_before(
    platform: Running, model: OrderModel, team: str, receiver: Receiver
) -> None:
    former = order(platform, team)
    until(lambda: (live := model.row(former)) is not None and live.row.phase == "Ready")
    time.sleep(1.1)  # times of conditions have whole seconds
    settings = settings_for(platform, to_hook(receiver, teams=[team]))
    with notifying(platform, model, settings):
        time.sleep(1.1)
        end(platform, former)
        receiver.wait_for((former, "ended"))

    assert [delivery.label for delivery in receiver.requests()] == [(former, "ended")]
