"""
Between a command and a platform: pass everything on, remember what was acknowledged, kill.

Four listeners, one for each part of a platform. At the n-th request that is not a GET the client
is killed, either before the request goes on, or after the server's whole answer arrived and
before the client gets any of it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.crash.durable import Side

HOST = "127.0.0.1"
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
UNKNOWN = 0
"""The status of an exchange whose answer nobody got: it may have been carried out."""
UNNUMBERED = -1
_TIMEOUT_S = 30.0


def pattern_of(part: str, method: str, path: str) -> str:
    """Return which call it is: without the names of teams, orders, commits and ids."""
    dry = " (dry run)" if "dryRun=true" in path else ""
    path = re.sub(r"crash-[a-z0-9-]+", "TEAM", path)
    path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", path)
    path = re.sub(r"\b[0-9a-f]{40}\b", "COMMIT", path)
    return f"{part} {method} {path.partition('?')[0]}{dry}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its answer, as the client was told."""

    part: str
    method: str
    path: str
    sent: Any
    status: int
    answer: Any

    @property
    def pattern(self) -> str:
        """Which call it is."""
        return pattern_of(self.part, self.method, self.path)

    @property
    def dry_run(self) -> bool:
        return "dryRun=true" in self.path

    @property
    def acknowledged(self) -> bool:
        """Whether the client may rely on having written something."""
        return self.method != "GET" and not self.dry_run and self.succeeded

    @property
    def succeeded(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


@dataclass
class Watch:
    """What one client does. `kill` is called at write `at` on `side`; 0 means never."""

    at: int = 0
    side: Side = "before"
    kill: Callable[[], None] = lambda: None
    exchanges: list[Exchange] = field(default_factory=list)
    numbered: list[str] = field(default_factory=list)
    """Which calls the writes were that count, in their order."""
    killed: bool = False

    def number(self, pattern: str) -> int:
        """Return which write this is; `UNNUMBERED` if it does not count."""
        if not self.counts(pattern):
            return UNNUMBERED
        self.numbered.append(pattern)
        return len(self.numbered)

    def counts(self, pattern: str) -> bool:
        """Say whether a write is one at which the client may die."""
        del pattern
        return True

    def is_killed(self) -> bool:
        """Read it anew: another thread may have killed the client meanwhile."""
        return self.killed


@dataclass
class PhaseWatch(Watch):
    """
    Counts each step once, however long a delivery takes.

    A flow asks for a refresh until Argo CD has done it, and a replica renews its Lease all along.
    """

    _asked: set[str] = field(default_factory=set)
    """What the cluster was asked for since the last write to forge or portal."""

    def counts(self, pattern: str) -> bool:
        if not pattern.startswith("cluster "):
            self._asked.clear()
            return True
        is_new = "/leases" not in pattern and pattern not in self._asked
        self._asked.add(pattern)
        return is_new


class Interposer:
    """The listeners. One `Watch` at a time; without one, traffic just passes."""

    def __init__(self, upstream: Mapping[str, int]) -> None:
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._trust: ssl.SSLContext | None = None
        self._open: set[http.client.HTTPConnection] = set()
        self._servers = {part: _Server(self, part, port) for part, port in upstream.items()}
        self.redirect = {
            port: int(self._servers[part].server_address[1]) for part, port in upstream.items()
        }

    def present(self, tls: Path) -> None:
        """Speak TLS for the cluster, with the certificate of the platform behind."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "server.crt", tls / "server.key")
        self._servers["cluster"].tls = context
        self._trust = ssl.create_default_context(cafile=str(tls / "ca.crt"))

    @contextlib.contextmanager
    def watching(self, watch: Watch) -> Iterator[Watch]:
        """Let `watch` see, and stop, everything meanwhile."""
        self._watch = watch
        try:
            yield watch
        finally:
            self._watch = None

    def close(self) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()
            server.thread.join(timeout=10)
        with self._lock:
            for connection in self._open:  # a watch, which a server would wait for when it ends
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def passed_on(self, request: _Request) -> tuple[int, list[tuple[str, str]], bytes] | None:
        """Return the answer for the client, or None if it must get none."""
        watch = self._watch
        if watch is None:
            return self._ask(request)
        number = UNNUMBERED
        if request.method != "GET":
            with self._lock:
                number = watch.number(pattern_of(request.part, request.method, request.path))
        if (number, "before") == (watch.at, watch.side):
            self._stop(watch)
        if watch.is_killed():
            return None
        answer = self._ask(request)
        if (number, "after") == (watch.at, watch.side):
            self._stop(watch)
        told = None if watch.is_killed() else answer
        status, _, body = told or (UNKNOWN, [], b"")
        seen = Exchange(
            request.part, request.method, request.path, _json(request.body), status, _json(body)
        )
        with self._lock:
            watch.exchanges.append(seen)
        return told

    @staticmethod
    def _stop(watch: Watch) -> None:
        if not watch.killed:
            watch.killed = True
            watch.kill()

    def _ask(self, request: _Request) -> tuple[int, list[tuple[str, str]], bytes] | None:
        connection: http.client.HTTPConnection
        if request.part == "cluster":
            connection = http.client.HTTPSConnection(
                HOST, request.port, timeout=_TIMEOUT_S, context=self._trust
            )
        else:
            connection = http.client.HTTPConnection(HOST, request.port, timeout=_TIMEOUT_S)
        try:
            connection.connect()
            with self._lock:
                self._open.add(connection)
            connection.request(request.method, request.path, request.body, request.headers)
            response = connection.getresponse()
            body = response.read()
            return response.status, response.getheaders(), body
        except (OSError, http.client.HTTPException):
            return None
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()


@dataclass(frozen=True, slots=True)
class _Request:
    part: str
    port: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class _Server(ThreadingHTTPServer):
    """A listener for one part."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: Interposer, part: str, port: int) -> None:
        super().__init__((HOST, 0), _Handler)
        self.owner, self.part, self.port = owner, part, port
        self.tls: ssl.SSLContext | None = None
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A killed client's connection ends as it likes."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        if self.server.tls is not None:
            self.request.settimeout(_TIMEOUT_S)
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.request.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP}
        body = self.rfile.read(length)
        request = _Request(
            self.server.part, self.server.port, self.command, self.path, headers, body
        )
        answer = self.server.owner.passed_on(request)
        if answer is None:
            self.close_connection = True
            return
        status, answered, data = answer
        self.send_response_only(status)
        for name, text in answered:
            if name.lower() not in _HOP:
                self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
