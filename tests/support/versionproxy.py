"""A real HTTP proxy before a server, which lets the server tell another version."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "host"}


@contextmanager
def telling(
    upstream: str, path: str, answer: Mapping[str, str], *, authority: Path | None = None
) -> Iterator[tuple[str, list[str]]]:
    """
    Answer GET `path` with `answer`, and pass every other request on.

    Yields:
        The proxy's address, and the methods and paths of all requests that are no reads.
    """
    writes: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "GET" and self.path == path:
                self.answer(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())
                return
            if self.command != "GET":
                writes.append(f"{self.command} {self.path}")
            got = requests.request(
                self.command,
                upstream + self.path,
                headers={k: v for k, v in self.headers.items() if k.lower() not in _HOP},
                data=body,
                timeout=30,
                allow_redirects=False,
                verify=str(authority) if authority else True,
            )
            self.answer(got.status_code, got.headers, got.content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward  # noqa: N815 - the base's names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
            """Stay silent."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", writes
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
