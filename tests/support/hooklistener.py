"""
A small HTTP server that notes what webhooks send it.

Used by tests that watch a forge notify somebody.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

WAIT_S = 90.0


@dataclass(frozen=True)
class Arrived:
    """One request of a webhook."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def payload(self) -> str:
        """The JSON text, also when it came as a form."""
        if self.headers["Content-Type"] == "application/json":
            return self.body.decode()
        return parse_qs(self.body.decode())["payload"][0]

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.payload)
        return found

    @property
    def event(self) -> str:
        return self.headers["X-Gitea-Event"]


class Listener:
    """What arrived so far, to wait for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer = 200
        self._arrived: list[Arrived] = []
        self._news = threading.Condition()

    def note(self, arrived: Arrived) -> None:
        with self._news:
            self._arrived.append(arrived)
            self._news.notify_all()

    def at(self, path: str) -> list[Arrived]:
        """Return what arrived at one path."""
        with self._news:
            return [each for each in self._arrived if each.path == path]

    def wait(
        self, path: str, wanted: Callable[[Arrived], bool] = lambda _: True, *, count: int = 1
    ) -> list[Arrived]:
        """Wait until `count` wanted requests arrived at a path, and return them."""
        deadline = time.monotonic() + WAIT_S
        while True:
            found = [each for each in self.at(path) if wanted(each)]
            if len(found) >= count:
                return found
            left = deadline - time.monotonic()
            seen = [(each.event, each.data.get("action")) for each in self.at(path)]
            assert left > 0, f"{len(found)} of {count} arrived at {path}; there were {seen}"
            with self._news:
                self._news.wait(min(left, 0.2))


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Listen on a free loopback port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listener.note(Arrived(self.path, dict(self.headers), body))
            self.send_response(listener.answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as inherited
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener = Listener(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield listener
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
