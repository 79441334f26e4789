"""
JavaScript's semantics for JSON-like values: printing, truth, equality, arithmetic, members.

Values are those of JSON (None is ``null``; numbers are doubles, stored as int or float) and
``Undefined``. Checked against Node for what the renderer uses. JavaScript's other kinds of objects
(functions, dates, symbols) do not occur here.

The names of members that every JavaScript object of a kind has are listed: they are never data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from softwaretemplates.render import refusals
from softwaretemplates.render.refusals import (
    LimitFault,
    MissingFault,
    OperationFault,
    UnsupportedFault,
)

__all__ = ["TEXT_MAX", "Closed", "ordered", "text", "to_json"]


def _names(table: str) -> frozenset[str]:
    return frozenset(table.split())


OBJECT = _names(
    "__proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ constructor "
    "hasOwnProperty isPrototypeOf propertyIsEnumerable prototype toLocaleString toString "
    "valueOf"
)
TEXT = OBJECT | _names(
    "anchor at big blink bold charAt charCodeAt codePointAt concat endsWith fixed fontcolor "
    "fontsize includes indexOf isWellFormed italics lastIndexOf link localeCompare match "
    "matchAll normalize padEnd padStart repeat replace replaceAll search slice small split "
    "startsWith strike sub substr substring sup toLocaleLowerCase toLocaleUpperCase toLowerCase "
    "toUpperCase toWellFormed trim trimEnd trimLeft trimRight trimStart"
)
LIST = OBJECT | _names(
    "at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat "
    "flatMap forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight "
    "reverse shift slice some sort splice toReversed toSorted toSpliced unshift values "
    "with"
)
NUMBER = OBJECT | {"toExponential", "toFixed", "toPrecision"}


Value = Any
"""A JSON-like value or an `Undefined`. `Any`, because templates decide its shape."""

SAFE_INTEGER = 2**53
_BEYOND = 1 << 1023
_WITH_BASE = re.compile(r"0[xX][0-9A-Fa-f]{1,200}|0[bB][01]{1,200}|0[oO][0-7]{1,200}")
_DECIMAL = re.compile(r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that ``\\s`` matches and ``trim()`` removes."""
EXPONENT_MAX = 1100
"""Largest exponent of a power that is proved exact."""
TEXT_MAX = 1 << 24
"""Longest text that an operation may build, in characters."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """
    ``undefined``, and why.

    `missing` is a message if the value was never passed and strictness is on. Then every use as
    text or number is a fault. Tests, ``default`` and conditions are always allowed.
    """

    missing: str = ""
    hint: str = ""

    def use(self) -> None:
        """Raise MissingFault if the value was never passed and strictness is on."""
        if self.missing:
            raise MissingFault(self.missing, hint=self.hint)


UNDEFINED = Undefined()


class Safe(str):
    """
    The result of a macro, ``safe`` or ``escape``: an object in JavaScript that acts as text.

    It is truthy even when empty, strictly equal only to itself, and not a string to a test.
    """

    __slots__ = ()


class Unknown(str):
    """
    An output that a dry run cannot know: text that says so, for every member too.

    As text it is ``<unknown: steps.ID.output.NAME>``, or just ``<unknown>``.
    """

    __slots__ = ()

    @classmethod
    def at(cls, path: str) -> Unknown:
        """Return the unknown value of a path."""
        return cls(f"<unknown: {path}>")

    def part(self, key: str) -> Unknown:
        """Return a member's value, which is unknown as well."""
        return Unknown(f"{self[:-1]}.{key}>") if ":" in self else self


class Function:
    """A function of the template: a macro, a cycler… Never data; printing it is a fault."""

    __slots__ = ()


class Closed(dict[str, Value]):
    """A map whose missing members are errors, not ``undefined``: ``values`` of a skeleton."""

    def missing(self, key: object) -> Undefined:
        names = ", ".join(self) or "none"
        return Undefined(
            f"values.{key} is used, but no value of that name was passed",
            f'pass it in the step\'s `values`, or write `values.{key} | default("…", true)`; '
            f"known values: {names}",
        )


