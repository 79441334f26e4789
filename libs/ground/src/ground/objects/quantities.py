"""
Kubernetes quantities such as ``1.5Gi``, as exact decimal numbers.

What the API server would round or cap (below a billionth, beyond 64 bits) is refused as
`Unsure`: no verdict is better than one that differs.
"""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

__all__ = ["NoQuantity", "Unsure", "checked", "parse"]

_SHAPE = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)\Z")
_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)\Z")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)\Z")
_EXPONENT_DIGITS = 3
_MOST, _FINEST, _DIGITS = Decimal(2**63 - 1), -9, 60
_SHAPE_TEXT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_SUFFIX_TEXT = "unable to parse quantity's suffix"


class Unsure(ValueError):  # noqa: N818 - no error of the rule: Orderkit gives no verdict
    """The server's answer is not known for certain."""


class NoQuantity(ValueError):  # noqa: N818 - the text is the server's
    """The text is not a quantity."""


def parse(text: str) -> Decimal:
    """
    Return the number.

    Raises:
        NoQuantity: The server would not read it.
        Unsure: The server would change it.
    """
    match = _SHAPE.match(text)
    if not match:
        raise NoQuantity(_SHAPE_TEXT)
    number, suffix = match.groups()
    if number.count(".") > 1:
        raise NoQuantity(_SHAPE_TEXT)
    if not _NUMBER.match(number):
        raise Unsure(f"{text!r} is an unusual quantity")
    with localcontext(prec=_DIGITS):
        value = Decimal(number) * _factor(suffix)
    return checked(value)


def checked(value: Decimal) -> Decimal:
    """
    Return the value.

    Raises:
        Unsure: The server would round or cap it.
    """
    normal = value.normalize()
    exponent = normal.as_tuple().exponent
    if abs(value) > _MOST or not isinstance(exponent, int) or exponent < _FINEST:
        raise Unsure(f"{value} is beyond what a quantity holds exactly")
    return value


def _factor(suffix: str) -> Decimal:
    if suffix in _SUFFIXES:
        return Decimal(10) ** _SUFFIXES[suffix]
    if suffix in _BINARY:
        return Decimal(1024) ** _BINARY[suffix]
    exponent = _EXPONENT.match(suffix)
    if not exponent:
        raise NoQuantity(_SUFFIX_TEXT)
    if len(exponent.group(1)) > _EXPONENT_DIGITS:
        raise Unsure(f"{suffix} is a large exponent")
    return Decimal(10) ** int(exponent.group(1))
