"""
Methods of strings, lists and numbers that Nunjucks and Nunjitsu both have.

Methods that change a list (``push`` and similar) change it for the rest of the rendering.
``engine`` passes a copy of the values to templates that call them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from softwaretemplates.render import javascript as js
from softwaretemplates.render import numbers, refusals
from softwaretemplates.render.global_functions import Cycler
from softwaretemplates.render.javascript import UNDEFINED, Safe, Undefined, Value
from softwaretemplates.render.list_filters import concatenated, joined
from softwaretemplates.render.operands import LIST_MAX, limited, used, whole_number
from softwaretemplates.render.refusals import LimitFault, OperationFault, UnsupportedFault

__all__ = ["CYCLER_METHODS", "LIST_METHODS", "NUMBER_METHODS", "TEXT_METHODS", "Method"]

_MANY = 1_000


@dataclass(frozen=True, slots=True)
class Method:
    """A method and the number of arguments that Nunjitsu accepts."""

    run: Callable[..., Value]
    arguments_min: int = 0
    arguments_max: int = 0
    changes: bool = False


def _position(value: Value, size: int, absent: int) -> int:
    """Return an argument that counts from the start, limited to the size of a text or list."""
    if isinstance(value, Undefined):
        return absent
    position = js.number(used(value))
    if math.isnan(position):
        return 0
    return int(min(max(position, 0), size))


def _place(value: Value, size: int, absent: int) -> int:
    """Return an argument that counts from the end if negative."""
    if isinstance(value, Undefined):
        return absent
    position = js.number(value)
    if math.isnan(position):
        return 0
    position = min(max(position, -size), size)
    return int(position) + (size if position <= -1 else 0)


# --- texts


def _cut(value: str, begin: Value = UNDEFINED, end: Value = UNDEFINED) -> str:
    size = len(js.whole(value))
    return value[_place(begin, size, 0) : _place(end, size, size)]


def _substring(value: str, begin: Value = UNDEFINED, end: Value = UNDEFINED) -> str:
    size = len(js.whole(value))
    low, high = sorted((_position(begin, size, 0), _position(end, size, size)))
    return value[low:high]


def _char_at(value: str, index: Value = UNDEFINED) -> str:
    at = _index(value, index)
    return "" if at is None else value[at]


def _code_at(value: str, index: Value = UNDEFINED) -> Value:
    at = _index(value, index)
    return math.nan if at is None else ord(value[at])


def _index(value: str, index: Value) -> int | None:
    position = 0 if isinstance(index, Undefined) else js.number(index)
    at = 0 if math.isnan(position) else position
    js.whole(value)
    # JavaScript truncates towards zero, so -0.5 is the first character.
    return int(at) if -1 < at < len(value) else None


def _starts(value: str, prefix: Value, begin: Value = UNDEFINED) -> bool:
    if isinstance(begin, Undefined):
        return value.startswith(js.text(prefix))
    return value.startswith(js.text(prefix), _position(begin, len(js.whole(value)), 0))


def _ends(value: str, suffix: Value, end: Value = UNDEFINED) -> bool:
    if isinstance(end, Undefined):
        return value.endswith(js.text(suffix))
    return value[: _position(end, len(js.whole(value)), 0)].endswith(js.text(suffix))


def _includes(value: str, fragment: Value, begin: Value = UNDEFINED) -> bool:
    if isinstance(begin, Undefined):
        return js.text(fragment) in value
    return js.text(fragment) in value[_position(begin, len(js.whole(value)), 0) :]


def _find(value: str, fragment: Value, begin: Value = UNDEFINED) -> int:
    if isinstance(begin, Undefined):
        return _offset(value, value.find(js.text(fragment)))
    return value.find(js.text(fragment), _position(begin, len(js.whole(value)), 0))


def _find_last(value: str, fragment: Value, begin: Value = UNDEFINED) -> int:
    text = js.text(fragment)
    if isinstance(begin, Undefined) or math.isnan(js.number(begin)):
        return _offset(value, value.rfind(text))
    size = len(js.whole(value))
    return value.rfind(text, 0, _position(begin, size, size) + len(text))


def _offset(value: str, index: int) -> int:
    return index if index < 0 else js.utf16_length(value[:index])


def _replace(value: str, old: Value, new: Value) -> str:
    replacement = js.text(new)
    # JavaScript expands "$&" and the like in a replacement.
    if "$" in replacement:
        raise UnsupportedFault.of(refusals.DOLLAR)
    return limited(value.replace(js.text(old), replacement, 1), "replace")


def _split(value: str, separator: Value = UNDEFINED, limit: Value = UNDEFINED) -> list[Value]:
    parts_max = LIST_MAX + 1 if isinstance(limit, Undefined) else whole_number(limit, "split")
    if parts_max < 0:
        raise UnsupportedFault.of(refusals.ARGUMENTS, "split")
    if isinstance(separator, Undefined):
        return [value][:parts_max]
    glue = js.text(separator)
    parts: list[Value] = [*js.whole(value)] if not glue else [*value.split(glue)]
    if len(parts) > LIST_MAX:
        raise LimitFault(f".split() into more than {LIST_MAX} parts")
    return parts[:parts_max]


def _concat_text(value: str, *texts: Value) -> str:
    return limited(value + "".join(js.text(other) for other in texts), "concat")


TEXT_METHODS: Mapping[str, Method] = {
    "charAt": Method(_char_at, 0, 1),
    "charCodeAt": Method(_code_at, 0, 1),
    "concat": Method(_concat_text, 0, _MANY),
    "endsWith": Method(_ends, 1, 2),
    "includes": Method(_includes, 1, 2),
    "indexOf": Method(_find, 1, 2),
    "lastIndexOf": Method(_find_last, 1, 2),
    "replace": Method(_replace, 2, 2),
    "slice": Method(_cut, 0, 2),
    "split": Method(_split, 0, 2),
    "startsWith": Method(_starts, 1, 2),
    "substring": Method(_substring, 0, 2),
    "toLowerCase": Method(str.lower),
    "toUpperCase": Method(str.upper),
    "trim": Method(lambda value: value.strip(js.SPACE)),
    "trimEnd": Method(lambda value: value.rstrip(js.SPACE)),
    "trimStart": Method(lambda value: value.lstrip(js.SPACE)),
}


# --- lists


def _at(value: list[Value], index: Value) -> Value:
    position = js.number(index)
    at = (
        0
        if math.isnan(position)
        else math.trunc(position)
        if math.isfinite(position)
        else len(value)
    )
    return value[at] if -len(value) <= at < len(value) else UNDEFINED


def _index_of(value: list[Value], target: Value, begin: Value = UNDEFINED) -> int:
    start = _place(begin, len(value), 0)
    indexes = (at for at in range(start, len(value)) if js.strictly_equal(value[at], target))
    return next(indexes, -1)


def _last_index_of(value: list[Value], target: Value, begin: Value = UNDEFINED) -> int:
    last = len(value) - 1
    if not isinstance(begin, Undefined):
        start = whole_number(begin, "lastIndexOf")
        last = min(start, last) if start >= 0 else len(value) + start
    indexes = (at for at in range(last, -1, -1) if js.strictly_equal(value[at], target))
    return next(indexes, -1)


def _has(value: list[Value], target: Value, begin: Value = UNDEFINED) -> bool:
    if isinstance(target, float) and math.isnan(target):
        return any(isinstance(item, float) and math.isnan(item) for item in value)
    return _index_of(value, target, begin) >= 0


def _flat(value: list[Value], depth: Value = 1) -> list[Value]:
    levels = 1 if isinstance(depth, Undefined) else js.number(depth)
    return _flattened(value, 0 if math.isnan(levels) else min(levels, 50))


def _flattened(value: list[Value], levels: float) -> list[Value]:
    items: list[Value] = []
    for item in value:
        items += _flattened(item, levels - 1) if levels >= 1 and isinstance(item, list) else [item]
        if len(items) > LIST_MAX:
            raise LimitFault(f".flat() of more than {LIST_MAX} entries")
    return items


def _join(value: list[Value], glue: Value = UNDEFINED) -> str:
    return limited(joined(value, "," if isinstance(glue, Undefined) else js.text(glue)), "join")


def _slice(value: list[Value], begin: Value = UNDEFINED, end: Value = UNDEFINED) -> list[Value]:
    size = len(value)
    return value[_place(begin, size, 0) : _place(end, size, size)]


# --- lists, changed in place


def _grown(value: list[Value], items: tuple[Value, ...]) -> None:
    """Refuse additions that would make a list too long or put it into itself."""
    if len(value) + len(items) > LIST_MAX:
        raise LimitFault(f"a list of more than {LIST_MAX} entries")
    if any(_holds(item, value) for item in items):
        raise OperationFault("a list cannot be put into itself")


def _holds(item: Value, targets: list[Value]) -> bool:
    if isinstance(item, dict):
        return any(_holds(inner, targets) for inner in item.values())
    return isinstance(item, list) and (
        item is targets or any(_holds(inner, targets) for inner in item)
    )


def push(value: list[Value], *items: Value) -> int:
    """Append and return the new length."""
    _grown(value, items)
    value.extend(items)
    return len(value)


def _unshift(value: list[Value], *items: Value) -> int:
    _grown(value, items)
    value[:0] = items
    return len(value)


def _splice(value: list[Value], *arguments: Value) -> list[Value]:
    if any(isinstance(argument, Undefined) for argument in arguments[:2]):
        raise UnsupportedFault.of(refusals.ARGUMENTS, "splice")
    _grown(value, arguments[2:])
    start = _place(arguments[0], len(value), 0) if arguments else len(value)
    count = _position(arguments[1], len(value), 0) if len(arguments) > 1 else len(value)
    count = count if arguments else 0
    removed = value[start : start + count]
    value[start : start + count] = arguments[2:]
    return removed


def _sort(value: list[Value]) -> list[Value]:
    keys = [js.text(item).encode("utf-16-be", "surrogatepass") for item in value]
    last = [isinstance(item, Undefined) for item in value]
    order = sorted(range(len(value)), key=lambda at: (last[at], keys[at]))
    value[:] = [value[at] for at in order]
    return value


def _reverse(value: list[Value]) -> list[Value]:
    value.reverse()
    return value


def _fill(
    value: list[Value], item: Value, begin: Value = UNDEFINED, end: Value = UNDEFINED
) -> list[Value]:
    _grown(value, (item,))
    size = len(value)
    for at in range(_place(begin, size, 0), _place(end, size, size)):
        value[at] = item
    return value


def _pop(value: list[Value]) -> Value:
    return value.pop() if value else UNDEFINED


def _shift(value: list[Value]) -> Value:
    return value.pop(0) if value else UNDEFINED


LIST_METHODS: Mapping[str, Method] = {
    "at": Method(_at, 1, 1),
    "concat": Method(concatenated, 0, _MANY),
    "fill": Method(_fill, 1, 3, changes=True),
    "flat": Method(_flat, 0, 1),
    "includes": Method(_has, 1, 2),
    "indexOf": Method(_index_of, 1, 2),
    "join": Method(_join, 0, 1),
    "lastIndexOf": Method(_last_index_of, 1, 2),
    "pop": Method(_pop, changes=True),
    "push": Method(push, 0, _MANY, changes=True),
    "reverse": Method(_reverse, changes=True),
    "shift": Method(_shift, changes=True),
    "slice": Method(_slice, 0, 2),
    "sort": Method(_sort, changes=True),
    "splice": Method(_splice, 0, _MANY, changes=True),
    "unshift": Method(_unshift, 0, _MANY, changes=True),
}


# --- numbers


def _digits(run: Callable[[float, int], str], *, absent: int) -> Callable[..., str]:
    def method(value: float, argument: Value = UNDEFINED) -> str:
        has_digits = not isinstance(argument, Undefined)
        return run(value, whole_number(argument, "digits") if has_digits else absent)

    return method


def _exponential(value: float, places: Value = UNDEFINED) -> str:
    absent = isinstance(places, Undefined)
    return numbers.to_exponential(value, None if absent else whole_number(places, "toExponential"))


def _precision(value: float, digits: Value = UNDEFINED) -> str:
    if isinstance(digits, Undefined):
        return js.number_text(value)
    return numbers.to_precision(value, whole_number(digits, "toPrecision"))


NUMBER_METHODS: Mapping[str, Method] = {
    "toExponential": Method(_exponential, 0, 1),
    "toFixed": Method(_digits(numbers.to_fixed, absent=0), 0, 1),
    "toPrecision": Method(_precision, 0, 1),
    "toString": Method(_digits(numbers.to_radix, absent=10), 0, 1),
}

# --- cyclers

CYCLER_METHODS: Mapping[str, Method] = {"next": Method(Cycler.next), "reset": Method(Cycler.reset)}


METHODS = frozenset().union(TEXT_METHODS, LIST_METHODS, NUMBER_METHODS, CYCLER_METHODS)
CHANGING = frozenset(name for name, method_ in LIST_METHODS.items() if method_.changes)


def table_of(value: Value) -> Mapping[str, Method]:
    """Return the methods of a value."""
    if isinstance(value, str):
        return TEXT_METHODS
    if isinstance(value, list):
        return LIST_METHODS
    if js.is_number(value):
        return NUMBER_METHODS
    return CYCLER_METHODS if isinstance(value, Cycler) else {}


def method(value: Value, name: str, *arguments: Value) -> Value:
    """
    Call a method of JavaScript's strings, lists and numbers.

    Raises:
        Fault: The value has no such method.
    """
    used(value)
    return run_method(table_of(value).get(name), value, name, arguments)


def run_method(
    method_: Method | None, value: Value, name: str, arguments: tuple[Value, ...]
) -> Value:
    """
    Call a method that was looked up.

    Raises:
        Fault: There is no such method.
        UnsupportedFault: The arguments are not supported.
    """
    if method_ is None or (isinstance(value, dict) and name in value):
        raise OperationFault(f"the value has no method '{name}'")
    if not method_.arguments_min <= len(arguments) <= method_.arguments_max:
        raise UnsupportedFault.of(refusals.METHOD_ARGUMENTS, name)
    if any(isinstance(argument, js.Function | Safe) for argument in arguments):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, f"`.{name}()`")
    if isinstance(value, Safe):
        value = str(value)
    return method_.run(js.number(value) if js.is_number(value) else value, *arguments)