class Unforeseen(dict[str, Value]):
    """A map of which a dry run knows some members only: all others are unknown."""

    def __init__(self, members: Mapping[str, Value], path: str) -> None:
        super().__init__(members)
        self.path = path

    def missing(self, key: object) -> Unknown:
        return Unknown.at(f"{self.path}.{key}")


class Ragged(dict[str, Value]):
    """
    A map that has additional keys, with undefined values, in newer releases of Backstage.

    Its members and its JSON are the same in all releases. Counting or listing its keys is refused.
    """


def is_number(value: Value) -> bool:
    """Return whether the value is a number (Python's booleans are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_text(number: float) -> str:
    """Write a number as ``String(n)`` does, doubles included."""
    if isinstance(number, int) and abs(number) < SAFE_INTEGER:
        return str(number)
    try:
        double = float(number)
    except OverflowError:
        return "Infinity" if number > 0 else "-Infinity"
    if math.isnan(double):
        return "NaN"
    if math.isinf(double):
        return "Infinity" if double > 0 else "-Infinity"
    if double == 0:
        return "0"
    return ("-" if double < 0 else "") + _digits(abs(double))


def _digits(double: float) -> str:
    """Write the shortest digits of a positive double (ECMA-262, Number::toString)."""
    mantissa, _, exponent = f"{double!r}".partition("e")
    integer_digits, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (integer_digits + fraction).lstrip("0")
    leading = len(integer_digits + fraction) - len(digits)
    point = len(integer_digits) + int(exponent or 0) - leading
    digits = digits.rstrip("0")
    size = len(digits)
    if size <= point <= 21:  # noqa: PLR2004 - the standard's own number
        return digits + "0" * (point - size)
    if 0 < point <= 21:  # noqa: PLR2004
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:  # noqa: PLR2004
        return "0." + "0" * -point + digits
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return (digits if size == 1 else f"{digits[0]}.{digits[1:]}") + power


def text(value: Value) -> str:
    """Return ``String(value)``."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, Undefined):
        value.use()
        return "undefined"
    if isinstance(value, int | float):
        return number_text(value)
    return _container_text(value)


def _container_text(value: Value) -> str:
    if isinstance(value, list):
        return ",".join("" if _is_nullish(item) else text(item) for item in value)
    if isinstance(value, Mapping):
        return "[object Object]"
    raise UnsupportedFault.of(refusals.FUNCTION_VALUE, "text")


def _is_nullish(value: Value) -> bool:
    return value is None or isinstance(value, Undefined)


def printed(value: Value) -> str:
    """Return what ``${{ value }}`` prints: nothing for undefined and null."""
    if isinstance(value, str):
        return value
    if isinstance(value, Undefined):
        value.use()
        return ""
    return "" if value is None else text(value)


def truthy(value: Value) -> bool:
    """Return ``Boolean(value)``: empty lists and maps are true."""
    if isinstance(value, list | dict | Safe):
        return True
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    return bool(value) and not isinstance(value, Undefined)


def double(integer: int) -> float:
    """Return an integer as JavaScript stores it."""
    try:
        return float(integer)
    except OverflowError:
        return math.inf if integer > 0 else -math.inf


