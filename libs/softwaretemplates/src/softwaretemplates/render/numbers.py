"""
JavaScript's functions on numbers: parseInt, parseFloat, Math.round, toFixed and similar.

Exact: `decimal` computes the digits from the exact value of the double, as ECMA-262 requires.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext

from softwaretemplates.render import javascript as js
from softwaretemplates.render import refusals
from softwaretemplates.render.refusals import LimitFault, OperationFault, UnsupportedFault

_FLOAT = re.compile(r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LONGEST = 10_000
"""Maximum number of digits that are read as a number."""


def parse_float(text: str) -> float:
    """Return ``parseFloat(text)``."""
    match = _FLOAT.match(text.lstrip(js.SPACE))
    if match is None:
        return math.nan
    if len(match[0]) > _LONGEST:
        raise LimitFault(f"a number of more than {_LONGEST} digits")
    return float(match[0].replace("Infinity", "inf"))


def parse_int(text: str, radix: int) -> float:
    """
    Return ``parseInt(text, radix)``.

    Raises:
        UnsupportedFault: The number is beyond 2^53 and the base is not ten.
    """
    digits_text = text.lstrip(js.SPACE)
    sign = -1 if digits_text.startswith("-") else 1
    digits_text = digits_text[1:] if digits_text[:1] in {"+", "-"} else digits_text
    if radix in {0, 16} and digits_text[:2] in {"0x", "0X"}:
        digits_text, radix = digits_text[2:], 16
    radix = radix or 10
    if not 2 <= radix <= 36:  # noqa: PLR2004 - JavaScript's bounds
        return math.nan
    digits_allowed = _DIGITS[:radix] + _DIGITS[10:radix].upper()
    digits = digits_text[: len(digits_text) - len(digits_text.lstrip(digits_allowed))]
    if not digits:
        return math.nan
    if len(digits) > _LONGEST // 10:
        raise LimitFault(f"a number of more than {_LONGEST // 10} digits")
    number = int(digits, radix)
    if number > js.SAFE_INTEGER and radix != 10:  # noqa: PLR2004
        raise UnsupportedFault.of(refusals.BIG_INTEGER)
    if number == 0 and sign < 0:
        return -0.0  # as parseInt("-0")
    return js.normal(js.double(sign * number))


def rounded(number: float, method: object) -> float:
    """Return ``Math.round``, ``Math.ceil`` or ``Math.floor`` of a number."""
    if not math.isfinite(number):
        return number
    if method == "ceil":
        return float(math.ceil(number))
    if method == "floor":
        return float(math.floor(number))
    low = math.floor(number)
    return float(low + 1 if number - low >= 0.5 else low)  # noqa: PLR2004 - halves go up


def to_fixed(number: float, places: int) -> str:
    """Return ``number.toFixed(places)``."""
    _bounded(places, 0, 100, "toFixed")
    if not math.isfinite(number) or abs(number) >= 1e21:  # noqa: PLR2004 - the standard's
        return js.number_text(number)
    text = f"{_nearest(abs(number), -places):f}"
    return ("-" if number < 0 else "") + text


def _nearest(number: float, exponent: int) -> Decimal:
    with localcontext() as context:
        context.prec = 1100
        return Decimal(number).quantize(Decimal(1).scaleb(exponent), ROUND_HALF_UP)


def to_exponential(number: float, places: int | None) -> str:
    """Return ``number.toExponential(places)``; None: as many digits as needed."""
    if not math.isfinite(number):
        return js.number_text(number)
    if places is None:
        shortest = Decimal(repr(float(abs(number)))).normalize()
        return _scientific(number, shortest, len(shortest.as_tuple().digits))
    _bounded(places, 0, 100, "toExponential")
    return _scientific(number, _significant(abs(number), places + 1), places + 1)


def to_precision(number: float, digits: int) -> str:
    """Return ``number.toPrecision(digits)``."""
    if not math.isfinite(number):
        return js.number_text(number)
    _bounded(digits, 1, 100, "toPrecision")
    value = _significant(abs(number), digits)
    exponent = value.adjusted() if value else 0
    if exponent < -6 or exponent >= digits:  # noqa: PLR2004 - the standard's
        return _scientific(number, value, digits)
    sign = "-" if number < 0 else ""
    return sign + f"{value.quantize(Decimal(1).scaleb(exponent - digits + 1)):f}"


def _significant(number: float, digits: int) -> Decimal:
    if number == 0:
        return Decimal(0)
    exponent = Decimal(number).adjusted() - digits + 1
    value = _nearest(number, exponent)
    return value if value.adjusted() == exponent + digits - 1 else _nearest(number, exponent + 1)


def _scientific(number: float, value: Decimal, digits: int) -> str:
    exponent = value.adjusted() if value else 0
    figures = "".join(map(str, value.as_tuple().digits)).ljust(digits, "0")[:digits]
    mantissa = figures if digits == 1 else f"{figures[0]}.{figures[1:]}"
    return f"{'-' if number < 0 else ''}{mantissa}e{'+' if exponent >= 0 else '-'}{abs(exponent)}"


def to_radix(number: float, radix: int) -> str:
    """
    Return ``number.toString(radix)``.

    Raises:
        UnsupportedFault: It is a fraction and the base is not ten.
    """
    _bounded(radix, 2, 36, "toString")
    if radix == 10 or not math.isfinite(number):  # noqa: PLR2004
        return js.number_text(number)
    if not float(number).is_integer():
        raise UnsupportedFault.of(refusals.FRACTION_RADIX)
    if abs(number) > js.SAFE_INTEGER:
        raise UnsupportedFault.of(refusals.BIG_INTEGER)
    remaining, digits = abs(int(number)), ""
    while remaining:
        remaining, digit = divmod(remaining, radix)
        digits = _DIGITS[digit] + digits
    return ("-" if number < 0 else "") + (digits or "0")


def _bounded(value: int, smallest: int, largest: int, name: str) -> None:
    if not smallest <= value <= largest:
        raise OperationFault(f".{name}() takes {smallest} to {largest}")
