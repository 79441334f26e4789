"""
Compare two specs field by field, and merge two versions of an object.

`differences` compares maps key by key; a list is one value unless the caller asks for its elements.

`merged` merges maps key by key; a list is one value. If both sides changed a field differently,
theirs wins and the conflict is reported, because nobody should merge that unseen. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import field as named

from ground.objects.values import (
    ABSENT,
    Steps,
    path_text,
    same,
    shown,
    shown_pair,
    to_json,
    value_at,
    with_value,
)
from ground.shapes import Answer


class Difference(Answer, frozen=True):
    """A field that differs; null where it is not set."""

    field: str
    old: Any = named(name="from")
    new: Any = named(name="to")


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field that differs; `ABSENT` where it is not set."""

    steps: Steps
    old: Any
    new: Any
    group: str = field(default="", compare=False)
    """The map below ``spec`` that the form unfolds, so that people do not name it."""

    @property
    def label(self) -> str:
        """The field's name for a person, as in the form."""
        return self.path.removeprefix(f"{self.group}.") if self.group else self.path

    @property
    def path(self) -> str:
        """The field's path below ``spec``."""
        return path_text(self.steps)

    @property
    def new_shown(self) -> str:
        """The new value for a person."""
        return shown(self.new)

    def __str__(self) -> str:
        old, new = shown_pair(self.old, self.new)
        return f"{self.label} {old} → {new}"

    @property
    def answer(self) -> Difference:
        """What commands and service say of it."""
        return Difference(self.path, to_json(self.old), to_json(self.new))


def in_group(fields: Iterable[FieldDifference], group: str) -> tuple[FieldDifference, ...]:
    """Return differences that are shown without the name of the map that the form unfolds."""
    return tuple(replace(difference, group=group) for difference in fields)


def differences(
    old: Any, new: Any, *, maps_whole: bool = False, into_lists: bool = False
) -> tuple[FieldDifference, ...]:
    """
    Return the differing fields in the order of the old spec, new fields last.

    Args:
        maps_whole: Report an added or removed map as one value, not field by field.
        into_lists: Compare lists of the same length element by element.
    """
    return tuple(_Walk(maps_whole, into_lists).walk(old, new, ()))


@dataclass(frozen=True, slots=True)
class _Walk:
    maps_whole: bool
    into_lists: bool

    def walk(self, old: Any, new: Any, steps: Steps) -> Iterator[FieldDifference]:
        if not self.maps_whole and isinstance(new, dict) and new and old is ABSENT:
            old = {}
        if not self.maps_whole and isinstance(old, dict) and old and new is ABSENT:
            new = {}
        if isinstance(old, dict) and isinstance(new, dict):
            for key in [*old, *(key for key in new if key not in old)]:
                yield from self.walk(old.get(key, ABSENT), new.get(key, ABSENT), (*steps, str(key)))
        elif self.into_lists and _as_long(old, new):
            for index, (old_element, new_element) in enumerate(zip(old, new, strict=True)):
                yield from self.walk(old_element, new_element, (*steps, index))
        elif not same(old, new):
            yield FieldDifference(steps, old, new)


def _as_long(old: Any, new: Any) -> bool:
    return isinstance(old, list) and isinstance(new, list) and len(old) == len(new)


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """A field that both sides changed differently; `ABSENT` where it is not set."""

    steps: Steps
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        ours, theirs = shown(self.ours), shown(self.theirs)
        return f"{path_text(self.steps)}: main has {ours} now, this branch {theirs}"


def merged(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[MergeConflict, ...]]:
    """Return `ours` with the changes of `theirs` since `base`, and the conflicts."""
    result: dict[str, Any] = ours
    conflicts: dict[Steps, MergeConflict] = {}
    for difference in differences(base, theirs, maps_whole=True):
        our_value, new = value_at(ours, difference.steps), difference.new
        if same(our_value, new):
            continue
        if difference.old is ABSENT and isinstance(our_value, dict) and isinstance(new, dict):
            new, below = merged({}, our_value, new)  # both added a map
            moved = [
                replace(conflict, steps=(*difference.steps, *conflict.steps)) for conflict in below
            ]
            conflicts |= {conflict.steps: conflict for conflict in moved}
        elif not same(our_value, difference.old):
            conflicts[difference.steps] = MergeConflict(difference.steps, our_value, new)
        try:
            result = with_value(result, difference.steps, new)
        except KeyError:  # ours has no map where theirs does
            conflicts[difference.steps] = MergeConflict(difference.steps, our_value, new)
    return result, tuple(conflicts.values())
