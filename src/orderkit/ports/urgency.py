"""
Whether somebody waits for what is done now, or it is one of many things that may take its time.

A forge with limits lets people's requests pass first, and takes commits of background work by push.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_background: ContextVar[bool] = ContextVar("background", default=False)


@contextmanager
def background() -> Iterator[None]:
    """Count what this thread does meanwhile as background work: campaigns, sweeps, many orders."""
    before = _is_background.set(True)
    try:
        yield
    finally:
        _is_background.reset(before)


def is_background() -> bool:
    """Say whether this thread does background work now."""
    return _is_background.get()
