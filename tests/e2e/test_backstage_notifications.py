"""What a real Backstage shows of an order's events: one notification, its newest state."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import requests
from lab.realbackstage import Backstage
from published import Up
from replicas import until

from ground.shapes import changed
from orderkit.adapters.notify.notifiers import BackstageNotifier
from orderkit.cli.connecting import notify_options, token
from orderkit.core.notify.event_texts import trial_message
from orderkit.core.platform.notification_settings import read_notifications
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.notifying import Notifications
from orderkit.flows.order import placing
from orderkit.flows.order.placing import TaskRequest
from orderkit.ports.notifier import NotDeliveredError
from orderkit.ports.requesters import Requester

PROFILE = "natural"
TEAM = "ae86"
"""It is in the portal's catalog, and the guest is a member."""
DEADLINE_S = 180.0
SPEC = {
    "channels": {"portal": {"type": "backstage"}},
    "routes": [{"to": ["portal"], "teams": [TEAM]}],
    "digest": {"within": "0s"},
}


def ask(backstage: Backstage, method: str, path: str, bearer: str = "") -> Any:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    with requests.Session() as session:
        session.trust_env = False
        answer = session.request(method, f"{backstage.url}{path}", headers=headers, timeout=30)
    assert answer.ok, answer.text
    return answer.json()


def guests_notifications(backstage: Backstage) -> list[dict[str, Any]]:
    """Return what the guest sees, signed in."""
    guest = ask(backstage, "POST", "/api/auth/guest/refresh")["backstageIdentity"]["token"]
    answer = ask(backstage, "GET", "/api/notifications/notifications", guest)
    found: list[dict[str, Any]] = answer["notifications"]
    return found


def wait_for(backstage: Backstage, is_met: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        found = guests_notifications(backstage)
        for notification in found:
            if is_met(notification["payload"]):
                return notification
        assert time.monotonic() < deadline_s, found
        time.sleep(0.2)


def test_the_team_sees_one_notification_with_the_newest_state(up: Up, backstage: Backstage) -> None:
    settings = changed(
        up.settings,
        portal=changed(up.settings.portal, url=backstage.url),
        notifications=read_notifications(SPEC, lambda _: up.state),
    )
    options, model = notify_options(settings), OrderModel(up.platform)
    assert options is not None
    notifications = Notifications(up.platform, model, replace(options, tick_s=0.2))
    name = f"garage-{TEAM}"
    model.start()
    notifications.start()
    try:
        # what is Ready before there is a channel is no news for it
        until(notifications.states, "the channel", 60)
        wanted = TaskRequest(
            "garage", {"team_name": TEAM, "stage": "stage1"}, Requester("user:default/eve")
        )
        placing.order(up.platform, wanted)
        ready = wait_for(backstage, lambda payload: payload["title"] == f"{name} is Ready")
        request = EndRequest(name, "user:default/eve", timeout_s=DEADLINE_S)
        destroy(up.platform, request, on_step=lambda *_: None)
        ended = wait_for(backstage, lambda payload: payload["title"] == f"{name} has ended")
    finally:
        notifications.close()
        model.close()

    assert ready["payload"]["link"] == f"{up.settings.service_address}/orders/{name}"
    assert ready["payload"]["severity"] == "low"
    assert (ready["payload"]["scope"], ready["id"]) == (f"order/{name}", ended["id"])
    assert [
        notification["payload"]["title"]
        for notification in guests_notifications(backstage)
        if notification["payload"]["scope"] == f"order/{name}"
    ] == [f"{name} has ended"]


def test_a_trial_reaches_everybody(up: Up, backstage: Backstage) -> None:
    notifier = BackstageNotifier(backstage.url, token=token(up.settings.portal))
    notifier.send(trial_message("portal", "embedded", address=up.settings.service_address))
    wait_for(backstage, lambda payload: payload["title"] == "Test of the channel portal")


def test_a_token_that_is_no_services_is_refused_with_the_way_out(backstage: Backstage) -> None:
    guest = ask(backstage, "POST", "/api/auth/guest/refresh")["backstageIdentity"]["token"]
    notifier = BackstageNotifier(backstage.url, token=guest)
    with pytest.raises(NotDeliveredError) as refused:
        notifier.send(trial_message("portal", "embedded", address="https://orders.example.org"))
    assert "externalAccess" in refused.value.hint
