"""Requests that are too many, too slow, too deep or not allowed, and the line each one leaves."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attackedservice import AttackedService, attacked_service

from ground.errors import InvalidInputError
from orderkit.core.platform.service_access import (
    RIGHTS,
    AccessSettings,
    Client,
    digest_of,
    write_clients,
)
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.team.teams import add_team
from orderkit.ports.requesters import Requester
from orderkit.web.client_time_limits import ClientTimeLimits
from orderkit.web.exchange import BODY_MAX_BYTES
from orderkit_standins.serve_platform import Running
from yamlfiles import yaml11

TOKEN = "okt_ours_0123456789"
OURS, THEIRS = "ours", "rx7"
PER_MINUTE, BURST = 60, 10
MANY = 30
DEEP = "[" * 400 + "]" * 400


@pytest.fixture
def limited(platform: Running, tmp_path: Path) -> Iterator[AttackedService]:
    """A service that allows bursts of ten requests, without a proxy in front of it."""
    with attacked_service(
        platform, tmp_path, AccessSettings(requests_per_minute=PER_MINUTE)
    ) as service:
        yield service


@pytest.fixture(scope="module")
def service(
    platform: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AttackedService]:
    folder = tmp_path_factory.mktemp("requests")
    clients = folder / "clients.yaml"
    ours = Client("ours", digest_of(TOKEN), "user:default/eve", (OURS,), RIGHTS)
    clients.write_text(write_clients([ours]))
    add_team(platform.platform, OURS, requester="user:default/test")
    access = AccessSettings(tokens_file=clients, requests_per_minute=100_000)
    time_limits = ClientTimeLimits(headers_s=1.0, body_s=1.0, body_bytes=1_000)
    with attacked_service(platform, folder, access, time_limits=time_limits) as running:
        yield running


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def forged(number: int) -> dict[str, str]:
    return {"X-Forwarded-For": f"192.0.2.{number}"}


def test_a_client_cannot_say_where_it_comes_from(limited: AttackedService) -> None:
    """Before, anybody on the machine or behind a proxy on it had a new limit for each request."""
    answers = [limited.send("GET", "/readyz", headers=forged(n)) for n in range(MANY)]

    assert [answer.status_code for answer in answers].count(429) >= MANY - 2 * BURST
    assert {line["address"] for line in limited.audit_lines()} == {"127.0.0.1"}


def test_a_trusted_proxy_says_where_a_client_comes_from(platform: Running, tmp_path: Path) -> None:
    """The address that the proxy added counts, not those that the client wrote before it."""
    access = AccessSettings(requests_per_minute=PER_MINUTE, trusted_proxies=("127.0.0.0/8",))
    with attacked_service(platform, tmp_path, access) as proxied:
        apart = [proxied.send("GET", "/metrics", headers=forged(n)) for n in range(MANY)]
        together = [
            proxied.send(
                "GET", "/metrics", headers={"X-Forwarded-For": f"192.0.2.{n}, 203.0.113.7"}
            )
            for n in range(MANY)
        ]
        addresses = {line["address"] for line in proxied.audit_lines()}

    assert {answer.status_code for answer in apart} == {401}
    assert [answer.status_code for answer in together].count(429) >= MANY - 2 * BURST
    assert addresses == {*(f"192.0.2.{n}" for n in range(MANY)), "203.0.113.7"}


@pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0", "*", "proxy.example.org", "10.0.0.1/8"])
def test_a_proxy_is_named_by_its_address(text: str) -> None:
    with pytest.raises(InvalidInputError, match="trustedProxies"):
        AccessSettings(trusted_proxies=(text,)).check()


def test_wrong_tokens_are_limited_and_lock_nobody_out(limited: AttackedService) -> None:
    statuses = [
        limited.send("GET", "/v1/orders", headers=bearer(f"okt_{n}")).status_code
        for n in range(MANY)
    ]

    assert set(statuses) == {401, 429}
    assert statuses.count(401) <= 2 * BURST
    assert limited.as_portal("GET", "/v1/orders").status_code == 200
    assert limited.send("GET", "/healthz").status_code == 200


REQUEST = b"POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = REQUEST + b"Content-Type: application/json\r\nContent-Length: 90000\r\n\r\n{"
SLOW = {"nothing": b"", "half a header": REQUEST + b"X-A: ", "half a body": BODY}


@pytest.mark.parametrize("data", SLOW.values(), ids=SLOW)
def test_connections_that_trickle_are_cut(data: bytes, service: AttackedService) -> None:
    connections = [service.connection(data) for _ in range(20)]
    ended = threading.Event()

    def trickle() -> None:
        while not ended.wait(0.05):
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.send(b"x")

    trickler = threading.Thread(target=trickle)
    if data:
        trickler.start()
    try:
        assert all(_is_cut(connection) for connection in connections)
    finally:
        ended.set()
        if data:
            trickler.join()
        for connection in connections:
            connection.close()


def _is_cut(connection: socket.socket) -> bool:
    """Wait until the server ends the connection, as long as a client's patience lasts."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("body", [f'{{"x": {DEEP}}}', '{"template": "garage", "values": %s}'])
