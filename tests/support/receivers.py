"""Receivers of notifications that a test controls: an HTTP server with faults, an SMTP server."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

WAIT_S = 90.0
Fault = Literal["", "500", "404", "429", "close", "redirect", "drip"]


@dataclass(frozen=True)
class Delivery:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    accepted: bool

    @property
    def event(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def label(self) -> tuple[str, str]:
        return self.event.get("subject", ""), self.event["type"].rpartition(".")[2]


class Receiver:
    """What was delivered, and how the server behaves."""

    def __init__(self) -> None:
        self.port = 0
        self.fault: Fault = ""
        self.fault_of: dict[str, Fault] = {}
        """By order: a fault for its events only."""
        self.released = threading.Event()
        """Ends the waiting of ``drip``."""
        self._deliveries: list[Delivery] = []
        self._news = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def note(self, delivery: Delivery) -> None:
        with self._news:
            self._deliveries.append(delivery)
            self._news.notify_all()

    def requests(self) -> list[Delivery]:
        """Return all requests, also refused ones."""
        with self._news:
            return list(self._deliveries)

    def accepted(self) -> list[Delivery]:
        return [delivery for delivery in self.requests() if delivery.accepted]

    def wait(self, is_met: Callable[[list[Delivery]], bool]) -> list[Delivery]:
        """Wait until the requests meet a condition, and return them."""
        deadline_s = time.monotonic() + WAIT_S
        while True:
            requests = self.requests()
            if is_met(requests):
                return requests
            shown = [(r.body[:200], r.accepted) for r in requests]
            assert time.monotonic() < deadline_s, f"never met by {shown}"
            with self._news:
                self._news.wait(0.2)

    def wait_for(self, *labels: tuple[str, str]) -> list[Delivery]:
        """Wait until events were accepted: (order, kind)."""
        return self.wait(lambda _: set(labels) <= {d.label for d in self.accepted()})


@contextlib.contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """Run a receiver of webhooks."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            delivery = Delivery(self.path, dict(self.headers), body, accepted=False)
            fault = receiver.fault
            with contextlib.suppress(ValueError, KeyError):
                fault = receiver.fault_of.get(delivery.event.get("subject", ""), fault)
            accepted = not fault
            receiver.note(Delivery(self.path, dict(self.headers), body, accepted))
            self._answer(fault)

        def _answer(self, fault: Fault) -> None:
            match fault:
                case "close":
                    self.connection.close()
                case "drip":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                    with contextlib.suppress(OSError):
                        while not receiver.released.wait(0.2):
                            self.wfile.write(b"x")
                            self.wfile.flush()
                case "redirect":
                    self.send_response(302)
                    self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                case _:
                    self.send_response(int(fault or "200"))
                    if fault == "429":
                        self.send_header("Retry-After", "1")
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")

        def do_GET(self) -> None:
            receiver.note(Delivery(self.path, dict(self.headers), b"{}", accepted=False))
            self._answer("")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Mail:
    """A mail as an SMTP server took it."""

    sender: str
    recipients: tuple[str, ...]
    data: bytes


@contextlib.contextmanager
def smtp_server() -> Iterator[tuple[int, list[Mail]]]:
    """Run an SMTP server (RFC 5321, what smtplib says without TLS); yield its port and its mail."""
    mails: list[Mail] = []

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            sender, recipients = "", list[str]()
            self._say("220 mail.example.org")
            for line in self.rfile:
                verb, _, rest = line.decode().strip().partition(" ")
                verb = verb.upper()
                if verb == "MAIL":
                    sender, recipients = rest, []
                if verb == "RCPT":
                    recipients.append(rest)
                if verb == "DATA":
                    self._say("354 go on")
                    mails.append(Mail(sender, tuple(recipients), self._data()))
                self._say("221 bye" if verb == "QUIT" else "250 ok")

        def _data(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            return b"".join(lines)

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Session) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1], mails
        finally:
            server.shutdown()
            thread.join()