def number(value: Value) -> float:
    """Return ``Number(value)``."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) <= SAFE_INTEGER else double(value)
    if isinstance(value, float):
        return value
    if value is None:
        return 0
    if isinstance(value, Undefined):
        value.use()
        return math.nan
    return _parse_number(text(value))


def _parse_number(source: str) -> float:
    stripped = source.strip(SPACE)
    if not stripped:
        return 0
    if _WITH_BASE.fullmatch(stripped):
        return normal(float(min(int(stripped, 0), _BEYOND)))
    return normal(float(stripped)) if _DECIMAL.fullmatch(stripped) else math.nan


def normal(result: float) -> float:
    """Store integers as int where a double is exact, so that they print and compare alike."""
    if isinstance(result, int):
        return result if abs(result) <= SAFE_INTEGER else float(result)
    minus_zero = result == 0 and math.copysign(1, result) < 0
    if result.is_integer() and abs(result) <= SAFE_INTEGER and not minus_zero:
        return int(result)
    return result


def strictly_equal(left: Value, right: Value) -> bool:
    """Return ``left === right``; lists and maps are equal only to themselves."""
    if is_number(left) and is_number(right):
        return number(left) == number(right)
    if isinstance(left, Undefined) and isinstance(right, Undefined):
        return True
    if isinstance(left, list | dict | Safe) or isinstance(right, list | dict | Safe):
        return left is right
    return type(left) is type(right) and bool(left == right)


def loosely_equal(left: Value, right: Value) -> bool:
    """Return ``left == right`` with JavaScript's conversions."""
    if _is_nullish(left) or _is_nullish(right):
        return _is_nullish(left) and _is_nullish(right)
    if isinstance(left, list | dict | Safe) and isinstance(right, list | dict | Safe):
        return left is right
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, list | dict):
        return loosely_equal(text(left), right)
    if isinstance(right, list | dict):
        return loosely_equal(left, text(right))
    return number(left) == number(right)


def less(left: Value, right: Value, *, or_equal: bool = False) -> bool:
    """Return ``left < right`` or ``left <= right``: strings by UTF-16 units, others as numbers."""
    a: Any = text(left) if isinstance(left, list | dict) else left
    b: Any = text(right) if isinstance(right, list | dict) else right
    if isinstance(a, str) and isinstance(b, str):
        x, y = (side.encode("utf-16-be", "surrogatepass") for side in (a, b))
        return x <= y if or_equal else x < y
    return number(a) <= number(b) if or_equal else number(a) < number(b)


def add(left: Value, right: Value) -> Value:
    """Return ``left + right``: a string as soon as one side is a string, list or map."""
    if isinstance(left, str | list | dict) or isinstance(right, str | list | dict):
        joined = text(left) + text(right)
        if len(joined) > TEXT_MAX:
            raise LimitFault(f"a text of more than {TEXT_MAX} characters")
        return joined
    return normal(number(left) + number(right))


def contains(needle: Value, haystack: Value) -> bool:
    """Return ``needle in haystack``: items of a list, parts of a string, keys of a map."""
    if isinstance(haystack, list):
        return any(strictly_equal(needle, item) for item in haystack)
    if isinstance(haystack, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "`in`")
    if isinstance(haystack, str):
        return text(needle) in haystack
    if isinstance(haystack, dict):
        return text(needle) in keyed(haystack)
    if isinstance(haystack, Undefined):
        haystack.use()
    raise OperationFault(
        "`in` needs a list, a text or a map on its right",
        hint="give it a default: `x in (values.list or [])`",
    )


def utf16_length(source: str) -> int:
    """Return ``source.length``: code points above U+FFFF count twice."""
    return (
        len(source) if source.isascii() else len(source.encode("utf-16-le", "surrogatepass")) // 2
    )


def member(value: Value, key: Value) -> Value:
    """
    Return ``value[key]``; undefined if there is none, also for null and undefined.

    Raises:
        Fault: The name is a member of JavaScript's own objects.
    """
    if isinstance(value, dict):
        name = text(key)
        if name in value:
            return value[name]
        if name in OBJECT:
            raise UnsupportedFault.of(refusals.OBJECT_MEMBER, name)
        return value.missing(name) if isinstance(value, Closed | Unforeseen) else UNDEFINED
    if isinstance(value, Undefined):
        return value
    if isinstance(value, str | list):
        return _item(value, key)
    if value is None:
        return UNDEFINED
    if isinstance(value, Function):
        raise UnsupportedFault.of(refusals.FUNCTION_VALUE, "a look-up")
    name = text(key)
    if name in (OBJECT if isinstance(value, bool) else NUMBER):
        raise UnsupportedFault.of(refusals.OBJECT_MEMBER, name)
    return UNDEFINED


