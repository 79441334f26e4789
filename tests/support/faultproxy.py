"""
A proxy between a client and a forge that loses, delays, cuts and falsifies.

Each request gets one `Decision` from the plan of the moment: pass it, keep it from the
forge, or let the forge carry it out and keep the answer from the client. The nastiest is the
late one: the client is left alone, and the forge carries the request out when later requests
have passed, or at `deliver_late`. Late means after a number of requests, never after a time,
so a run can be repeated. What happened stands in `log`.

Used by the tests of the forge's clients.
"""

from __future__ import annotations

import http.client
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

HOST = "127.0.0.1"
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
_TIMEOUT_S = 60.0


class Fault(StrEnum):
    """What happens to a request. Before: the forge never sees it. After: it carried it out."""

    PASS = "pass"
    DROP_BEFORE = "connection closed before"
    DROP_AFTER = "connection closed after"
    CUT_AFTER = "body cut after"
    STALL_AFTER = "answer withheld after"
    """The client waits until its own time-out."""
    LATE = "carried out late"
    """The connection is closed at once; the request goes to the forge later."""
    STALL_LATE = "carried out after the client's time-out"
    REFUSE_BEFORE = "false answer before"
    REFUSE_AFTER = "false answer after"
    HOOK_BEFORE = "somebody else acts before"
    """`Plan.hook` runs, then the request passes: another writer wins the race."""
    HOOK_AFTER = "carried out, then somebody acts"
    """`Plan.hook` runs when the forge has answered; the client gets nothing."""


FORGE_KEEPS_FROM_CLIENT = frozenset({
    Fault.DROP_AFTER, Fault.CUT_AFTER, Fault.STALL_AFTER, Fault.REFUSE_AFTER,
})  # fmt: skip
LATE = frozenset({Fault.LATE, Fault.STALL_LATE})
SLOW = frozenset({Fault.STALL_AFTER, Fault.STALL_LATE})
"""They cost the client's whole read time-out."""
FAULTS_OF_A_BAD_LINE = (
    Fault.DROP_BEFORE, Fault.DROP_AFTER, Fault.CUT_AFTER, Fault.LATE,
    Fault.REFUSE_BEFORE, Fault.REFUSE_AFTER,
)  # fmt: skip
"""What costs no time and needs nobody else."""


@dataclass(frozen=True, slots=True)
class Falsehood:
    """An answer that the forge did not give."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


_PAGE = b"<html><head><title>Bad Gateway</title></head><body>nginx</body></html>"
FALSEHOODS = (
    Falsehood(409, b'{"message":"pull request already exists for these targets"}'),
    Falsehood(409, b"{}"),
    Falsehood(422, b'{"message":"sha does not match [given: 1, expected: 2]"}'),
    Falsehood(422, b'{"message":"repository file already exists [path: f]"}'),
    Falsehood(422, b'{"message":"[SHA]: Required"}'),
    Falsehood(422, b"Unprocessable"),
    Falsehood(423, b'{"message":"team/order is archived"}'),
    Falsehood(403, b'{"message":"cannot lock ref \'refs/heads/main\': is at a but expected b"}'),
    Falsehood(500, b'{"message":""}'),
    Falsehood(500, b""),
    Falsehood(502, _PAGE, "text/html"),
    Falsehood(503, b'{"message":"upstream connect error"}'),
    Falsehood(503, _PAGE, "text/html"),
    Falsehood(200, _PAGE, "text/html"),
    Falsehood(200, b"<html>please log in</html>", "text/html"),
)
_AT_ONCE = (("Retry-After", "0"),)
REFUSALS = (
    Falsehood(429, b'{"message":"API rate limit exceeded"}', headers=_AT_ONCE),
    Falsehood(429, b"Retry later", "text/plain", _AT_ONCE),
    Falsehood(403, b'{"message":"You have exceeded a secondary rate limit"}', headers=_AT_ONCE),
    Falsehood(302, b"", "text/html", (("Location", "/login"),)),
    Falsehood(307, b"{}", headers=(("Location", "/api/v3/repositories/1/elsewhere"),)),
)
"""Answers that say by themselves that nothing was carried out, so they only come before."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A fault; with what it needs."""

    fault: Fault = Fault.PASS
    falsehood: Falsehood = FALSEHOODS[0]
    late_by: int = 1
    """After how many later requests a late one is carried out."""

    def __str__(self) -> str:
        match self.fault:
            case Fault.REFUSE_BEFORE | Fault.REFUSE_AFTER:
                return f"{self.fault}: {self.falsehood.status} {self.falsehood.body!r}"
            case Fault.LATE | Fault.STALL_LATE:
                return f"{self.fault}, {self.late_by} later"
        return self.fault.value


class Plan:
    """Decides about each request. This one lets everything pass."""

    def decide(self, method: str, path: str) -> Decision:
        """Return what happens to a request. Called once per request, in their order."""
        del method, path
        return Decision()

    def hook(self) -> None:
        """Act; see `Fault.HOOK_BEFORE` and `Fault.HOOK_AFTER`."""


@dataclass
class Listed(Plan):
    """The given decisions for the requests that `applies` to, in their order; then passes."""

    decisions: list[Decision]
    applies: Callable[[str, str], bool] = lambda method, _: method != "GET"

    def decide(self, method: str, path: str) -> Decision:
        if self.decisions and self.applies(method, path):
            return self.decisions.pop(0)
        return Decision()


