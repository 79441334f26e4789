"""
Replace the app of a running server, so that changed settings and secrets count without a restart.

The new app is started before it gets requests. The old one ends after a moment in which its
requests can be answered; its streams end, and their clients connect again. An app that cannot be
made or started changes nothing: the old one goes on, and the log says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ground.errors import OrderkitError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

GRACE_S = 30.0
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
            async with asyncio.timeout(GRACE_S):
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
