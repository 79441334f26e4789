"""
A stand-in for Prometheus's query API over real HTTP: range selectors over samples a test scrapes.

It answers ``GET /api/v1/query`` for selectors by name (a regular expression) and by equal labels,
with a range in seconds, as Prometheus 2 does: samples within the range, both ends included, series
without one left out, and ``bad_data`` for everything else. It evaluates no function and no
aggregation, and stores nothing. The real one meets the same client in ``tests/e2e``.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_SELECTOR = re.compile(r"\{(?P<labels>[^{}]*)\}\[(?P<range>\d+)s\]")
_MATCHER = re.compile(r'(?P<label>\w+)(?P<how>=~|=)"(?P<value>[^"\\]*)"')


@dataclass(frozen=True, slots=True)
class Told:
    """An answer that is given whatever is asked."""

    body: bytes
    status: int = 200
    kind: str = "application/json"
    holds_back: bool = False
    """Whether the connection stays open and nothing comes."""


@dataclass
class PrometheusDouble:
    """What was scraped, and what is answered."""

    url: str = ""
    told: Told | None = None
    queries: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    _samples: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = field(
        default_factory=dict
    )
    _free: threading.Event = field(default_factory=threading.Event)

    def scrape(self, name: str, value: float, *, at_s: float, **labels: str) -> None:
        """Store one sample of a series."""
        key = tuple(sorted({"__name__": name, **labels}.items()))
        self._samples.setdefault(key, []).append((at_s, value))

    def answer(self, query: Mapping[str, list[str]]) -> Told:
        text, at_s = query["query"][0], float(query["time"][0])
        self.queries.append(text)
        if self.told is not None:
            return self.told
        found = _SELECTOR.fullmatch(text)
        if found is None:
            said = {"status": "error", "errorType": "bad_data", "error": "parse error"}
            return Told(json.dumps(said).encode(), 400)
        matchers = [match.groupdict() for match in _MATCHER.finditer(found["labels"])]
        result = list(self._result(matchers, at_s - float(found["range"]), at_s))
        data = {"resultType": "matrix", "result": result}
        return Told(json.dumps({"status": "success", "data": data}).encode())

    def _result(
        self, matchers: list[dict[str, str]], from_s: float, to_s: float
    ) -> Iterator[dict[str, Any]]:
        for key, samples in self._samples.items():
            labels = dict(key)
            inside = [[at_s, f"{value:g}"] for at_s, value in samples if from_s <= at_s <= to_s]
            if inside and all(_matches(labels, matcher) for matcher in matchers):
                yield {"metric": labels, "values": inside}

    def hold_back(self) -> None:
        self._free.wait(90)

    def let_go(self) -> None:
        self._free.set()


def _matches(labels: Mapping[str, str], matcher: Mapping[str, str]) -> bool:
    value = labels.get(matcher["label"], "")
    if matcher["how"] == "=":
        return value == matcher["value"]
    return re.fullmatch(matcher["value"], value) is not None


@contextmanager
def prometheus_double() -> Iterator[PrometheusDouble]:
    """Run one on a free port."""
    double = PrometheusDouble()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            double.headers.append(dict(self.headers.items()))
            if parts.path != "/api/v1/query":
                self._send(Told(b"404 page not found\n", 404, "text/plain"))
                return
            self._send(double.answer(parse_qs(parts.query)))

        def _send(self, told: Told) -> None:
            if told.holds_back:
                double.hold_back()
                self.close_connection = True
                return
            self.send_response(told.status)
            self.send_header("Content-Type", told.kind)
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            self.wfile.write(told.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield double
    finally:
        double.let_go()
        server.shutdown()
        thread.join()
        server.server_close()
