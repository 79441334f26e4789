"""
HTTP connections that end if a client sends its headers or its body, or reads, too slowly.

uvicorn limits only how long a connection may be idle between two requests. A client that sends one
byte now and then would keep a connection, its memory and its file handle for as long as it likes;
so would one that reads nothing of its answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from orderkit.web.client_time_limits import ClientTimeLimits


def protocol(time_limits: ClientTimeLimits) -> type[H11Protocol]:
    """Return the protocol that uvicorn makes one of for each connection."""

    class TimeLimitedProtocol(_TimeLimitedProtocol):
        _time_limits = time_limits

    return TimeLimitedProtocol


class _TimeLimitedProtocol(H11Protocol):
    _time_limits: ClientTimeLimits
    _deadline: asyncio.TimerHandle | None = None
    _awaited: Any = None
    """What the deadline is for: the client's state as h11 calls it."""
    _bytes_left = 0
    _reading: asyncio.TimerHandle | None = None
    """The deadline of a client whose buffer is full."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        state = self.conn.their_state
        if state is not self._awaited:
            self._await(state)
        elif state is h11.SEND_BODY:
            self._bytes_left -= len(data)
            if self._bytes_left <= 0:
                self._await(state)

    def on_response_complete(self) -> None:
        self._forget()  # between two requests, uvicorn's own limit counts
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self.loop.call_later(self._time_limits.reading_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._forget_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._forget_reading()
        super().connection_lost(exc)

    def _await(self, state: Any) -> None:
        self._forget()
        limits_s = {h11.IDLE: self._time_limits.headers_s, h11.SEND_BODY: self._time_limits.body_s}
        if state in limits_s:
            self._awaited, self._bytes_left = state, self._time_limits.body_bytes
            self._deadline = self.loop.call_later(limits_s[state], self._give_up)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._awaited = self._deadline = None

    def _forget_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _give_up(self) -> None:
        if self.flow.read_paused:  # the app has not read what is there: the client is not slow
            self._await(self._awaited)
        else:
            self.transport.abort()
