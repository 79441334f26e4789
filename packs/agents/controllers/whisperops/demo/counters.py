"""
A twin of Prometheus for the spend meter: serves token counters that the demo raises.

Real HTTP on loopback: ``GET /api/v1/query`` with a range selector of one agent returns the raw
samples within the range, as Prometheus does; every other query is ``bad_data``. It scrapes
nothing, evaluates no function and stores nothing on disk. While it is `down`, it answers 503 in
HTML, as a proxy in front of a dead Prometheus would.

Used by ``story`` and ``playing``.
"""

from __future__ import annotations

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_SELECTOR = re.compile(r'\{__name__=~"([^"]*)",agent_name="([^"]*)"\}\[(\d+)s\]')
_BAD_DATA = {"status": "error", "errorType": "bad_data", "error": "invalid parameter"}


class Counters:
    """Token counters of agents, and the server that serves them. Use `start` and `stop`."""

    def __init__(self) -> None:
        self.down = False
        self._samples: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        self._lock = threading.Lock()
        respond = self._respond

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, content_type, body = respond(self.path)
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def count(self, agent: str, model: str, **tokens: int) -> None:
        """Raise an agent's counters: ``input=1000, output=200``."""
        now_s = time.time()
        with self._lock:
            for kind, number in tokens.items():
                key = (f"whisperops_tokens_{kind}_total", agent, model)
                samples = self._samples.setdefault(key, [])
                total = samples[-1][1] if samples else 0.0
                samples.append((now_s, total + number))

    def _respond(self, target: str) -> tuple[int, str, bytes]:
        if self.down:
            return 503, "text/html", b"<html><h1>503 Service Unavailable</h1></html>"
        parts = urlsplit(target)
        query = parse_qs(parts.query)
        if parts.path != "/api/v1/query" or not {"query", "time"} <= query.keys():
            return 404, "text/plain", b"404 page not found\n"
        selector = _SELECTOR.fullmatch(query["query"][0])
        if selector is None:
            return 400, "application/json", json.dumps(_BAD_DATA).encode()
        to_s = float(query["time"][0])
        series = self._series(selector[1].split("|"), selector[2], to_s - float(selector[3]), to_s)
        data = {"resultType": "matrix", "result": series}
        return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()

    def _series(
        self, names: list[str], agent: str, from_s: float, to_s: float
    ) -> list[dict[str, Any]]:
        with self._lock:
            return [
                {
                    "metric": {"__name__": name, "agent_name": owner, "model": model},
                    "values": [[at_s, f"{v:g}"] for at_s, v in samples if from_s <= at_s <= to_s],
                }
                for (name, owner, model), samples in sorted(self._samples.items())
                if name in names and owner == agent
                if any(from_s <= at_s <= to_s for at_s, _ in samples)
            ]
