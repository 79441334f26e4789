"""
Run ASGI apps in background threads, stop them again, and replace the app of a running server.

The embedded forge, cluster and catalog listen on 127.0.0.1 only; ``orderkit serve`` may bind the
service to another address. A server answers only under its own names, and refuses writes that a
page of another site makes a browser send (`OwnSite`).

An app is replaced so that changed settings and secrets count without a restart (`RenewedApp`). The
new app is started before it gets requests. The old one ends after a moment in which its requests
can be answered; its streams end, and their clients connect again. An app that cannot be made or
started changes nothing: the old one goes on, and the log says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from ground.errors import InvalidInputError, OrderkitError
from orderkit.web.client_time_limits import CLIENT_TIME_LIMITS, ClientTimeLimits

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
LOOPBACK_NAMES = frozenset({HOST, "::1", "localhost"})
"""Host names of a server on the loopback. Another name may lead here by DNS rebinding."""
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
GRACE_S = 0.2
"""How long open requests may continue after a stop, and answers that are being sent in any case."""
_UVICORN_S = 3
"""How much longer uvicorn waits for them itself."""
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
    # a restart need not wait for the connections of the server before
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(128)
    except OSError as error:
        sock.close()
        raise PortInUseError(server, port, host) from error
    return sock


class BodyTooLargeError(OrderkitError):
    """A request has a larger body than its endpoint reads."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"request body too large: more than {max_bytes} bytes")


