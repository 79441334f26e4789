"""
Whether somebody waits for what is done now, or it is one of many things that may take its time.

A forge with limits lets people's requests pass first, and takes commits of background work by push.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_background: ContextVar[bool] = ContextVar("background", default=False)
_is_pushed: ContextVar[bool] = ContextVar("pushed", default=False)


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
