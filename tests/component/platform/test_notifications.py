"""Orders of a running platform notify webhooks: what is so is told once, whoever tells it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import requests
from commands import in_process
from faultproxy import Decision, Fault, FaultProxy, Listed, Plan, open_proxy
from forgehands import client_at
from receivers import Receiver, receiving

from ground.names import RepoId
from ground.objects.kube_objects import ObjectKey
from ground.shapes import changed
from orderkit.adapters.forges import answers
from orderkit.cli.connecting import notify_options, token, webhook_key
from orderkit.core.notify.event_texts import message_of
from orderkit.core.notify.order_event import platform_channels, row_events
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import read_notifications
from orderkit.core.platform.settings import PlatformSettings
from orderkit.core.platform.webhook_key import stamped_signature
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.leader_election import LEASE
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.notified_events import GivenUp, NotifiedEvents
from orderkit.flows.notify.notifying import LEASE_NAME, Notifications
from orderkit.flows.notify.pull_comments import PullComments
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.pulls import PullDraft
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

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
    parsed = read_notifications({**networks, **spec}, lambda _: running.settings.cluster.kubeconfig)
    return changed(running.settings, notifications=parsed)


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
    key = webhook_key(settings, platform_channels(settings.notifications)["hook"])
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


@pytest.fixture
def cut_off(
    platform: Running, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[FaultProxy, Running, Running]]:
    """A proxy before the forge that lets nothing pass; the platform behind it, and as it is."""
    monkeypatch.setattr(answers, "GET_PAUSE_S", 0.001)
    here, settings = platform.platform, platform.settings.forge
    with (
        open_proxy(settings.url) as proxy,
        client_at(proxy.url, settings, here.signatures, read_timeout_s=30) as forge,
    ):
        proxy.plan = Listed([Decision(Fault.DROP_BEFORE)] * 999, lambda *_: True)
        yield proxy, replace(platform, platform=replace(here, forge=forge)), platform


def test_a_forge_that_does_not_answer_is_waited_for(
    cut_off: tuple[FaultProxy, Running, Running], model: OrderModel, team: str, receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    proxy, away, platform = cut_off
    settings = settings_for(platform, to_hook(receiver, teams=[team]))
    with notifying(away, model, settings):
        until(lambda: f"notifications wait: {proxy.url} did not answer" in caplog.text)
        proxy.plan = Plan()
        name = order(platform, team)
        receiver.wait_for((name, "ready"))


class ClockAhead(SystemClock):
    def now(self) -> datetime:
        return super().now() + timedelta(seconds=30)


def test_two_replicas_whose_clocks_differ_tell_each_event_once(
    platform: Running, model: OrderModel, team: str, receiver: Receiver
) -> None:
    settings = settings_for(platform, to_hook(receiver, teams=[team]))
    here = platform.platform
    ahead = replace(
        platform, platform=replace(here, clock=ClockAhead(), other_clock=here.clock.now)
    )
    with ExitStack() as second:
        with notifying(ahead, model, settings):
            second.enter_context(notifying(platform, model, settings))
            name = order(platform, team)
            receiver.wait_for((name, "ready"))
        end(platform, name)
        receiver.wait_for((name, "ended"))

    assert [delivery.label[1] for delivery in receiver.requests()] == ["ready", "ended"]


def test_a_channel_that_is_new_hears_nothing_of_what_was_well_before(
    platform: Running, model: OrderModel, team: str, receiver: Receiver
) -> None:
    former = order(platform, team)
    until(lambda: (live := model.row(former)) is not None and live.row.phase == "Ready")
    # Times of conditions have whole seconds, and so has the server's Date, which uvicorn renews
    # once a second only: a channel that begins within two seconds may call them the same moment.
    time.sleep(2.3)
    settings = settings_for(platform, to_hook(receiver, teams=[team]))
    with notifying(platform, model, settings):
        time.sleep(1.1)
        end(platform, former)
        receiver.wait_for((former, "ended"))

    assert [delivery.label for delivery in receiver.requests()] == [(former, "ended")]


def test_an_open_pull_request_has_one_comment_with_the_newest_state(
    platform: Running, team: str
) -> None:
    name, forge = order(platform, team), platform.platform.forge
    repo = RepoId(team, name)
    head = forge.head(repo)
    assert head is not None
    operation = Operation(f"topic-{name}", "user:default/eve", "A topic")
    forge.ensure_branch(repo, "topic", head)
    change = FileChange(PurePosixPath("NOTES.md"), b"notes", None)
    forge.write(repo, [change], operation, branch="topic")
    pull = forge.open_pull(repo, PullDraft("A topic", "", "topic"), operation)
    proposals = {
        order_id: ledger_pull(platform, f"orderkit/{order_id}-0123456789")
        for order_id in (name, f"{name}-two", f"{name}-gone")
    }

    comments = PullComments(platform.platform.forge, platform.platform.ledger)
    for phase, text in (("Failing", "is failing"), ("Ready", "is Ready")):
        row = OrderRow(name, team, "garage", phase, "no quota @admin")  # type: ignore[arg-type]
        (event,) = row_events(row, platform.platform.clock.now())
        for _ in range(2):
            comments.send(message_of(event, address="https://orders.example.org"))
        (comment,) = comments_of(platform, repo, pull.number)
        assert text in comment
        assert f"https://orders.example.org/orders/{name}" in comment
        assert comments_of(platform, platform.platform.ledger, proposals[name]) == [comment]
    assert comments_of(platform, platform.platform.ledger, proposals[f"{name}-two"]) == []

    gone = OrderRow(f"{name}-gone", team, "garage", "Ready")  # it has no repository any more
    (event,) = row_events(gone, platform.platform.clock.now())
    comments.send(message_of(event, address="https://orders.example.org"))
    (comment,) = comments_of(platform, platform.platform.ledger, proposals[gone.order])
    assert f"{gone.order} is Ready" in comment


def ledger_pull(running: Running, branch: str) -> int:
    """Propose something to the ledger as an order is that waits for approval."""
    forge, ledger = running.platform.forge, running.platform.ledger
    head = forge.head(ledger)
    assert head is not None
    operation = Operation(f"propose-{branch}", "user:default/eve", "An order")
    forge.ensure_branch(ledger, branch, head)
    path = PurePosixPath("data", "notes", branch.replace("/", "-"))
    forge.write(ledger, [FileChange(path, b"x", None)], operation, branch=branch)
    return forge.open_pull(ledger, PullDraft("An order", "", branch), operation).number


def comments_of(running: Running, repo: RepoId, number: int) -> list[str]:
    """Return our comments; the service comments plans, too."""
    answer = requests.get(
        f"{running.settings.forge.url}/api/v1/repos/{repo}/issues/{number}/comments",
        headers={"Authorization": f"token {token(running.settings.forge)}"},
        timeout=30,
    )
    bodies: list[str] = [comment["body"] for comment in answer.json()]
    return [body for body in bodies if "orderkit/notify/" in body]


def test_commands_show_and_try_channels(
    platform: Running, receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = tmp_path / "platform.yaml"
    described.write_text(settings_for(platform, to_hook(receiver)).to_yaml())
    orderkit = in_process(described, capsys)

    tried = orderkit("notify", "test", "hook")
    key = orderkit("notify", "key", "hook").out.strip()
    shown = orderkit("notify", "show", "--json")
    unknown = orderkit("notify", "test", "nobody")

    (delivery,) = receiver.requests()
    stamp = delivery.headers["X-Orderkit-Timestamp"]
    assert tried.out == "hook (webhook) took the message\n"
    assert delivery.headers["X-Orderkit-Signature"] == stamped_signature(key, stamp, delivery.body)
    assert shown.json["channels"] == ["hook"]
    assert (unknown.code, "there are: hook" in unknown.err) == (1, True)
    receiver.fault = "500"
    refused = orderkit("notify", "test", "hook")
    assert (refused.code, "answered 500" in refused.err) == (1, True)


def test_doctor_names_what_was_given_up(
    platform: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str], receiver: Receiver
) -> None:
    settings = settings_for(platform, to_hook(receiver))
    notified = NotifiedEvents(platform.platform, settings.notifications.namespace, "hook")
    notified.load()
    notified.report(GivenUp("garage-a", "failing", "2026-11-23T06:00:00Z", "hook answered 500"))
    described = tmp_path / "platform.yaml"
    described.write_text(settings.to_yaml())

    done = in_process(described, capsys)("doctor", "--json")

    (finding,) = [f for f in done.json["findings"] if f["what"] == "notifications"]
    assert finding["verdict"] == "warn"
    assert "hook: 1, last 'failing' of garage-a" in finding["detail"]
    assert "orderkit notify test" in finding["advice"]


def test_a_process_killed_while_it_sends_is_followed_by_one_that_sends_the_same_id(
    platform: Running, team: str, receiver: Receiver, tmp_path: Path
) -> None:
    settings = settings_for(platform, to_hook(receiver, teams=[team]))
    described = tmp_path / "platform.yaml"
    described.write_text(settings.to_yaml())
    lease = ObjectKey(LEASE, LEASE_NAME, settings.notifications.namespace)
    receiver.fault = "drip"
    with serving_process(described) as first:
        until(lambda: platform.platform.cluster.get(lease) is not None)
        name = order(platform, team)
        receiver.wait(lambda requests: len(requests) >= 1)
        first.kill()
        first.wait()
    receiver.fault = ""
    platform.platform.cluster.delete(lease)  # a test does not wait until it has expired
    with serving_process(described):
        receiver.wait_for((name, "ready"))

    sent, *again = [delivery.event["id"] for delivery in receiver.requests()]
    assert set(again) == {sent}


@contextmanager
def serving_process(platform_file: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "orderkit", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--platform", str(platform_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "runs" in process.stdout.readline()
        try:
            yield process
        finally:
            process.terminate()
