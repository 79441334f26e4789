"""``- * / % // **`` as JavaScript calculates, for ``javascript``'s values."""

from __future__ import annotations

import math
from fractions import Fraction

from softwaretemplates.render import unsupported
from softwaretemplates.render.javascript import EXPONENT_MAX, Value, normal, number
from softwaretemplates.render.render_errors import UnsupportedFault


def calculate(operator: str, left: Value, right: Value) -> Value:
    """Return the result of ``- * / % // **`` on ``Number(left)`` and ``Number(right)``."""
    a, b = number(left), number(right)
    try:
        return normal(_CALCULATIONS[operator](float(a), float(b)))
    except OverflowError:
        return math.inf


def _divide(a: float, b: float) -> float:
    if b == 0:
        infinite = math.copysign(math.inf, a) * math.copysign(1, b)
        return math.nan if a == 0 or math.isnan(a) else infinite
    return a / b


def _floor(a: float, b: float) -> float:
    quotient = _divide(a, b)
    return quotient if math.isnan(quotient) or math.isinf(quotient) else math.floor(quotient)


def _remainder(a: float, b: float) -> float:
    return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)


def _power(a: float, b: float) -> float:
    undefined = math.isnan(b) or (abs(a) == 1 and math.isinf(b)) or (a < 0 and not b.is_integer())
    if undefined and b != 0:
        return math.nan
    if a == 0 > b:
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
    power = float(a**b)
    if not _exact_power(a, b, power):
        raise UnsupportedFault.of(unsupported.ROUNDED_POWER)
    return power


def _exact_power(a: float, b: float, power: float) -> bool:
    """Return whether the power is exact; roots and long fractions are rounded."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(power)) or b in {0, 1}:
        return True
    if not float(b).is_integer() or abs(b) > EXPONENT_MAX:
        return a in {0, 1}
    return power == 0 or Fraction(a) ** int(b) == Fraction(power)


_CALCULATIONS = {
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "//": _floor,
    "**": _power,
}
