"""
Errors of rendering. Each has the position in the template, the problem and the way out.

    RenderError            exit 2    the template, or what it does with the values, is wrong
      UndefinedValueError  exit 2    a value that was never passed reaches the output
      UnsupportedError     exit 2    the construct differs between engines, or is not ours yet
      LimitError           exit 2    the template is too large, too deep or runs too long

Operations on values raise ``OperationFault``; the engine adds the position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ground.errors import UsageError
from softwaretemplates.render.unsupported import UnsupportedConstruct


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a template: line and column, both from 1."""

    line: int
    column: int

    @classmethod
    def at(cls, source: str, offset: int) -> Self:
        """Return the position of an offset into `source`."""
        before = source[:offset]
        return cls(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


class RenderError(UsageError):
    """A template cannot be rendered. Nothing was written."""

    def __init__(
        self, problem: str, position: Position | None = None, *, name: str = "", hint: str = ""
    ) -> None:
        location = f"{name or 'template'}:{position.line}:{position.column}" if position else name
        super().__init__(f"{location}: {problem}" if location else problem, hint=hint)
        self.problem, self.position, self.name = problem, position, name

    def named(self, name: str) -> Self:
        """Return the same error with the name of its file."""
        return type(self)(self.problem, self.position, name=name, hint=self.hint)


class UndefinedValueError(RenderError):
    """A value that was never passed would be printed; Backstage would print nothing."""


class UnsupportedError(RenderError):
    """Refused: the engines of different Backstage releases disagree, or ours lacks the feature."""


class LimitError(RenderError):
    """Refused: larger, deeper or longer than the limits allow."""


class OperationFault(Exception):  # noqa: N818 - the error is RenderError; this is its cause without a place
    """An operation failed on these values."""

    error: type[RenderError] = RenderError

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


class MissingFault(OperationFault):
    """A value that was never passed is used as text or number."""

    error = UndefinedValueError


class UnsupportedFault(OperationFault):
    """The engines treat these values differently."""

    error = UnsupportedError

    @classmethod
    def of(cls, refusal: UnsupportedConstruct, name: str = "") -> Self:
        """Return the fault for an entry of the table of unsupported constructs."""
        return cls(refusal.problem(name), hint=refusal.way_out(name))


class LimitFault(OperationFault):
    error = LimitError