@dataclass
class Seeded(Plan):
    """
    Random faults.

    Args:
        random: Where every choice comes from.
        faults: What may happen to a write; a read gets those that make sense for it.
        write_rate: How many of the writes are hit.
        read_rate: The same of the reads.
        slow_rate: How many of those hits may cost a time-out.
    """

    random: random.Random
    faults: Sequence[Fault] = tuple(
        fault for fault in Fault if fault not in (Fault.PASS, Fault.HOOK_AFTER)
    )
    write_rate: float = 0.5
    read_rate: float = 0.15
    slow_rate: float = 0.1
    rival: Callable[[], None] = lambda: None

    def decide(self, method: str, path: str) -> Decision:
        del path
        rate = self.read_rate if method == "GET" else self.write_rate
        if self.random.random() >= rate:
            return Decision()
        fault = self.random.choice(self.faults)
        if fault in SLOW and self.random.random() >= self.slow_rate:
            fault = Fault.LATE if fault is Fault.STALL_LATE else Fault.DROP_AFTER
        if method == "GET" and (fault in LATE or fault is Fault.HOOK_BEFORE):
            fault = Fault.DROP_BEFORE
        told = (*FALSEHOODS, *REFUSALS) if fault is Fault.REFUSE_BEFORE else FALSEHOODS
        return Decision(fault, self.random.choice(told), self.random.randint(1, 8))

    def hook(self) -> None:
        self.rival()


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class FaultProxy:
    """The proxy. Start it with `open_proxy`; set `plan` as you like while it runs."""

    upstream: str
    plan: Plan = field(default_factory=Plan)
    log: list[str] = field(default_factory=list)
    hits: Counter[Fault] = field(default_factory=Counter)
    """How often each fault happened to a write."""
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _held: list[tuple[int, _Request]] = field(default_factory=list)
    _number: int = 0

    @contextmanager
    def using(self, plan: Plan) -> Iterator[FaultProxy]:
        """Use a plan for a while. What is late stays late."""
        self.plan = plan
        try:
            yield self
        finally:
            self.plan = Plan()

    def deliver_late(self) -> int:
        """Let the forge carry out every request that it did not see yet; return how many."""
        return self._deliver(None)

    def _deliver(self, up_to: int | None) -> int:
        with self._lock:
            due = [each for each in self._held if up_to is None or each[0] <= up_to]
            self._held = [each for each in self._held if each not in due]
        for _, request in due:
            answer = self._ask(request)
            self.log.append(f"      late {request.method} {request.path} -> {answer.status}")
        return len(due)

    def answer(self, request: _Request, client: socket.socket) -> tuple[_Answer, bool] | None:
        """Return the client's answer and whether to cut it; None: close the connection."""
        with self._lock:
            self._number += 1
            number = self._number
            decision = self.plan.decide(request.method, request.path)
            note = "" if decision.fault is Fault.PASS else f"  <- {decision}"
            self.log.append(f"{number:5} {request.method} {request.path}{note}")
            self.hits[decision.fault] += request.method != "GET"
        self._deliver(number)
        return self._carry_out(request, decision, client, number)

    def _carry_out(
        self, request: _Request, decision: Decision, client: socket.socket, number: int
    ) -> tuple[_Answer, bool] | None:
        fault, told = decision.fault, decision.falsehood
        false = _Answer(told.status, [("Content-Type", told.kind), *told.headers], told.body)
        if fault is Fault.DROP_BEFORE:
            return None
        if fault is Fault.REFUSE_BEFORE:
            return false, False
        if fault in LATE:
            with self._lock:
                self._held.append((number + decision.late_by, request))
            if fault is Fault.STALL_LATE:
                _wait_for_hang_up(client)
            return None
        if fault is Fault.HOOK_BEFORE:
            self.plan.hook()
        real = self._ask(request)
        if fault is Fault.STALL_AFTER:
            _wait_for_hang_up(client)
        if fault is Fault.HOOK_AFTER:
            self.plan.hook()
        if fault in (Fault.DROP_AFTER, Fault.STALL_AFTER, Fault.HOOK_AFTER):
            return None
        if fault is Fault.REFUSE_AFTER:
            return false, False
        return real, fault is Fault.CUT_AFTER

    def _ask(self, request: _Request) -> _Answer:
        place = urlsplit(self.upstream)
        connection = http.client.HTTPConnection(
            place.hostname or HOST, place.port, timeout=_TIMEOUT_S
        )
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            response = connection.getresponse()
            return _Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()
            with self._lock:
                self.in_flight -= 1


def _wait_for_hang_up(client: socket.socket) -> None:
    client.settimeout(_TIMEOUT_S)
    with suppress(OSError):
        client.recv(1, socket.MSG_PEEK)


@contextmanager
def open_proxy(upstream: str) -> Iterator[FaultProxy]:
    """Run a proxy before the forge at `upstream`."""
    proxy = FaultProxy(upstream)
    server = _Server(proxy)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="fault proxy")
    thread.start()
    proxy.url = f"http://{HOST}:{server.server_port}"
    try:
        yield proxy
    finally:
        proxy.plan = Plan()
        proxy.deliver_late()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy: FaultProxy) -> None:
        super().__init__((HOST, 0), _Handler)
        self.proxy = proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up ends its connection as it likes."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing; `FaultProxy.log` has it."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP}
        request = _Request(self.command, self.path, headers, body)
        found = self.server.proxy.answer(request, self.connection)
        if found is None:
            self.close_connection = True
            return
        answer, cut = found
        self.close_connection = cut
        self.send_response_only(answer.status)
        for name, text in answer.headers:
            if name.lower() not in _HOP:
                self.send_header(name, text)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body) + cut))
        self.end_headers()
        self.wfile.write(answer.body[: len(answer.body) // 2] if cut else answer.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815


def is_contents(method: str, path: str) -> bool:
    """Say whether a request is a commit of files, to whichever forge."""
    writes = ("/contents", "/graphql", "/repository/commits")
    return method == "POST" and path.partition("?")[0].endswith(writes)
