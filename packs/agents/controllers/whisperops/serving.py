"""
A small HTTP server with ``/metrics``, ``/healthz`` and ``/readyz`` of a controller.

It shows no secrets and changes nothing. It has its own threads, so that a controller that hangs in
a pass still answers, and says that it hangs.

Called by ``commands``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from orderkit.controllers import InvalidInputError, OrderkitError
from whisperops.metrics import Metrics

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_IDLE_TIMEOUT_S = 10.0
PORT_MAX = 65535


def address_of(listen: str) -> tuple[str, int]:
    """
    Parse ``HOST:PORT``; port 0 means any free port.

    Raises:
        InvalidInputError: It is something else.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > PORT_MAX:
        raise InvalidInputError("listen", listen, "is not HOST:PORT", hint="127.0.0.1:9464")
    return host.strip("[]"), int(port)


class HealthServer:
    """Answers until the end of its ``with`` block."""

    def __init__(
        self,
        address: tuple[str, int],
        metrics: Metrics,
        *,
        alive: Callable[[], bool],
        ready: Callable[[], bool],
    ) -> None:
        """
        Listen, and answer from now on.

        Raises:
            OrderkitError: The address cannot be used.
        """
        responses: dict[str, Callable[[], tuple[int, str]]] = {
            "/metrics": lambda: (200, metrics.text()),
            "/healthz": lambda: (200, "alive\n") if alive() else (503, "hangs\n"),
            "/readyz": lambda: (200, "ready\n") if ready() else (503, "not yet\n"),
        }
        try:
            self._server = ThreadingHTTPServer(address, _handler(responses))
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


def _handler(responses: dict[str, Callable[[], tuple[int, str]]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _IDLE_TIMEOUT_S

        def do_GET(self) -> None:
            respond = responses.get(self.path.partition("?")[0])
            status, text = respond() if respond else (404, "not found\n")
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", _TEXT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Log nothing: probes come every few seconds."""

    return Handler
