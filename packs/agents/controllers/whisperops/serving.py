"""
``/metrics``, ``/healthz`` and ``/readyz`` of a controller, on one small HTTP server.

Reads only; no secrets are in what it shows. It has its own threads, so that a controller that
hangs in a pass still answers, and answers that it hangs.

Called by ``commands``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from orderkit.core.errors import InvalidInputError, OrderkitError
from whisperops.metrics import Metrics

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_SILENCE_S = 10.0
PORT_MAX = 65535


def address_of(listen: str) -> tuple[str, int]:
    """
    Read ``HOST:PORT``; port 0 is any free one.

    Raises:
        InvalidInputError: It is none.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > PORT_MAX:
        raise InvalidInputError("listen", listen, "is no HOST:PORT", hint="127.0.0.1:9464")
    return host.strip("[]"), int(port)


class HealthServer:
    """Answers until it is closed."""

    def __init__(
        self,
        address: tuple[str, int],
        metrics: Metrics,
        *,
        alive: Callable[[], bool],
        ready: Callable[[], bool],
    ) -> None:
        """
        Listen; requests are answered from now on.

        Raises:
            OrderkitError: The address cannot be used.
        """
        answers: dict[str, Callable[[], tuple[int, str]]] = {
            "/metrics": lambda: (200, metrics.text()),
            "/healthz": lambda: (200, "alive\n") if alive() else (503, "hangs\n"),
            "/readyz": lambda: (200, "ready\n") if ready() else (503, "not yet\n"),
        }
        try:
            self._server = ThreadingHTTPServer(address, _handler(answers))
        except OSError as error:
            raise OrderkitError(
                f"cannot listen on {address[0]}:{address[1]}: {error.strerror}",
                hint="choose another address with --listen",
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(answers: dict[str, Callable[[], tuple[int, str]]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SILENCE_S

        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            status, text = answer() if answer else (404, "not here\n")
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", _TEXT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Say nothing: probes come every few seconds."""

    return Handler
