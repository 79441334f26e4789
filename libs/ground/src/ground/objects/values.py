"""
Values below ``spec``: read one, set one, remove one, and show one to a person.

A value that is not there is `ABSENT`, because a null is a value. Nothing is changed in place.
"""

from __future__ import annotations

import enum
import itertools
import json
from collections.abc import Sequence
from typing import Any, Final

from ground.errors import shorten
from ground.visible_text import visible

__all__ = [
    "ABSENT",
    "Absent",
    "Step",
    "Steps",
    "path_text",
    "same",
    "shown",
    "shown_pair",
    "to_json",
    "value_at",
    "whole",
    "with_value",
]

Step = str | int
Steps = tuple[Step, ...]

_SHOWN_MAX = 80


class Absent(enum.Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


def value_at(value: Any, steps: Sequence[Step]) -> Any:
    """Return the value at a place, or `ABSENT`."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return ABSENT
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return ABSENT
    return value


def with_value(value: Any, steps: Sequence[Step], new: Any) -> Any:
    """
    Return a copy of `value` that has `new` at a place; `ABSENT` removes it.

    Maps on the way are made where they are missing.

    Raises:
        KeyError: The way leads through something that is not a map, or past a list's end.
    """
    if not steps:
        return new
    first, further_steps = steps[0], steps[1:]
    if isinstance(value, list) and isinstance(first, int) and first < len(value):
        changed = with_value(value[first], further_steps, new)
        return [*value[:first], *([] if changed is ABSENT else [changed]), *value[first + 1 :]]
    if value is ABSENT or value is None:
        value = {}
    if not isinstance(value, dict) or not isinstance(first, str):
        raise KeyError(first)
    if new is ABSENT and first not in value:
        return value
    changed = with_value(value.get(first, ABSENT), further_steps, new)
    if changed is ABSENT:
        return {key: entry for key, entry in value.items() if key != first}
    return {**value, first: changed}


def same(value: Any, other_value: Any) -> bool:
    """Say whether two values are the same to Kubernetes: 1 and True are not, 1 and 1.0 are."""
    if value is other_value or type(value) is str:
        return bool(value == other_value)
    if isinstance(value, bool) is not isinstance(other_value, bool):
        return False
    if isinstance(value, dict) and isinstance(other_value, dict):
        return value.keys() == other_value.keys() and all(
            same(value[key], other_value[key]) for key in value
        )
    if isinstance(value, list) and isinstance(other_value, list):
        return len(value) == len(other_value) and all(map(same, value, other_value))
    return bool(value == other_value)


def shown(value: Any) -> str:
    """Write a value for a person, on one line, cut."""
    return shorten(whole(value), limit=_SHOWN_MAX)


def shown_pair(old: Any, new: Any, *, limit: int = _SHOWN_MAX) -> tuple[str, str]:
    """Write two values for a person, cut so that the place where they begin to differ is seen."""
    texts = [" ".join(whole(value).split()) for value in (old, new)]
    pairs = zip(*texts, strict=False)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    if max(map(len, texts)) > limit and common > limit // 2:
        begin = common - limit // 4
        texts = [f"…{text[begin:]}" for text in texts]
    old_text, new_text = (shorten(text, limit=limit) for text in texts)
    return old_text, new_text


def whole(value: Any) -> str:
    """Write a value for a person, on one line, however long."""
    if value is ABSENT:
        return "(not set)"
    if isinstance(value, str) and value and value.isprintable():
        return value
    return visible(json.dumps(value, ensure_ascii=False, sort_keys=True))


def to_json(value: Any) -> Any:
    """Return the value as JSON has it; `ABSENT` becomes null."""
    return None if value is ABSENT else value


def path_text(steps: Sequence[Step]) -> str:
    """Write steps as the API server writes a path: ``ports[0].name``, ``labels[a.b]``."""
    text = ""
    for step in steps:
        plain = isinstance(step, str) and step and not set(step) & set(".[]")
        text += (f".{step}" if text else str(step)) if plain else f"[{step}]"
    return text
