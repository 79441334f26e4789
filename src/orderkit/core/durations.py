"""Durations as people write them, ``90m``, ``8h``, ``30d``, ``4w``, and as Orderkit shows them."""

from __future__ import annotations

import re
from datetime import timedelta

from ground.errors import InvalidInputError

PATTERN = r"^[1-9][0-9]{0,5}[mhdw]$"
"""The pattern of a duration, in every dialect of regular expressions."""
_DURATION = re.compile(r"([1-9][0-9]{0,5})([mhdw])", re.ASCII)
_UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
}
LONGEST = timedelta(days=36_500)
"""A hundred years: no duration is longer, and no lease ends later than that from now."""
_SPOKEN = ((365 * 86_400, 2, "years"), (86_400, 2, "days"), (3_600, 2, "hours"), (60, 1, "min"))
"""Seconds of a unit, from how many units on it is used, and its name."""
_SHOWN = 100
_EXAMPLES = "for example 90m, 8h, 30d or 4w"


def parse_duration(text: object, *, field: str) -> timedelta:
    """
    Read a whole number of minutes, hours, days or weeks.

    Raises:
        InvalidInputError: It is something else, or longer than a hundred years.
    """
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        shown = text[:_SHOWN] if isinstance(text, str) else text
        raise InvalidInputError(field, shown, "is not a duration", hint=_EXAMPLES)
    duration = int(match[1]) * _UNITS[match[2]]
    if duration > LONGEST:
        raise InvalidInputError(field, text, "is longer than a hundred years", hint=_EXAMPLES)
    return duration


def duration_text(duration: timedelta) -> str:
    """Return a duration in the largest unit without a rest, ``90m``; seconds are cut off."""
    minutes = max(0, int(duration.total_seconds()) // 60)
    for letter in "dh":
        whole, rest = divmod(minutes, int(_UNITS[letter].total_seconds()) // 60)
        if whole and not rest:
            return f"{whole}{letter}"
    return f"{minutes}m"


def spoken_duration(seconds: float) -> str:
    """Return how long something takes or took, as people say it: ``5 min``, ``3 hours``."""
    for unit_s, shortest, name in _SPOKEN:
        if seconds >= shortest * unit_s:
            return f"{round(seconds / unit_s)} {name}"
    return "moments"


def rough_duration(duration: timedelta) -> str:
    """Return a duration in two units at most, rounded down: ``3d 4h``, ``59m``."""
    minutes = max(0, int(duration.total_seconds()) // 60)
    parts: list[tuple[int, str]] = []
    for letter in "dhm":
        unit = int(_UNITS[letter].total_seconds()) // 60
        whole, minutes = divmod(minutes, unit)
        if whole or parts:
            parts.append((whole, letter))
    shown = [f"{whole}{letter}" for whole, letter in parts[:2] if whole]
    return " ".join(shown) or "0m"
