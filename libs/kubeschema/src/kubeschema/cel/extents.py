"""
Upper bounds of the values that the parts of an expression can have.

A bound of something in the data refers to the values themselves, so that it is exact; the bound of
something computed has figures only. Used by ``expression_costs``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Extent:
    """No value of this part is longer, and none weighs more."""

    letters: float = 0
    """If it is a text."""
    entries: float = 0
    """If it is a list or a map."""
    number: float = math.inf
    """If it is an integer, without its sign."""
    computed_weight: float = 1
    inner: Extent | None = None
    """An entry of something computed; None: not known."""
    values: tuple[Any, ...] = ()
    """All values that it can have, if they come from the data."""

    @property
    def weight(self) -> float:
        """Letters and entries at any depth."""
        return max((weight_of(value) for value in self.values), default=self.computed_weight)

    @property
    def entry(self) -> Extent:
        """Return what bounds each entry of a list, and each value of a map."""
        if self.values:
            return extent_of(*_entries(self.values))
        return self.inner or unknown_extent(self.weight)

    @property
    def loop_entry(self) -> Extent:
        """Return what bounds that over which a loop with one variable runs: keys of a map."""
        if not any(isinstance(value, dict) for value in self.values):
            return self.entry
        keys = (key for value in self.values if isinstance(value, dict) for key in value)
        return extent_of(*keys, *_entries([v for v in self.values if isinstance(v, list)]))

    def field(self, name: str) -> Extent:
        """Return what bounds a field."""
        if not self.values:
            return self.entry
        objects = (value for value in self.values if isinstance(value, dict))
        return extent_of(*(fields[name] for fields in objects if name in fields))

    def __or__(self, other: Extent) -> Extent:
        """Return what bounds both."""
        if self is other:
            return self
        if self.values and other.values:
            return extent_of(*{id(v): v for v in (*self.values, *other.values)}.values())
        inners = [
            each.entry if each.values else each.inner for each in (self, other) if each.entries
        ]
        known_inners = [inner for inner in inners if inner is not None]
        inner = known_inners[0] if known_inners else None
        if len(known_inners) > 1:
            inner = known_inners[0] | known_inners[1]
        return Extent(
            max(self.letters, other.letters),
            max(self.entries, other.entries),
            max(self.number, other.number),
            max(self.weight, other.weight),
            inner if len(known_inners) == len(inners) else None,
        )


def extent_of(*values: Any) -> Extent:
    """Return the bound of values from the data."""
    letters = entries = number = 0
    for value in values:
        if isinstance(value, (str, bytes)):
            letters = max(letters, len(value))
        elif isinstance(value, (list, dict)):
            entries = max(entries, len(value))
        elif isinstance(value, int):
            number = max(number, abs(value))
    return Extent(letters, entries, number, values=values)


def unknown_extent(weight: float) -> Extent:
    """Return the bound of what has at most this weight and may have any form."""
    return Extent(weight, weight, math.inf, weight)


def weight_of(value: Any) -> float:
    """Return a bound for letters and entries; infinite for what is nested too deeply."""
    try:
        return len(repr(value))
    except (RecursionError, ValueError):  # ValueError: an integer of thousands of digits
        return math.inf


def _entries(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value
