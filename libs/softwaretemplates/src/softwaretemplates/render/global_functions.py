"""Functions that templates may call: ``range``, ``cycler``, ``joiner``, and their results."""

from __future__ import annotations

from collections.abc import Mapping

from softwaretemplates.render import javascript as js
from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import UNDEFINED, Function, Undefined, Value
from softwaretemplates.render.operands import LIST_MAX, used
from softwaretemplates.render.refusals import LimitFault, OperationFault, UnsupportedFault


class Builtin(Function):
    """A function that is called with positional arguments."""

    __slots__ = ("least", "most", "name")

    def __init__(self, name: str, arguments_min: int, arguments_max: int) -> None:
        self.name, self.least, self.most = name, arguments_min, arguments_max

    def call(self, arguments: tuple[Value, ...]) -> Value:
        """
        Return the result.

        Raises:
            Fault: The arguments do not fit.
        """
        if not self.least <= len(arguments) <= self.most:
            raise OperationFault(f"{self.name}() takes {self.least} to {self.most} arguments")
        return self.run(arguments)

    def run(self, arguments: tuple[Value, ...]) -> Value:
        """Compute the result. The number of arguments has been checked."""
        raise NotImplementedError


class _Range(Builtin):
    __slots__ = ()

    def run(self, arguments: tuple[Value, ...]) -> Value:
        start, stop, step = (*arguments, UNDEFINED, UNDEFINED)[:3]
        if isinstance(stop, Undefined):
            start, stop, step = 0, used(start), 1
        step = step if js.truthy(step) else 1
        if not all(js.is_number(bound) for bound in (start, stop, step)):
            raise OperationFault("range takes numbers", hint="convert text with `| int`")
        return _counted(start, stop, step)


def _counted(start: float, stop: float, step: float) -> list[Value]:
    if start != start or stop != stop or step != step:  # noqa: PLR0124 - NaN
        return []
    if (stop - start) / step > LIST_MAX:
        raise LimitFault(f"range of more than {LIST_MAX} entries")
    numbers: list[Value] = []
    at = start
    while at < stop if step > 0 else at > stop:
        numbers.append(at)
        if len(numbers) > LIST_MAX:
            raise LimitFault(f"range of more than {LIST_MAX} entries")
        at = js.normal(at + step)
    return numbers


class Cycler(Function):
    """The result of ``cycler(a, b)``: returns its items one after the other, repeatedly."""

    __slots__ = ("_at", "_items")

    def __init__(self, items: tuple[Value, ...]) -> None:
        self._items, self._at = items, -1

    @property
    def current(self) -> Value:
        """The item that `next` returned last; null before the first call."""
        if self._at < 0:
            return None
        return self._items[self._at] if self._items else UNDEFINED

    def next(self) -> Value:
        """Advance and return the item."""
        self._at = (self._at + 1) % max(len(self._items), 1)
        return self.current

    def reset(self) -> Value:
        """Start from the beginning."""
        self._at = -1
        return UNDEFINED


class _MakeCycler(Builtin):
    __slots__ = ()

    def run(self, arguments: tuple[Value, ...]) -> Value:
        if any(isinstance(argument, Function) for argument in arguments):
            raise UnsupportedFault.of(refusals.FUNCTION_VALUE, "cycler")
        return Cycler(arguments)


class Joiner(Builtin):
    """The result of ``joiner(',')``: empty on the first call, the separator afterwards."""

    __slots__ = ("_separator", "_used")

    def __init__(self, separator: Value) -> None:
        super().__init__("joiner's function", 0, 0)
        self._separator, self._used = separator, False

    def run(self, arguments: tuple[Value, ...]) -> Value:  # noqa: ARG002 - the signature of a function
        used_before, self._used = self._used, True
        return self._separator if used_before else ""


class _MakeJoiner(Builtin):
    __slots__ = ()

    def run(self, arguments: tuple[Value, ...]) -> Value:
        separator = arguments[0] if arguments else UNDEFINED
        if isinstance(separator, Function):
            raise UnsupportedFault.of(refusals.FUNCTION_VALUE, "joiner")
        return Joiner(separator if js.truthy(separator) else ",")


FUNCTIONS: Mapping[str, Builtin] = {
    "cycler": _MakeCycler("cycler", 0, 1000),
    "joiner": _MakeJoiner("joiner", 0, 1),
    "range": _Range("range", 1, 3),
}
