"""
Check and convert the arguments of filters and methods.

Each function's fault names the filter, what it requires, and what to write instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from softwaretemplates.render import javascript as js
from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import Safe, Undefined, Value
from softwaretemplates.render.refusals import LimitFault, OperationFault, UnsupportedFault

__all__ = ["LIST_MAX"]

LIST_MAX = 100_000
"""Maximum entries of a list that a template builds; Backstage has the same limit."""


def used(value: Value) -> Value:
    """Return `value`. In strict mode, a name that was never passed is a fault."""
    if isinstance(value, Undefined):
        value.use()
    return value


def whole_number(value: Value, name: str) -> int:
    """Return a finite whole number."""
    number = js.number(value)
    if not math.isfinite(number) or not float(number).is_integer():
        raise OperationFault(f"'{name}' takes a whole number")
    return int(number)


def size(value: Value, name: str, *, least: int = 0) -> int:
    """Return a count between `least` and the maximum size of a list."""
    number = whole_number(value, name)
    if number < least:
        raise UnsupportedFault.of(refusals.ARGUMENTS, name)
    if number > LIST_MAX:
        raise LimitFault(f"'{name}' with {number}; at most {LIST_MAX}")
    return number


def plain_text(value: Value, name: str) -> str:
    """Return a text; "" for null, undefined and false, as Nunjucks' `normalize` does."""
    if isinstance(value, str):
        return value
    if value is None or value is False or isinstance(value, Undefined):
        used(value)
        return ""
    return must_be_text(value, name)


def must_be_text(value: Value, name: str) -> str:
    """Return a text; other values are refused."""
    if isinstance(used(value), str):
        return str(value)
    raise OperationFault(
        f"filter '{name}' needs text",
        hint=f"write `x | string | {name}`, or `x | default('') | {name}`",
    )


def must_be_list(value: Value, name: str) -> list[Value]:
    """Return a list; other values are refused."""
    if isinstance(used(value), list):
        return list(value)
    raise OperationFault(f"filter '{name}' needs a list", hint=f"write `(x or []) | {name}`")


def sequence(value: Value, name: str) -> list[Value]:
    """Return the items of a list or the characters of a text; nothing for other data."""
    if isinstance(value, list):
        return list(value)
    if isinstance(value, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, f"'{name}'")
    if isinstance(value, str):
        return list(js.whole(value))
    if isinstance(value, dict) and "length" in value:
        raise UnsupportedFault.of(refusals.ARGUMENTS, name)
    if value is None or isinstance(value, Undefined):
        used(value)
        raise OperationFault(f"filter '{name}' needs a list", hint=f"write `(x or []) | {name}`")
    return []


def limited(text: str, name: str) -> str:
    """Return a text, refused if it exceeds the maximum length."""
    if len(text) > js.TEXT_MAX:
        raise LimitFault(f"`{name}` builds a text of more than {js.TEXT_MAX} characters")
    return text


def limited_list(items: Iterable[Value], name: str) -> list[Value]:
    """Return a list, refused if it exceeds the maximum length."""
    entries = list(items)
    if len(entries) > LIST_MAX:
        raise LimitFault(f"`{name}` builds a list of more than {LIST_MAX} entries")
    return entries


def in_order(values: list[Value], name: str, *, alike: bool = False) -> list[Value]:
    """
    Return keys that sort as JavaScript's ``<`` does.

    Args:
        alike: Accept only strings, or only numbers; otherwise also values that convert to one of
            them.

    Raises:
        UnsupportedFault: The values are of different kinds, whose order depends on the engine.
    """
    if all(isinstance(value, str) for value in values):
        return [units(value) for value in values]
    if all(js.is_number(value) and not math.isnan(value) for value in values):
        return values
    if not alike:
        if all(isinstance(value, Undefined) for value in values):
            return [0] * len(values)
        if all(isinstance(value, str | list | dict) for value in values):
            return [units(js.text(value)) for value in values]
        if all(value is None or isinstance(value, bool | int) for value in values):
            return [js.number(value) for value in values]
    raise UnsupportedFault.of(refusals.MIXED_ORDER, name)


def units(text: str) -> bytes:
    """Return bytes that compare as JavaScript compares strings: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
