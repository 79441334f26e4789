"""Tests: names that may follow ``is``, also used by ``select``. Pure functions on values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from softwaretemplates.render import javascript as js
from softwaretemplates.render import unsupported
from softwaretemplates.render.arithmetic import calculate
from softwaretemplates.render.javascript import Function, Safe, Undefined, Value
from softwaretemplates.render.render_errors import OperationFault, UnsupportedFault

__all__ = ["Test"]


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
                raise UnsupportedFault.of(unsupported.FUNCTION_VALUE, f"the test '{name}'")
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
