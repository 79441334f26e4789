"""A service behind a portal's proxy: records every request, answers what its path asks for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW_S = 30.0
"""How long ``/slow`` waits, at most: until the service stops."""


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it arrived. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What the service answers."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


class RecordingService:
    """Answers by path, without the query; unknown paths get an empty 200."""

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self.answers: dict[str, Answer] = {}
        self.stopping = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                service.take(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append(RecordedRequest(handler.command, handler.path, headers, body))
        path = handler.path.partition("?")[0]
        if path == "/slow":
            self.stopping.wait(SLOW_S)
        if path in ("/slow", "/hangup"):
            handler.close_connection = True
            return
        answer = self.answers.get(path, Answer())
        with contextlib.suppress(OSError):  # the reader may give up before the end
            handler.send_response(answer.status)
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            if answer.status != 204:
                handler.send_header("Content-Length", str(len(answer.body)))
            handler.end_headers()
            handler.wfile.write(answer.body)

    @contextlib.contextmanager
    def serving(self) -> Iterator[RecordingService]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stopping.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()
