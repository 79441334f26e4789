"""Webhooks of the embedded forge never stand in the way of a write, and stay on this machine."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests
from hooklistener import listening

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge, webhooks
from orderkit_standins.forge.webhooks import Deliveries, Delivery, is_allowed

TOKEN = "d" * 40
AUTH = {"Authorization": f"token {TOKEN}"}
DEADLINE_S = 60.0


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[EmbeddedForge]:
    made = EmbeddedForge(tmp_path / "forge")
    server = HttpServer(made.app, bind("forge", 0))
    server.start()
    made.set_base_url(server.url)
    made.ensure_user("warden", "warden-pw1", admin=True)
    made.ensure_token("warden", "t", TOKEN, ["all"])
    yield made
    server.stop()
    made.close()


def post(forge: EmbeddedForge, path: str, body: object) -> requests.Response:
    url = f"{forge.base_url}/api/v1{path}"
    answer = requests.post(url, json=body, headers=AUTH, timeout=DEADLINE_S)
    assert answer.status_code in (201, 204), answer.text
    return answer


def hooked_repo(forge: EmbeddedForge, url: str) -> str:
    post(forge, "/user/repos", {"name": "r"})
    post(forge, "/repos/warden/r/contents/README.md", {"content": ""})
    config = {"url": url, "content_type": "json", "secret": "not-for-the-log"}
    body = {"type": "gitea", "config": config, "active": True, "events": ["push"]}
    post(forge, "/repos/warden/r/hooks", body)
    return "/repos/warden/r"


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1/x", True),
        ("http://127.9.9.9/x", True),
        ("http://[::1]:1/x", True),
        ("https://localhost/x", True),
        ("http://hooks.localhost/x", False),
        ("http://192.168.1.1/x", False),
        ("http://169.254.169.254/x", False),
        ("http://0.0.0.0/x", False),
        ("http://example.org/x", False),
        ("http://localhost.example.org/x", False),
        ("http://127.0.0.1@example.org/x", False),
        ("http://2130706433/x", False),
    ],
)
def test_only_loopback_is_called(url: str, expected: bool) -> None:  # noqa: FBT001  a table
    assert is_allowed(url, None) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:7399/x", True),
        ("http://localhost:7399/x", True),
        ("http://127.0.0.1:7300/x", False),
        ("http://127.0.0.1/x", False),
        ("https://127.0.0.1/x", False),
        ("http://127.0.0.1:99999/x", False),
        ("http://[::1/x", False),
        ("http://10.0.0.1:7399/x", False),
    ],
)
def test_only_ports_that_are_allowed_are_called(
    url: str,
    expected: bool,  # noqa: FBT001  a table
) -> None:
    assert is_allowed(url, frozenset({7399})) is expected


def test_a_webhook_to_elsewhere_is_refused_in_the_log_without_its_secrets(
    forge: EmbeddedForge, caplog: pytest.LogCaptureFixture
) -> None:
    repo = hooked_repo(forge, "http://user:hidden@203.0.113.7/x?token=hidden")

    with caplog.at_level(logging.WARNING, logger=webhooks.__name__):
        post(forge, f"{repo}/contents/n", {"content": ""})
        eventually(lambda: "only loopback is allowed" in caplog.text)

    assert "203.0.113.7/x" in caplog.text
    assert "hidden" not in caplog.text
    assert "not-for-the-log" not in caplog.text


def test_a_listener_that_never_answers_holds_up_no_write(
    forge: EmbeddedForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_S", DEADLINE_S)
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf:
        repo = hooked_repo(forge, f"http://127.0.0.1:{deaf.getsockname()[1]}/x")
        started = time.monotonic()

        for number in range(10):
            post(forge, f"{repo}/contents/n{number}", {"content": ""})

        assert time.monotonic() - started < webhooks.TIMEOUT_S


def test_a_listener_that_is_not_there_does_not_stop_the_others(
    forge: EmbeddedForge, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        nobody = f"http://127.0.0.1:{gone.getsockname()[1]}/x"
    repo = hooked_repo(forge, nobody)
    with listening() as listener, caplog.at_level(logging.WARNING):
        config = {"url": f"{listener.url}/ok", "content_type": "json"}
        body = {"type": "gitea", "config": config, "active": True}
        post(forge, f"{repo}/hooks", body)

        post(forge, f"{repo}/contents/n", {"content": ""})

        assert len(listener.wait("/ok")) == 1
        eventually(lambda: "failed" in caplog.text)


def test_a_full_queue_drops_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(webhooks, "QUEUE_MAX", 3)
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.3)
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/x"
        waiting = Deliveries()

        deadline = time.monotonic() + DEADLINE_S
        while "dropped" not in caplog.text:
            assert time.monotonic() < deadline
            waiting.add(Delivery(url, {}, b""))
        waiting.close()

    assert "dropped: 3 are waiting" in caplog.text


def test_closing_ends_the_threads_and_later_events_are_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with listening() as listener:
        sending = Deliveries()
        sending.add(Delivery(f"{listener.url}/x", {"Content-Type": "application/json"}, b"{}"))
        eventually(lambda: len(listener.at("/x")) == 1)

        sending.close()
        sending.close()
        sending.add(Delivery(f"{listener.url}/y", {"Content-Type": "application/json"}, b"{}"))

        assert listener.at("/y") == []
    assert caplog.text == ""
