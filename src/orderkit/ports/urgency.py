"""
Whether somebody waits for what is done now, or it is one of many things that may take its time.

A forge with limits lets people's requests pass first, and takes commits of background work by push.
What waits for such a limit is known to the whole process, so that doctor and console can say it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_is_background: ContextVar[bool] = ContextVar("background", default=False)
_is_pushed: ContextVar[bool] = ContextVar("pushed", default=False)
_waits: list[Wait] = []


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """A request of this process that waits until a system's limit of speed lets it pass."""

    system: str
    until_s: float

    @property
    def left_s(self) -> float:
        """For how many seconds."""
        return max(self.until_s - time.monotonic(), 0)


@contextmanager
def background() -> Iterator[None]:
    """Count what this thread does meanwhile as background work: campaigns, sweeps, many orders."""
    with _set(_is_background), pushed():
        yield


@contextmanager
def pushed() -> Iterator[None]:
    """Have commits of this thread pushed where that costs less than the forge's API."""
    with _set(_is_pushed):
        yield


@contextmanager
def _set(mark: ContextVar[bool]) -> Iterator[None]:
    before = mark.set(True)
    try:
        yield
    finally:
        mark.reset(before)


def is_background() -> bool:
    """Say whether this thread does background work now."""
    return _is_background.get()


def is_pushed() -> bool:
    """Say whether commits of this thread are better pushed."""
    return _is_pushed.get()


@contextmanager
def waiting(system: str, seconds: float) -> Iterator[None]:
    """Let it be known that a request waits for so long."""
    wait = Wait(system, time.monotonic() + seconds)
    _waits.append(wait)
    try:
        yield
    finally:
        _waits.remove(wait)


def longest_wait() -> Wait | None:
    """Return what waits longest in this process, or None."""
    return max(tuple(_waits), key=lambda wait: wait.until_s, default=None)
