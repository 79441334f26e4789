"""
JSON-like values: copy them, read, set or remove one below ``spec``, and show one to a person.

A value that is not there is `ABSENT`, because a null is a value. Nothing is changed in place.

`clone` is fast, `copied` proves that the data is JSON-like. Functions and stations change what they
are given and return what they like. Between two of them everything passes through `copied`, as it
would through protobuf's Struct on the wire: what a Kubernetes object cannot hold is refused here,
with its path.
"""

from __future__ import annotations

import enum
import itertools
import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from ground.errors import shorten
from ground.visible_text import visible

__all__ = [
    "ABSENT",
    "Absent",
    "NotPlainError",
    "Step",
    "Steps",
    "clone",
    "copied",
    "overlaid",
    "path_text",
    "same",
    "shown",
    "shown_pair",
    "to_json",
    "value_at",
    "whole",
    "with_value",
]

T = TypeVar("T")

_EXACT_MAX = 2**53
"""Numbers travel as doubles; larger integers would silently lose digits."""


def clone(value: T) -> T:
    """
    Return a copy of dicts, lists and scalars that shares no dict or list with `value`.

    Ten times faster than ``copy.deepcopy``.
    """
    if isinstance(value, dict):
        return {k: clone(v) if isinstance(v, dict | list) else v for k, v in value.items()}  # type: ignore[return-value]  # same shape by construction
    if isinstance(value, list):
        return [clone(v) if isinstance(v, dict | list) else v for v in value]  # type: ignore[return-value]  # same shape by construction
    return value


class NotPlainError(ValueError):
    """A value that JSON (or a double) cannot carry."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path or 'the value'} {why}")


def copied(value: Any, path: str = "") -> Any:
    """
    Return a deep copy; integral floats become integers, tuples become lists.

    Raises:
        NotPlainError: The value holds a date, a set, bytes, a key that is not text, NaN, ...
    """
    try:
        return _plain(value)
    except _OddError:
        return _copied(value, path)  # again, more slowly, to name the path


class _OddError(Exception):
    """Something that must be looked at with its path."""


def _plain(value: Any) -> Any:
    """Copy what is of JSON's own types, which is nearly everything, in half the time."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is dict:
        plain_map = {}
        for key, entry in value.items():
            if type(key) is not str:
                raise _OddError
            plain_map[key] = entry if type(entry) is str else _plain(entry)
        return plain_map
    if kind is list:
        return [entry if type(entry) is str else _plain(entry) for entry in value]
    if kind is int and -_EXACT_MAX <= value <= _EXACT_MAX:
        return value
    if kind is float and -_EXACT_MAX <= value <= _EXACT_MAX:
        return int(value) if value.is_integer() else value
    raise _OddError


def _copied(value: Any, path: str) -> Any:
    """Copy with the path at hand, to name what cannot be copied."""
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, int):
        return _exact(value, path)
    if isinstance(value, float):
        return _number(value, path)
    if isinstance(value, dict):
        return {_key(key, path): _copied(entry, f"{path}.{key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(entry, f"{path}[{index}]") for index, entry in enumerate(value)]
    raise NotPlainError(path, f"is a {type(value).__name__}, which no Kubernetes object can hold")


def _exact(value: int, path: str) -> int:
    if abs(value) > _EXACT_MAX:
        raise NotPlainError(path, f"is {value}, beyond 2^53: carry it as text")
    return value


def _number(value: float, path: str) -> int | float:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise NotPlainError(path, f"is {value}, which JSON cannot write")
    return int(value) if value.is_integer() and abs(value) <= _EXACT_MAX else value


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise NotPlainError(path, f"has the key {key!r}, which is not text")
    return key


def overlaid(base: Any, over: Any) -> Any:
    """Return `base` with `over` on top: maps merge deeply, everything else is replaced."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: overlaid(base.get(key), entry) for key, entry in over.items()}}


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
