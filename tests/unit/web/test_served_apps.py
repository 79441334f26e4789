"""Which requests reach an app, and how an app gives way to the next one."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from ground.errors import InvalidInputError
from orderkit.web.serving import (
    BodyTooLargeError,
    OwnSite,
    PortInUseError,
    RenewedApp,
    bind,
    read_body,
)

OURS = "console.example.com"


async def silent() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def fine(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def status(app: Any, scope: Mapping[str, Any]) -> int:
    """Return the status with which an app answers; 0 without an answer."""
    sent: list[Any] = []

    async def ask() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, silent, send)

    asyncio.run(ask())
    return int(sent[0]["status"]) if sent else 0


@pytest.mark.parametrize(
    ("method", "headers", "answered"),
    [
        ("GET", {"host": OURS}, 200),
        ("GET", {"host": f"{OURS.upper()}:8080"}, 200),
        ("GET", {"host": "[::1]:8080"}, 200),
        ("GET", {"host": "evil.example.com"}, 421),
        ("GET", {"host": "[::1"}, 421),
        ("GET", {}, 421),
        ("GET", {"host": OURS, "origin": "https://evil.example.com"}, 200),
        ("POST", {"host": OURS}, 200),
        ("POST", {"host": OURS, "origin": f"http://{OURS.upper()}"}, 200),
        ("POST", {"host": OURS, "origin": "https://evil.example.com"}, 403),
        ("POST", {"host": OURS, "sec-fetch-site": "none"}, 200),
        ("POST", {"host": OURS, "sec-fetch-site": "same-origin"}, 200),
        ("POST", {"host": OURS, "sec-fetch-site": "same-site"}, 403),
        ("POST", {"host": OURS, "sec-fetch-site": "cross-site", "origin": f"http://{OURS}"}, 403),
    ],
)
def test_a_server_answers_to_its_names_and_takes_writes_of_its_own_pages(
    method: str, headers: dict[str, str], answered: int
) -> None:
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/", "headers": lines}

    assert status(OwnSite(fine, {OURS.title(), "::1"}), scope) == answered


def test_what_is_no_request_passes_whatever_it_names() -> None:
    assert status(OwnSite(fine, {OURS}), {"type": "websocket", "headers": []}) == 200


class Chunks:
    """A request whose body comes in parts."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts

    async def stream(self) -> Any:
        for part in self._parts:
            yield part


def test_a_body_is_read_up_to_its_bound() -> None:
    def read(*parts: bytes) -> bytes:
        request: Any = Chunks(*parts)
        return asyncio.run(read_body(request, 4))

    assert (read(), read(b"ab", b"cd")) == (b"", b"abcd")
    with pytest.raises(BodyTooLargeError, match="more than 4 bytes"):
        read(b"abc", b"de")


def test_a_port_in_use_is_named_with_its_option() -> None:
    with bind("forge", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"forge: port {port} on 127.0.0.1") as refused:
            bind("forge", port)

    assert "--forge-port" in refused.value.hint


class App:
    """An app with a lifespan, whose requests wait until they may end."""

    def __init__(self, name: str, *, refuses: str = "", ends: bool = False) -> None:
        self.name, self.refuses, self.ends = name, refuses, ends
        self.may_end = asyncio.Event()
        self.life: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                if self.ends:
                    return
                self.life.append(message["type"])
                kind = "failed" if self.refuses else "complete"
                await send({"type": f"{message['type']}.{kind}", "message": self.refuses})
                if message["type"] == "lifespan.shutdown":
                    return
        await self.may_end.wait()
        await send({"type": "http.response.start", "status": 200, "by": self.name})


class Server:
    """What a server does with a renewed app."""

    def __init__(self, make: Callable[[], Any], stamp: Callable[[], bytes]) -> None:
        self.app = RenewedApp(make, stamp, interval_s=0.01)
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self.said: list[str] = []
        self._life = asyncio.ensure_future(
            self.app({"type": "lifespan"}, self._messages.get, self._hear)
        )

    async def _hear(self, message: Any) -> None:
        self.said.append(message["type"])

    async def begin(self) -> None:
        await self._messages.put({"type": "lifespan.startup"})
        await until(lambda: bool(self.said) or self._life.done())

    async def end(self) -> None:
        await self._messages.put({"type": "lifespan.shutdown"})
        await asyncio.wait_for(self._life, 10)

    async def ask(self) -> str:
        answers: list[Any] = []

        async def send(message: Any) -> None:
            answers.append(message)

        await self.app({"type": "http"}, silent, send)
        return str(answers[0]["by"])


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if is_so():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it does not happen")


def test_a_changed_file_brings_another_app_and_the_former_ends_its_requests_first() -> None:
    async def scene() -> tuple[list[str], list[list[str]], list[str]]:
        apps, stamps = [App("one"), App("two")], [b"1"]
        made = iter(apps)
        server = Server(lambda: next(made), lambda: stamps[0])
        await server.begin()
        slow = asyncio.ensure_future(server.ask())
        await asyncio.sleep(0.05)
        stamps[0] = b"2"
        await until(lambda: bool(apps[1].life))
        apps[1].may_end.set()
        second = await server.ask()
        before = list(apps[0].life)
        apps[0].may_end.set()
        first = await slow
        await until(lambda: len(apps[0].life) == 2)
        await server.end()
        return [first, second], [before, apps[0].life, apps[1].life], server.said

    answers, lives, said = asyncio.run(scene())

    whole = ["lifespan.startup", "lifespan.shutdown"]
    assert answers == ["one", "two"]
    assert lives == [["lifespan.startup"], whole, whole]
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@pytest.mark.parametrize(
    ("error", "words", "times"),
    [
        (InvalidInputError("a", "b", "is odd"), "the changed settings are not used: a: 'b'", 1),
        (ZeroDivisionError(), "the changed settings are not used: a bug", 1),
    ],
)
def test_settings_that_cannot_be_used_are_told_once_and_the_former_app_stays(
    error: Exception, words: str, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> str:
        app, stamps = App("one"), [b"1"]
        app.may_end.set()
        made = iter([app])

        def make() -> App:
            found = next(made, None)
            if found is None:
                raise error
            return found

        server = Server(make, lambda: stamps[0])
        await server.begin()
        stamps[0] = b"2"
        await until(lambda: words in caplog.text)
        await asyncio.sleep(0.05)
        answer = await server.ask()
        await server.end()
        return answer

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(scene()) == "one"
    assert caplog.text.count(words) == times


def test_files_that_cannot_be_read_are_told_again_only_if_the_reason_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reasons, looks = ["first"], itertools.count()

    def stamp() -> bytes:
        if next(looks):
            raise InvalidInputError("file", reasons[0], "is not there")
        return b"1"

    async def scene() -> None:
        server = Server(lambda: App("one"), stamp)
        await server.begin()
        await until(lambda: "'first'" in caplog.text)
        await asyncio.sleep(0.05)
        reasons[0] = "second"
        await until(lambda: "'second'" in caplog.text)
        await server.end()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    assert [r.getMessage().count("not used") for r in caplog.records] == [1, 1]


@pytest.mark.parametrize(
    ("app", "words"),
    [
        (lambda: App("one", refuses="no key"), "lifespan.startup: no key"),
        (lambda: App("one", ends=True), "lifespan.startup: the app ended"),
    ],
)
def test_an_app_that_does_not_start_is_an_error(app: Callable[[], App], words: str) -> None:
    async def scene() -> None:
        server = Server(app, lambda: b"1")
        await server.begin()
        with suppress(asyncio.CancelledError):
            await server.end()

    with pytest.raises(RuntimeError, match=words):
        asyncio.run(scene())