def test_deeply_nested_bodies_are_refused(body: str, service: AttackedService) -> None:
    text = body.replace("%s", f'{{"stage": {DEEP}}}')
    answer = service.send("POST", "/v1/tasks", data=text, headers=bearer(TOKEN))

    assert answer.status_code == 400
    assert "nested deeper" in answer.json()["error"]["message"]


def test_deeply_nested_yaml_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        yaml11.load("[" * 100_000 + "]" * 100_000, name="x", schema={})


def test_a_body_is_read_up_to_its_bound(limited: AttackedService) -> None:
    """Before anything of it is parsed, and whoever sends it."""
    answers = [
        limited.send("POST", "/v1/orders", data=b"[" * (BODY_MAX_BYTES + more)) for more in (0, 1)
    ]

    assert [answer.status_code for answer in answers] == [401, 400]
    assert f"{BODY_MAX_BYTES + 1} bytes are too many" in answers[1].text


def test_a_taken_id_does_not_say_whose_it_is(service: AttackedService, platform: Running) -> None:
    add_team(platform.platform, THEIRS, requester="user:default/test")
    values = {"team_name": THEIRS, "stage": "stage1"}
    run_task(platform.platform, TaskRequest("garage", values, Requester("user:default/eve")))
    body = {"order": f"garage-{THEIRS}", "kit": "garage", "team": OURS}
    answer = service.send("POST", "/v1/orders", json=body, headers=bearer(TOKEN))

    assert answer.status_code == 409
    assert THEIRS not in answer.text.replace(f"garage-{THEIRS}", "")


REFUSED: list[tuple[str, str, dict[str, Any], int]] = [
    ("GET", "/v1/orders", {}, 401),
    ("GET", "/v1/orders", {"headers": bearer("okt_x")}, 401),
    ("GET", "/v1/orders/garage-x", {"headers": bearer(TOKEN)}, 403),
    ("GET", "/metrics", {"headers": bearer(TOKEN)}, 403),
    ("DELETE", "/v1/orders", {"headers": bearer(TOKEN)}, 405),
    ("GET", "/nothing/here", {}, 404),
    ("GET", "/v1/orders/", {"allow_redirects": False}, 307),
    ("POST", "/openapi.json", {}, 405),
    ("GET", "/openapi.json", {}, 200),
    ("GET", "/v1/orders?x=1", {"headers": bearer(TOKEN)}, 400),
    ("POST", "/v1/tasks", {"data": b"x" * 200_000, "headers": bearer(TOKEN)}, 400),
    ("POST", "/v1/tasks", {"data": b"{", "headers": bearer(TOKEN)}, 400),
    ("POST", "/v1/webhooks/gitea", {"data": b"{}"}, 401),
]


@pytest.mark.parametrize(("method", "path", "options", "status"), REFUSED)
def test_every_request_leaves_a_line(
    method: str, path: str, options: dict[str, Any], status: int, service: AttackedService
) -> None:
    answer = service.send(method, path, **options)
    lines = [e for e in service.audit_lines() if e["request"] == answer.headers["X-Request-Id"]]

    assert answer.status_code == status
    assert [line["status"] for line in lines] == [status]
    assert {"operation", "path"} & set(lines[0])


def test_the_line_of_an_order_names_it_and_says_whether_it_is_new(
    service: AttackedService,
) -> None:
    task = {"template": "garage", "values": {"team_name": OURS, "stage": "stage1"}}
    sent = [service.send("POST", "/v1/tasks", json=task, headers=bearer(TOKEN)) for _ in range(2)]

    lines = {line["request"]: line for line in service.audit_lines()}
    found = [lines[answer.headers["X-Request-Id"]] for answer in sent]
    assert [(line["status"], line["order"], line["created"]) for line in found] == [
        (201, f"garage-{OURS}", True),
        (200, f"garage-{OURS}", False),
    ]


def test_a_client_that_leaves_in_the_middle_leaves_a_line(service: AttackedService) -> None:
    before = len(service.audit_lines())
    connection = service.connection(BODY)
    connection.close()
    for _ in range(600):
        lines = service.audit_lines()[before:]
        if lines:
            break
        threading.Event().wait(0.1)

    assert "left" in lines[0]["reason"]
