"""Repeat a compare-and-swap that another writer won."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ground.errors import ConflictError
from orderkit.core.process_counts import count

T = TypeVar("T")


def in_rounds(attempt: Callable[[], T], *, rounds: int = 5) -> T:
    """
    Return what an attempt returns that reads, decides and writes, after at most so many rounds.

    Raises:
        ConflictError: Others won every round. Besides, whatever `attempt` raises.
    """
    for _ in range(rounds - 1):
        with suppress(ConflictError):
            return attempt()
        count("lost_races", "repeated")
    try:
        return attempt()
    except ConflictError:
        count("lost_races", "given up")
        raise
