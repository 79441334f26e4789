"""What receivers of notifications may not learn, and where strangers' words do nothing there."""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from receivers import Receiver, receiving, smtp_server
from replicas import until

from ground.errors import InvalidInputError, OrderkitError, RefusedError
from ground.names import TeamName
from ground.shapes import changed
from orderkit.adapters.notify.notifiers import (
    AppriseNotifier,
    BackstageNotifier,
    WebhookNotifier,
    WebhookTarget,
    judged_addresses,
)
from orderkit.cli.connecting import notify_options
from orderkit.core.notify.event_texts import Message, message_of, to_markdown
from orderkit.core.notify.order_event import row_events
from orderkit.core.order import team_file
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import read_notifications
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.notifying import Notifications
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.platform import write_ledger
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import Operation
from orderkit.ports.notifier import NotDeliveredError
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

ADDRESS = "https://orders.example.org"
TEXTS = (
    "<img src=x onerror=alert(1)>",
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<!channel> <@U012AB3CD> <https://evil.example|your bank>",
    "&lt;!channel&gt; &lt;https://evil.example|bank&gt;",
    "@everyone @admin <at>all</at>",
    "x\r\nBcc: all@example.org\r\n\r\n<b>body</b>",
    "``` </code><b>x</b> `",
    "*bold* _it_ ~no~",
    "\x1b[2J\x9b31m\u202egnp.exe",
)
HOSTILE = " ".join(TEXTS)
TOKEN = "Hq7-token-that-nobody-may-see"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


def hostile_message() -> Message:
    row = OrderRow(
        f"garage-{HOSTILE}", "ae86", "garage", "Failing", HOSTILE, HOSTILE, owner=HOSTILE
    )
    (event,) = row_events(row, datetime(2026, 11, 23, tzinfo=UTC))
    return message_of(event, address=ADDRESS)


def test_a_team_hears_of_its_own_orders_only(platform: Running) -> None:
    teams = [f"hears-{secrets.token_hex(3)}" for _ in range(2)]
    for team in teams:
        add_team(platform.platform, TeamName(team), requester="user:default/test")
    spec = {
        "teamHosts": ["127.0.0.1"],
        "allowedNetworks": ["127.0.0.0/8"],
        "namespace": f"notify-{secrets.token_hex(4)}",
    }
    settings = changed(
        platform.settings,
        notifications=read_notifications(spec, lambda _: platform.settings.cluster.kubeconfig),
    )
    options = notify_options(settings)
    assert options is not None
    model = OrderModel(platform.platform)
    with receiving() as first, receiving() as second:
        for team, receiver in zip(teams, (first, second), strict=True):
            write_team_file(platform, team, receiver.url, other=teams[team == teams[0]])
        notifications = Notifications(platform.platform, model, replace(options, tick_s=0.2))
        model.start()
        notifications.start()
        try:
            # what is Ready before there is a channel is no news for it
            until(lambda: len(notifications.states()) == len(teams), "both channels", 60)
            for team in teams:
                values = {"team_name": team, "stage": "stage1"}
                requester = Requester("user:default/eve")
                run_task(platform.platform, TaskRequest("garage", values, requester))
            for team, receiver in zip(teams, (first, second), strict=True):
                receiver.wait_for((f"garage-{team}", "ready"))
        finally:
            notifications.close()
            model.close()

        for team, receiver in zip(teams, (first, second), strict=True):
            heard = {delivery.event["data"]["team"] for delivery in receiver.requests()}
            assert heard == {team}
        signatures = {
            receiver.requests()[0].headers["X-Orderkit-Signature"] for receiver in (first, second)
        }
        assert len(signatures) == 2


def write_team_file(running: Running, team: str, url: str, *, other: str) -> None:
    """Give a team a webhook, and a route that also wants the other team's."""
    spec = {
        "channels": {"bot": {"url": url}},
        "routes": [{"to": ["bot"]}, {"to": [f"{other}.bot"]}],
    }
    name = TeamName(team)
    text = (
        f"apiVersion: orderkit.dev/v1alpha1\nkind: Team\nmetadata: {{name: {team}}}\n"
        f"spec: {{notifications: {json.dumps(spec)}}}\n"
    )
    team_file.parse(text, team=name)
    operation = Operation(f"notify-{team}", "user:default/test", "team file")
    write_ledger(running.platform, {team_file.path_of(name): text}, operation)


def test_a_mail_has_one_subject_and_no_markup() -> None:
    with smtp_server() as (port, mails):
        to_mail = f"mailto://127.0.0.1:{port}?from=orders@example.org&to=team@example.org"
        AppriseNotifier("mail", to_mail).send(hostile_message())

    (mail,) = mails
    parsed = message_from_bytes(mail.data, policy=policy.default)
    assert mail.recipients == ("TO:<team@example.org>",)
    assert parsed["Bcc"] is None
    assert len(parsed.get_all("Subject", [])) == 1
    assert "<" not in parsed["Subject"]
    body = parsed.get_body(preferencelist=("html", "plain"))
    assert body is not None
    assert "<img" not in body.get_content()
    assert f"{ADDRESS}/orders/" in body.get_content()


