"""
Tests (names that may follow ``is``, and stand in ``select``) and arithmetic.

`calculate` computes ``- * / % // **`` as JavaScript does, with ``javascript``'s values. Pure
functions on values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from softwaretemplates.render import javascript as js
from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import (
    EXPONENT_MAX,
    Function,
    Safe,
    Undefined,
    Value,
    normal,
    number,
)
from softwaretemplates.render.refusals import OperationFault, UnsupportedFault

__all__ = ["Test"]


def calculate(operator: str, left: Value, right: Value) -> Value:
    """Return the result of ``- * / % // **`` on ``Number(left)`` and ``Number(right)``."""
    a, b = number(left), number(right)
    return normal(_CALCULATIONS[operator](float(a), float(b)))


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
    try:
        power = float(a**b)
    except OverflowError:  # JavaScript's is infinite, with the sign of an odd power
        power = math.copysign(math.inf, a) if b % 2 == 1 else math.inf
    if not _exact_power(a, b, power):
        raise UnsupportedFault.of(refusals.ROUNDED_POWER)
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


@dataclass(frozen=True, slots=True)
class Test:
    """A test and the number of its arguments besides the value."""

    run: Callable[..., bool]
    arguments: int = 0
    of_functions: bool = False
    """It also accepts functions; Nunjitsu fails otherwise."""

    def checked(self, name: str) -> Callable[..., bool]:
        """Return the function that the compiled template calls."""

        def judge(value: Value, *arguments: Value) -> bool:
            if not self.of_functions and isinstance(value, Function):
                raise UnsupportedFault.of(refusals.FUNCTION_VALUE, f"the test '{name}'")
            return self.run(value, *arguments)

        return judge


def _remainder_is(value: Value, divisor: Value, remainder: int) -> bool:
    return bool(calculate("%", value, divisor) == remainder)


def _iterable(value: Value) -> bool:
    if value is None or isinstance(value, Undefined):
        raise OperationFault("test 'iterable' needs a value", hint="write `x and x is iterable`")
    return isinstance(value, str | list)


def _cased(value: Value, name: str, changed: Callable[[str], str]) -> bool:
    if isinstance(value, Undefined):
        value.use()
    if not isinstance(value, str):
        raise OperationFault(
            f"test '{name}' needs text", hint=f"write `x is string and x is {name}`"
        )
    return not isinstance(value, Safe) and changed(value) == value


_EQUAL = Test(js.strictly_equal, 1, of_functions=True)
_ABOVE = Test(lambda value, other: js.less(other, value), 1)
_BELOW = Test(js.less, 1)

TESTS: Mapping[str, Test] = {
    "callable": Test(lambda value: isinstance(value, Function), of_functions=True),
    "defined": Test(lambda value: not isinstance(value, Undefined)),
    "divisibleby": Test(lambda value, by: _remainder_is(value, by, 0), 1),
    "eq": _EQUAL,
    "equalto": _EQUAL,
    "escaped": Test(lambda value: isinstance(value, Safe)),
    "even": Test(lambda value: _remainder_is(value, 2, 0)),
    "falsy": Test(lambda value: not js.truthy(value)),
    "ge": Test(lambda value, other: js.less(other, value, or_equal=True), 1),
    "greaterthan": _ABOVE,
    "gt": _ABOVE,
    "iterable": Test(_iterable),
    "le": Test(lambda value, other: js.less(value, other, or_equal=True), 1),
    "lessthan": _BELOW,
    "lower": Test(lambda value: _cased(value, "lower", str.lower)),
    "lt": _BELOW,
    "mapping": Test(lambda value: isinstance(value, dict | Safe)),
    "ne": Test(lambda value, other: not js.strictly_equal(value, other), 1, of_functions=True),
    "null": Test(lambda value: value is None),
    "number": Test(js.is_number),
    "odd": Test(lambda value: _remainder_is(value, 2, 1)),
    "sameas": _EQUAL,
    "string": Test(lambda value: isinstance(value, str) and not isinstance(value, Safe)),
    "truthy": Test(js.truthy),
    "undefined": Test(lambda value: isinstance(value, Undefined)),
    "upper": Test(lambda value: _cased(value, "upper", str.upper)),
}


def run_test(name: str, value: Value, *arguments: Value) -> bool:
    """Return the result of an existing test."""
    return TESTS[name].checked(name)(value, *arguments)