async def read_body(request: Request, max_bytes: int) -> bytes:
    """
    Return the body of a request.

    Raises:
        BodyTooLargeError: It is larger; the rest is not read.
    """
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes:
            raise BodyTooLargeError(max_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


class OwnSite:
    """Pass requests on that name this server and that no page of another site sent."""

    def __init__(self, app: ASGIApp, hosts: AbstractSet[str]) -> None:
        """Take the names without ports."""
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import PlainTextResponse  # lazy: heavy

        app = self._app
        if scope["type"] == "http":
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            host = headers.get(b"host", "")
            # a page of any site can make its own name resolve to 127.0.0.1 (DNS rebinding)
            if _host_name(host) not in self._hosts:
                names = ", ".join(sorted(self._hosts))
                text = f"Host {host!r} is not a name of this server, which answers to {names}\n"
                app = PlainTextResponse(text, 421)
            # a browser adds remembered Basic credentials; judged as Go's http.CrossOriginProtection
            # does, which Gitea uses (programs send neither header)
            elif scope["method"] not in _SAFE_METHODS and not _is_own_site(headers, host):
                app = PlainTextResponse("a page of another site may not write here\n", 403)
        await app(scope, receive, send)


def _host_name(address: str) -> str:
    """Return the name or number in a Host header, without its port; empty if there is none."""
    try:
        return urlsplit(f"//{address}").hostname or ""
    except ValueError:
        return ""


def _is_own_site(headers: Mapping[bytes, str], host: str) -> bool:
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        return site in ("none", "same-origin")
    return origin is None or urlsplit(origin).netloc.lower() == host.lower()


class HttpServer:
    """One app on one bound socket, in a thread of its own."""

    def __init__(
        self,
        app: ASGIApp,
        sock: socket.socket,
        certificate: Served | None = None,
        *,
        hosts: AbstractSet[str] | None = LOOPBACK_NAMES,
        time_limits: ClientTimeLimits = CLIENT_TIME_LIMITS,
    ) -> None:
        """
        Speak plain HTTP, or TLS with a certificate.

        Args:
            app: What is served.
            sock: Where; bound and listening.
            certificate: Speak TLS with it.
            hosts: The names that requests may have in ``Host``. None: any, and writes from pages
                of other sites too, for a server that others can reach anyway.
            time_limits: How long to wait for a request.
        """
        import uvicorn  # lazy: heavy

        from orderkit.web.time_limited_http import protocol

        self._sock, self.scheme = sock, "https" if certificate else "http"
        self._server = uvicorn.Server(
            uvicorn.Config(
                OwnSite(app, hosts) if hosts is not None else app,
                ssl_certfile=certificate.server if certificate else None,
                ssl_keyfile=certificate.key if certificate else None,
                log_level="error",
                access_log=False,
                lifespan="auto",
                timeout_graceful_shutdown=_UVICORN_S,
                timeout_keep_alive=30,
                http=protocol(time_limits),
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
        """Cut what was accepted in the last moment."""
        deadline_s = loop.time() + _END_S
        while loop.time() < deadline_s:
            # asyncio makes a connection of an accepted socket in a task; if the loop ended before
            # that task began, nobody would close the socket
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

    def reread_certificate(self) -> None:
        """
        Use what the files of the certificate hold now, for new connections.

        Raises:
            InvalidInputError: They are no certificate and its key.
        """
        config = self._server.config
        if config.ssl is None or config.ssl_certfile is None:
            return
        files = config.ssl_certfile, config.ssl_keyfile
        try:  # first elsewhere: a chain that is refused would replace half of the one in use
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*files)
            config.ssl.load_cert_chain(*files)
        except OSError as error:  # ssl's errors are some
            raise InvalidInputError(
                "--certificate", str(config.ssl_certfile), "does not fit its --key, or is none"
            ) from error

    def stop(self, *, grace_s: float = GRACE_S) -> None:
        """
        Stop accepting, let open requests end, cut the rest, free the port.

        Args:
            grace_s: How long requests may take that have no answer yet. Streams go at once.
        """
        if self._loop is not None and self._thread.is_alive():
            self._server.config.timeout_graceful_shutdown = _UVICORN_S + math.ceil(grace_s)
            self._loop.call_soon_threadsafe(self._begin_to_stop, self._loop, grace_s)
        self._thread.join(timeout=_STOP_S + grace_s)
        self._sock.close()

    def _begin_to_stop(self, loop: asyncio.AbstractEventLoop, grace_s: float) -> None:
        connections = self._server.server_state.connections
        answering = {connection for connection in connections if _is_answering(connection)}
        now_s = loop.time()
        self._cut(loop, now_s + min(grace_s, GRACE_S), now_s + grace_s, answering)
        self._server.should_exit = True

    def _cut(
        self,
        loop: asyncio.AbstractEventLoop,
        streams_end_s: float,
        grace_ends_s: float,
        answering: AbstractSet[Any],
    ) -> None:
        """Abort open connections, and those accepted until the socket is closed."""
        now_s = loop.time()
        self._abort_connections(
            lambda each: now_s >= (streams_end_s if each in answering else grace_ends_s)
        )
        loop.call_later(_LOOK_S, self._cut, loop, streams_end_s, grace_ends_s, answering)

    def _abort_connections(self, is_due: Callable[[Any], bool] = lambda _: True) -> None:
        """Do not wait for clients: an idle one with TLS would be waited for in vain."""
        for connection in tuple(self._server.server_state.connections):
            transport: Any = connection.transport  # None until connected, whatever uvicorn says
            if transport is None:
                continue
            # one that only owes TLS's goodbye goes at once: uvicorn closes it again when it stops,
            # and after a second close asyncio cannot abort it any more
            if is_due(connection) or _is_answered(transport):
                transport.abort()


def _is_answering(connection: Any) -> bool:
    """Say whether an answer has begun and not ended: a stream, but for a moment of any other."""
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and cycle.response_started and not cycle.response_complete


def _is_answered(transport: asyncio.Transport) -> bool:
    return transport.is_closing() and not transport.get_write_buffer_size()


RENEWAL_GRACE_S = 30.0
"""How long an app that was replaced may answer the requests that it has."""

logger = logging.getLogger(__name__)


class RenewedApp:
    """Passes requests on to the newest app, and looks whether there has to be a newer one."""

    def __init__(
        self, make: Callable[[], ASGIApp], stamp: Callable[[], bytes], *, interval_s: float = 5.0
    ) -> None:
        """
        Make the first app.

        Args:
            make: Makes an app from what files say now.
            stamp: A digest of these files: another one asks for another app.
            interval_s: How often to look.

        Raises:
            OrderkitError: As `make` does.
        """
        self._make, self._look, self._interval_s = make, stamp, interval_s
        self._stamp = stamp()
        self._current = _RunningApp(make())
        self._ending: set[asyncio.Task[None]] = set()
        self._told = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._current(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin and end with the server, as ASGI's lifespan says."""
        await receive()
        await self._current.start()
        watching = asyncio.create_task(self._watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        for ending in self._ending:
            ending.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self._current.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self._renew()
            except OrderkitError as error:
                if str(error) != self._told:
                    logger.warning("the changed settings are not used: %s", error)
                self._told = str(error)
            except Exception:
                logger.exception("the changed settings are not used: a bug")

    async def _renew(self) -> None:
        stamp = await asyncio.to_thread(self._look)
        if stamp == self._stamp:
            return
        # before it is made: settings that cannot be used are tried again only after the next change
        self._stamp, self._told = stamp, ""
        made = _RunningApp(await asyncio.to_thread(self._make))
        await made.start()
        former, self._current = self._current, made
        ending = asyncio.create_task(former.end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        logger.warning("settings or secrets have changed: the new ones count")


class _RunningApp:
    """An app with its lifespan, and how many requests it is answering."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._requests, self._idle = app, 0, asyncio.Event()
        self._idle.set()
        self._asked: asyncio.Queue[Message] = asyncio.Queue()
        self._told: asyncio.Queue[Message] = asyncio.Queue()
        self._life: asyncio.Task[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._requests += 1
        self._idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    async def start(self) -> None:
        """
        Start what the app does beside answering.

        Raises:
            RuntimeError: It says that it cannot.
        """
        lifespan: Awaitable[None] = self._app(
            {"type": "lifespan", "asgi": {"version": "3.0"}}, self._asked.get, self._told.put
        )
        self._life = asyncio.ensure_future(lifespan)
        await self._tell("lifespan.startup")

    async def end(self) -> None:
        """Let it answer what it has, then stop it; at once if the server stops meanwhile."""
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(RENEWAL_GRACE_S):
                await self._idle.wait()
        await self.stop()

    async def stop(self) -> None:
        """Stop what `start` started."""
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            await self._tell("lifespan.shutdown")

    async def _tell(self, message: str) -> None:
        if self._life is None or self._life.done():
            raise RuntimeError("the app does not run")
        await self._asked.put({"type": message})
        answer = asyncio.ensure_future(self._told.get())
        await asyncio.wait({answer, self._life}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            raise RuntimeError(f"{message}: the app ended") from self._life.exception()
        if answer.result()["type"] != f"{message}.complete":
            raise RuntimeError(f"{message}: {answer.result().get('message', '')}")