@pytest.mark.parametrize(
    "address",
    [
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "workflows://example.org/w/s",
        "matrix://eve:lantern-59@127.0.0.1:9/#team?mode=matrix",
    ],
)
def test_a_chat_reads_no_link_mention_or_markup(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Apprise would post is looked at; it knows its services' addresses by itself."""
    posted: list[str] = []

    def note(_session: object, **request: Any) -> Any:
        posted.append(str(request["data"]))
        raise requests.ConnectionError

    monkeypatch.setattr(requests.Session, "request", note)
    with pytest.raises(NotDeliveredError):
        AppriseNotifier("chat", address).send(hostile_message())

    (text,) = posted
    assert "garage-" in text
    for markup in ("<!", "<@", "|your bank", "<http", "](http", "<img", "<at>", "@everyone"):
        assert markup not in text
    if address.startswith("slack"):  # others show entities as they are
        assert not re.search(r"&lt;!channel(&gt;|>)", text)


def test_a_comment_links_and_mentions_nobody() -> None:
    html = MarkdownIt("commonmark", {"html": True}).render(to_markdown(hostile_message()))
    tags = set(re.findall(r"</?([a-z0-9]+)", html))
    assert tags <= {"p", "strong", "code", "a", "em"}
    assert "evil.example" not in "".join(re.findall(r'(?:href|src)="([^"]*)"', html))
    outside = re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL)
    assert not re.search(r"@\w", outside)


def test_backstage_gets_text_and_no_strangers_as_recipients(receiver: Receiver) -> None:
    notifier = BackstageNotifier(f"http://127.0.0.1:{receiver.port}", token=TOKEN)
    notifier.send(hostile_message())
    (delivery,) = receiver.requests()
    assert delivery.event["recipients"]["entityRef"] == ["group:default/ae86"]
    assert delivery.event["payload"]["link"].startswith(ADDRESS)
    assert "\n" not in delivery.event["payload"]["title"]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",  # noqa: S104 - where it may not go
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b::10.1.2.3]",
        "[64:ff9b:1::10.1.2.3]",
        "[2002:7f00:1::]",
        "[2002:808:808::1]",
        "[2001::1]",
        "[::127.0.0.1]",
        "[fec0::1]",
        "[3fff::1]",
        "[2001:db8::1]",
        "[5f00::1]",
        "192.0.0.192",
        "192.88.99.1",
        "255.255.255.255",
        "168.63.129.16",
        "100.100.100.200",
        "[fd00:ec2::254]",
    ],
)
def test_a_webhook_reaches_no_address_that_is_not_public(host: str, receiver: Receiver) -> None:
    target = WebhookTarget(f"http://{host}:{receiver.port}/hook", "key", ADDRESS)
    with pytest.raises(RefusedError, match="not a public address"):
        WebhookNotifier(target).send(hostile_message())
    assert receiver.requests() == []


@pytest.mark.parametrize(
    "host", ["8.8.8.8", "[2606:4700::1]", "[64:ff9b::808:808]", "[::ffff:8.8.8.8]"]
)
def test_a_webhook_may_go_to_public_addresses(host: str) -> None:
    assert judged_addresses(host.strip("[]"), 443, ()) == [host.strip("[]")]


@given(st.ip_addresses(v=6) | st.ip_addresses(v=4))
def test_what_python_calls_private_is_not_public(address: IPv4Address | IPv6Address) -> None:
    try:
        judged_addresses(str(address), 443, ())
    except RefusedError:
        return
    plain = getattr(address, "ipv4_mapped", None) or address
    translated = address.version == 6 and address in ip_network("64:ff9b::/96")
    assert plain.is_global or translated
    assert not plain.is_multicast


def test_a_name_that_cannot_be_looked_up_is_a_failure_and_no_bug() -> None:
    for host in ("a..b", f"{'a' * 64}.example.org"):
        with pytest.raises(NotDeliveredError, match="cannot be reached"):
            WebhookNotifier(WebhookTarget(f"http://{host}/", "key", ADDRESS)).send(
                hostile_message()
            )


def test_a_name_is_looked_up_once_and_that_address_is_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is public when it is judged and private a moment later reaches nothing."""
    answers = iter(["203.0.114.1", "127.0.0.1", "127.0.0.1"])
    connected: list[tuple[str, int]] = []

    def look_up(_host: str, port: int, **_: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def connect(address: tuple[str, int], **_: object) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    target = WebhookTarget(f"http://rebinding.example.org:{receiver.port}/", "key", ADDRESS)
    with pytest.raises(NotDeliveredError):
        WebhookNotifier(target).send(hostile_message())
    assert connected == [("203.0.114.1", receiver.port)]
    assert receiver.requests() == []


@pytest.mark.parametrize(
    "address",
    [
        f"json://user:{TOKEN}@127.0.0.1",
        f"file:///etc/passwd?token={TOKEN}",
        f"syslog://{TOKEN}",
        f"ssh://{TOKEN}@host",
        f"mailto://{TOKEN}",
        TOKEN,
    ],
)
def test_apprise_reaches_chats_and_mail_only_and_its_address_is_not_shown(address: str) -> None:
    with pytest.raises((RefusedError, InvalidInputError)) as raised:
        AppriseNotifier("oncall", address)
    assert "notifications.channels.oncall.urlFile" in str(raised.value)
    assert TOKEN not in f"{raised.value} {raised.value.hint}"


def test_a_failure_shows_no_address(caplog: pytest.LogCaptureFixture) -> None:
    with smtp_server() as (port, _):
        pass
    address = f"mailto://eve:{TOKEN}@127.0.0.1:{port}?from=a@example.org&to=b@example.org"
    with pytest.raises(OrderkitError) as raised:
        AppriseNotifier("oncall", address).send(hostile_message())
    assert TOKEN not in f"{raised.value} {raised.value.hint} {caplog.text}"
