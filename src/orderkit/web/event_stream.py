"""
``GET /v1/stream``: changes of orders as Server-Sent Events, on the event loop.

A stream reads the live model's log of changes at its own pace, so it needs no buffer of its own;
one that lags too far behind is told to load everything again. Each event has the position of its
change as ``id``; a client that comes back with ``Last-Event-ID`` gets what it missed. A stream ends
after a while, because what proved its caller may have ended; the client reconnects.

``serving`` cuts connections whose reader takes nothing.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ground.errors import InProgressError
from orderkit.core.order.order_view import OrderRow
from orderkit.flows.live.live_row import ChangeLog, RowChange

MEDIA = "text/event-stream"
HEARTBEAT_S, LIFE_S = 15.0, 900.0
STREAMS_MAX, CALLERS_MAX = 1_000, 50
"""Bounds on open streams, of all and of one proved caller; the portal has no bound of its own."""
# proxies must not hold events back
_HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
"""A proxy that compressed a stream, as Backstage's would, would hold its events back."""


@dataclass(frozen=True, slots=True)
class StreamBounds:
    """How long streams last, how often they say that they live, and how many there may be."""

    heartbeat_s: float = HEARTBEAT_S
    life_s: float = LIFE_S
    streams: int = STREAMS_MAX
    of_caller: int = CALLERS_MAX


BOUNDS = StreamBounds()


class OrderStreams:
    """The open streams of one service."""

    def __init__(self, log: ChangeLog, bounds: StreamBounds) -> None:
        """Take what they follow."""
        self.bounds = bounds
        self._log = log
        self._lock = threading.Lock()
        self._of_caller: Counter[str] = Counter()
        self._waiting: set[asyncio.Event] = set()
        """Of the event loop's thread."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._unsubscribe = self._log.subscribe(self._wake_all)

    @property
    def open(self) -> int:
        """How many there are."""
        return self._of_caller.total()

    def reserve(self, caller: str, *, is_person: bool) -> None:
        """
        Count a stream that is about to open.

        Raises:
            InProgressError: There are too many.
        """
        with self._lock:
            of_caller = self._of_caller[caller]
            if self.open >= self.bounds.streams or (
                is_person and of_caller >= self.bounds.of_caller
            ):
                raise InProgressError(
                    f"too many open streams: {of_caller} of {caller}, {self.open} in all",
                    hint="close one, or ask GET /v1/orders from time to time",
                )
            self._of_caller[caller] += 1

    def release(self, caller: str) -> None:
        """Count a stream that ended."""
        with self._lock:
            self._of_caller[caller] -= 1
            if not self._of_caller[caller]:
                del self._of_caller[caller]

    def close(self) -> None:
        """End all streams soon."""
        self._is_closed = True
        self._unsubscribe()
        self._wake_all()

    def _wake_all(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._set_all)

    def _set_all(self) -> None:
        for changed in self._waiting:
            changed.set()

    async def events(
        self, number: int | None, is_shown: Callable[[OrderRow], bool], *, life_s: float
    ) -> AsyncIterator[bytes]:
        """
        Yield the events of one stream until its time is over or the service stops.

        Args:
            number: The last change that the client knows; None: it has to load everything.
            is_shown: Whether the client may see, and asked for, a row.
            life_s: How long the caller's proof lasts; the stream's own bound counts too.
        """
        self._loop, changed = asyncio.get_running_loop(), asyncio.Event()
        ends_s = time.monotonic() + min(life_s, self.bounds.life_s)
        self._waiting.add(changed)
        try:
            yield _event("reload" if number is None else "ready", self._log.position(number), {})
            number = self._log.last if number is None else number
            while not self._is_closed and (left_s := ends_s - time.monotonic()) > 0:
                # cleared before the log is read: a change that comes after the read wakes us
                changed.clear()
                changes = self._log.after(number)
                if changes is None:
                    number = self._log.last
                    yield _event("reload", self._log.position(number), {})
                    continue
                number = changes[-1].number if changes else number
                if text := _text(self._log, changes, is_shown):
                    yield text
                elif not await _set_in_time(changed, min(self.bounds.heartbeat_s, left_s)):
                    yield f": alive\nid: {self._log.position(number)}\n\n".encode()
        finally:
            self._waiting.discard(changed)


async def _set_in_time(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return False
    return True


def _text(
    log: ChangeLog, changes: tuple[RowChange, ...], is_shown: Callable[[OrderRow], bool]
) -> bytes:
    return b"".join(_change(log, change) for change in changes if is_shown(change.row.row))


def _change(log: ChangeLog, change: RowChange) -> bytes:
    position = log.position(change.number)
    if change.is_gone:
        row = change.row.row
        return _event("gone", position, {"order": row.order, "team": row.team})
    return b"id: %s\nevent: order\ndata: %s\n\n" % (position.encode(), change.row.data)


def _event(name: str, position: str, content: dict[str, Any]) -> bytes:
    return f"id: {position}\nevent: {name}\ndata: {json.dumps(content)}\n\n".encode()


class EventStream(StreamingResponse):
    """Events with a place among the open streams, which it gives back."""

    def __init__(self, events: AsyncIterator[bytes], release: Callable[[], None]) -> None:
        super().__init__(events, headers=_HEADERS, media_type=MEDIA)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] == "HEAD":
                await Response(headers=_HEADERS, media_type=MEDIA)(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)
        finally:
            self._release()
