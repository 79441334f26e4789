"""How many orders may be begun now. Pure: times are seconds of any clock that does not jump."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderkit.core.campaign.definition import Pace

BATCH = 8
"""How many orders are begun, at most, before all are looked at again."""
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Turn:
    """How many may begin now, and after how many seconds to ask again if that is none."""

    count: int
    wait_s: float = 0.0


def turn(pace: Pace, begun_s: Sequence[float], now_s: float) -> Turn:
    """
    Return how many orders may begin now.

    In no minute more begin than the pace allows, wherever the minute begins.

    Args:
        begun_s: When orders were begun, oldest first.
    """
    recent = [begun for begun in begun_s if begun > now_s - _MINUTE_S]
    room = pace.per_minute - len(recent)
    if room > 0:
        return Turn(room)
    freeing = recent[len(recent) - pace.per_minute]
    return Turn(0, freeing + _MINUTE_S - now_s)
