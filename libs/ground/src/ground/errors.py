"""
Errors a caller can act on.

    OrderkitError            exit 1    expected failure: the user or the world has to fix something
      UsageError             exit 2    the request itself is malformed
        InvalidInputError    exit 2    a named field has a value that a rule refuses
        SeveralProblemsError exit 2    several problems at once; the exit code of the first
      ConflictError          exit 3    somebody else changed it; nothing was written; read again
        AlreadyOrderedError  exit 3    another order has this id
      RefusedError           exit 4    unsafe whatever the repetition
      IncompleteError        exit 5    partly done; the same command finishes it
      NotReadyError          exit 10   the order is not Ready yet
      StuckOrderError        exit 11   the order does not get Ready unless somebody helps
      ApprovalError          exit 12   somebody has to agree first
      NotFoundError          exit 1    what was asked for does not exist
        EndedError           exit 13   the order has ended, or its end has begun
        UnknownOrderError    exit 14   there is no such order, and there was none
      RemoteError            exit 1    a forge, cluster or portal failed; retry if `retryable`
        MovedError           exit 1    it was renamed or transferred
        TooManyCommitsError  exit 1    it shows only some of the commits between two
        UnreachableError     exit 1    nobody answers there; a retry can help
        InProgressError      exit 1    it is still at work on something; a retry can help
        TooFastError         exit 1    it takes no more requests for a while
        AccessError          exit 1    it answered that we may not

Each class fixes four facts: exit code, whether a retry can help, the status of the service's
answer, and (per instance) a hint for a person. Raise with ``from``. Never print in an error.
Programming mistakes are plain ``ValueError``/``RuntimeError`` and end as exit 70.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeVar

__all__ = [
    "EXIT_BUG",
    "EXIT_DIFFERS",
    "EXIT_DONE",
    "EXIT_INTERRUPTED",
    "PROBLEMS_MAX",
    "AccessError",
    "AlreadyOrderedError",
    "ApprovalError",
    "ConflictError",
    "EndedError",
    "InProgressError",
    "IncompleteError",
    "InvalidInputError",
    "MovedError",
    "NotFoundError",
    "NotReadyError",
    "OrderkitError",
    "RefusedError",
    "RemoteError",
    "SeveralProblemsError",
    "StuckOrderError",
    "TooFastError",
    "TooManyCommitsError",
    "UnknownOrderError",
    "UnreachableError",
    "UsageError",
    "every",
    "raise_problems",
    "shorten",
    "with_article",
]

T = TypeVar("T")
_WITHOUT_VALUE = ("is missing", "is not valid YAML", "is refused: Required value")
PROBLEMS_MAX = 20
"""How many problems of one request are shown."""
EXIT_DONE = 0
EXIT_DIFFERS = 10
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
"""Exit codes without an exception class of ours."""


class OrderkitError(Exception):
    """Something the user or the outside world has to fix."""

    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, hint: str = "", form_hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.form_hint = form_hint
        """The hint for people in front of a form and programs that call the service."""

    @property
    def problems(self) -> tuple[OrderkitError, ...]:
        """Its parts, if it consists of several."""
        return (self,)


class UsageError(OrderkitError):
    """The request is malformed; nothing was looked at."""

    exit_code = 2
    http_status = 400


class InvalidInputError(UsageError):
    """
    One field has a value that a rule refuses. Nothing was written.

    The message names field, value and rule; the hint names the fix. A missing value is None.
    """

    def __init__(
        self, field: str, value: object, rule: str, *, hint: str = "", form_hint: str = ""
    ) -> None:
        has_no_value = value is None and rule.startswith(_WITHOUT_VALUE)
        subject = field if has_no_value else f"{field}: {shorten(repr(value))}"
        super().__init__(f"{subject} {rule}", hint=hint, form_hint=form_hint)
        self.field, self.value, self.rule = field, value, rule


class SeveralProblemsError(UsageError):
    """
    Several problems of one request, each with its own hint. Nothing was written.

    Exit code and status are those of the first problem.
    """

    def __init__(self, problems: Sequence[OrderkitError]) -> None:
        self._problems = tuple(problems[:PROBLEMS_MAX])
        self.count = len(problems)
        super().__init__(self._text([problem.hint for problem in self._problems]))
        self.exit_code = problems[0].exit_code  # type: ignore[misc]  # that of the first problem
        self.http_status = problems[0].http_status  # type: ignore[misc]  # likewise

    @property
    def problems(self) -> tuple[OrderkitError, ...]:
        """The first ones, as many as are shown."""
        return self._problems

    @property
    def form_message(self) -> str:
        """The message for people in front of a form and programs that call the service."""
        return self._text([problem.form_hint or problem.hint for problem in self._problems])

    def _text(self, hints: Iterable[str]) -> str:
        more = self.count - len(self._problems)
        lines = [f"{self.count} problems{', the first of which are' if more else ''}:"]
        lines += [
            f"- {problem}{f' ({hint})' * bool(hint)}"
            for problem, hint in zip(self._problems, hints, strict=True)
        ]
        return "\n".join(lines)


def raise_problems(problems: Sequence[OrderkitError]) -> None:
    """
    Raise what was found: one problem as it is, several as one error.

    Raises:
        OrderkitError: There is a problem.
    """
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise SeveralProblemsError(problems)


def every(checks: Iterable[Callable[[], T]], problems: Iterable[OrderkitError] = ()) -> list[T]:
    """
    Return what all checks return; raise what they refuse, and what was refused before, at once.

    Raises:
        OrderkitError: There is a problem, or another failure than a refusal of the request.
    """
    results, refusals = [], list(problems)
    for check in checks:
        try:
            results.append(check())
        except (UsageError, RefusedError) as error:
            refusals += error.problems
    raise_problems(refusals)
    return results


class ConflictError(OrderkitError):
    """Somebody else changed it after we read it. Nothing was written."""

    exit_code = 3
    http_status = 409
    retryable = True


class AlreadyOrderedError(ConflictError):
    """Another order with other values has this id. Nothing was written."""

    retryable = False


class RefusedError(OrderkitError):
    """The request itself is unsafe; repeating it will not help."""

    exit_code = 4
    http_status = 403


class IncompleteError(OrderkitError):
    """Some steps are done and recorded; the same command does the rest."""

    exit_code = 5
    http_status = 503
    retryable = True


class NotFoundError(OrderkitError):
    """What was asked for does not exist, or is hidden from these credentials."""

    http_status = 404


class NotReadyError(OrderkitError):
    """An order is not Ready yet; it may be later."""

    exit_code = EXIT_DIFFERS
    retryable = True


class StuckOrderError(OrderkitError):
    """An order fails, is paused or is held back: waiting for it does not help."""

    exit_code = 11


class ApprovalError(OrderkitError):
    """Somebody has to agree to an order, or to a change of it, before it is delivered."""

    exit_code = 12


class EndedError(NotFoundError):
    """An order has ended, or its end has begun."""

    exit_code = 13


class UnknownOrderError(NotFoundError):
    """There is no order of that id, and there was none."""

    exit_code = 14


class RemoteError(OrderkitError):
    """A forge, cluster or portal answered with a failure."""

    http_status = 502


class MovedError(RemoteError):
    """What was asked for has another name or address now: `place` if the other side told it."""

    def __init__(self, message: str, *, hint: str = "", place: str = "") -> None:
        super().__init__(message, hint=hint)
        self.place = place


class TooManyCommitsError(RemoteError):
    """There are more commits between two than the forge shows."""


class UnreachableError(RemoteError):
    """Nobody answers at that address, or not in time."""

    retryable = True
    http_status = 503


class InProgressError(RemoteError):
    """The other side is still at work on what has to come first. Nothing was done."""

    retryable = True
    http_status = 503


class TooFastError(RemoteError):
    """The other side takes no more requests for `seconds`. Nothing was carried out."""

    retryable = True
    http_status = 503

    def __init__(self, message: str, *, hint: str = "", seconds: float = 0.0) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds


class AccessError(RemoteError):
    """The other side knows us and says no, or does not know us."""


def with_article(noun: str) -> str:
    """Return "a string", "an integer"."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def shorten(text: str, *, limit: int = 200) -> str:
    """Cut a foreign text to `limit` characters so that it fits into a message."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