def _item(value: str | list[Value], key: Value) -> Value:
    if isinstance(value, Unknown):
        return value.part(text(key))
    if key == "length" and isinstance(key, str):
        return utf16_length(value) if isinstance(value, str) else len(value)
    if isinstance(value, Safe):
        raise UnsupportedFault.of(refusals.SAFE_VALUE, "a look-up")
    name = text(key)
    if name in (TEXT if isinstance(value, str) else LIST):
        raise UnsupportedFault.of(refusals.OBJECT_MEMBER, name)
    if not (name.isascii() and name.isdigit()) or str(int(name[:10])) != name:
        return UNDEFINED
    index = int(name)
    if isinstance(value, str):
        whole(value)
    return value[index] if index < len(value) else UNDEFINED


def whole(value: str) -> str:
    """
    Return a text that can be split into characters.

    Raises:
        UnsupportedFault: It has characters that are two units in JavaScript.
    """
    if not value.isascii() and utf16_length(value) != len(value):
        raise UnsupportedFault.of(refusals.HALF_CHARACTER)
    return value


def to_json(value: Value, indent: Value = None) -> Value:
    """Return ``JSON.stringify(value, null, indent)``; undefined stays undefined."""
    if value.__class__ is str:
        return _quoted(value)
    if isinstance(value, Undefined):
        return value
    if is_number(indent):
        pad = " " * min(int(indent), 10)
    else:
        pad = indent[:10] if isinstance(indent, str) else ""
    return _json(value, pad, "\n")


def _json(value: Value, pad: str, newline: str) -> str:
    if isinstance(value, str):
        if isinstance(value, Safe):
            raise UnsupportedFault.of(refusals.SAFE_VALUE, "`dump`")
        return _quoted(value)
    if is_number(value):
        return number_text(value) if math.isfinite(float(value)) else "null"
    inner = newline + pad
    if isinstance(value, list):
        parts = ["null" if _is_nullish(item) else _json(item, pad, inner) for item in value]
        return _enclose("[", parts, "]", pad, newline)
    if isinstance(value, dict):
        colon = ": " if pad else ":"
        parts = [
            _quoted(key) + colon + _json(item, pad, inner)
            for key, item in _in_order(value)
            if not isinstance(item, Undefined)
        ]
        return _enclose("{", parts, "}", pad, newline)
    return text(value)


def _enclose(start: str, parts: list[str], end: str, pad: str, newline: str) -> str:
    if not parts or not pad:
        return start + ",".join(parts) + end
    inner = newline + pad
    return start + inner + ("," + inner).join(parts) + newline + end


def _quoted(source: str) -> str:
    quoted = encode_basestring(source)
    if quoted.isascii():
        return quoted
    return "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) <= 0xDFFF else c for c in quoted)  # noqa: PLR2004


def keyed(value: Mapping[str, Value]) -> Mapping[str, Value]:
    """
    Return a map whose keys may be counted and listed.

    Raises:
        UnsupportedFault: Releases of Backstage disagree about its keys.
    """
    if isinstance(value, Ragged):
        raise UnsupportedFault.of(refusals.RAGGED_MAP)
    return value


def ordered(value: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Return the entries in JavaScript's order: array indices first, ascending."""
    return _in_order(keyed(value))


def _in_order(value: Mapping[str, Value]) -> list[tuple[str, Value]]:
    indices = [key for key in value if key.isascii() and key.isdigit() and _is_index(key)]
    if not indices:
        return list(value.items())
    named_items = [item for item in value.items() if item[0] not in indices]
    return [(key, value[key]) for key in sorted(indices, key=int)] + named_items


def _is_index(key: str) -> bool:
    return len(key) <= 10 and str(int(key)) == key and int(key) < 2**32 - 1  # noqa: PLR2004
