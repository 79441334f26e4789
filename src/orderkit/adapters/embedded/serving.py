"""
Run ASGI apps on loopback in background threads, and stop them again.

Used by the embedded forge, cluster and catalog, which listen on 127.0.0.1 only, and by the
service, which ``orderkit serve`` may bind to another address.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from orderkit.core.errors import OrderkitError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST = "127.0.0.1"
_GRACE_S = 0.2
"""How long open requests may continue after a stop."""
_END_S, _LOOK_S = 10.0, 0.02
"""How long at most, and how often, the end looks for connections that are still open."""
_STOP_S = 30.0
"""How long the thread may take to end: longer than all of it on a busy machine."""


class Served(Protocol):
    """A certificate and its key, as files."""

    @property
    def server(self) -> Path: ...

    @property
    def key(self) -> Path: ...


class PortInUseError(OrderkitError):
    """The port is in use."""

    def __init__(self, server: str, port: int, host: str = HOST) -> None:
        super().__init__(
            f"{server}: port {port} on {host} is in use",
            hint=f"stop what listens there, or choose another port (--{server}-port, 0 for any)",
        )


def bind(server: str, port: int, *, host: str = HOST) -> socket.socket:
    """
    Reserve a port, of the loopback unless told otherwise; 0 means any free one.

    Raises:
        PortInUseError: Another process listens there.
    """
    # Named, because asyncio sets TCP_NODELAY only then; without it every answer waits 40 ms.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(128)
    except OSError as error:
        sock.close()
        raise PortInUseError(server, port, host) from error
    return sock


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server waits for a request."""

    headers_s: float = 15.0
    """From the first byte, or from the connection, to the last header."""
    body_s: float = 30.0
    """For a body; every `body_bytes` that arrive give as much time again."""
    body_bytes: int = 64 * 1024


PATIENCE = Patience()


class HttpServer:
    """One app on one bound socket, in a thread of its own."""

    def __init__(
        self,
        app: ASGIApp,
        sock: socket.socket,
        certificate: Served | None = None,
        *,
        patience: Patience = PATIENCE,
    ) -> None:
        """Speak plain HTTP, or TLS with a certificate."""
        import uvicorn  # lazy: heavy

        from orderkit.adapters.embedded.patient_protocol import protocol

        self._sock, self.scheme = sock, "https" if certificate else "http"
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                ssl_certfile=certificate.server if certificate else None,
                ssl_keyfile=certificate.key if certificate else None,
                log_level="error",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=3,
                timeout_keep_alive=30,
                http=protocol(patience),
                # an app that sits behind proxies knows itself which of them it trusts
                proxy_headers=False,
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        sockets: list[Any] = [self._sock]
        await self._server.serve(sockets=sockets)
        await self._end_connections(self._loop)

    async def _end_connections(self, loop: asyncio.AbstractEventLoop) -> None:
        """
        Cut what was accepted in the last moment.

        asyncio makes a connection of an accepted socket in a task; if the loop ended before
        that task began, nobody would close the socket.
        """
        deadline_s = loop.time() + _END_S
        while loop.time() < deadline_s:
            tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
            if not tasks and not self._server.server_state.connections:
                break
            self._abort_connections()
            await asyncio.sleep(_LOOK_S)
        await asyncio.sleep(0)  # the last aborted transports close in the next turn of the loop

    @property
    def port(self) -> int:
        return int(self._sock.getsockname()[1])

    @property
    def url(self) -> str:
        return f"{self.scheme}://{HOST}:{self.port}"

    def start(self) -> None:
        """Start and wait until requests are accepted."""
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the HTTP server thread ended at start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop accepting, let open requests end for a moment, cut the rest, free the port."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._begin_to_stop, self._loop)
        self._thread.join(timeout=_STOP_S)
        self._sock.close()

    def _begin_to_stop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._cut(loop, loop.time() + _GRACE_S)
        self._server.should_exit = True

    def _cut(self, loop: asyncio.AbstractEventLoop, grace_ends_s: float) -> None:
        """Abort open connections, and those accepted until the socket is closed."""
        self._abort_connections(answered_only=loop.time() < grace_ends_s)
        loop.call_later(_LOOK_S, self._cut, loop, grace_ends_s)

    def _abort_connections(self, *, answered_only: bool = False) -> None:
        """
        Do not wait for clients: an idle one with TLS would be waited for in vain.

        One that has its whole answer and only owes TLS's goodbye goes at once: uvicorn closes it
        again when it stops, and after a second close asyncio cannot abort it any more.
        """
        for connection in tuple(self._server.server_state.connections):
            transport: Any = connection.transport  # None until connected, whatever uvicorn says
            if transport is None:
                continue
            if not answered_only or _is_answered(transport):
                transport.abort()


def _is_answered(transport: asyncio.Transport) -> bool:
    return transport.is_closing() and not transport.get_write_buffer_size()
