"""The request and the outcome of a change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ground.errors import InvalidInputError
from ground.names import CommitSha, OrderId
from ground.shapes import Answer
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import Difference, FieldDifference, FieldEdit
from orderkit.core.plan.plan_json import PlanAnswer, plan_answer
from orderkit.flows.change.change_plan import ChangePlan
from orderkit.ports.forge import PullRequest
from orderkit.ports.requesters import Requester

_REASON_MAX = 500

State = Literal["unchanged", "planned", "committed", "proposed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """What to change in which order, for whom, and based on which commit."""

    order: str
    edits: tuple[FieldEdit, ...]
    requester: Requester
    base: str | None = None
    """The commit the person looked at, full or abbreviated. None: the head at the start."""
    read_to: CommitSha | None = None
    """A later commit whose values the person has read: up to it nothing is a conflict."""
    reason: str = ""
    change: str | None = None
    """Name of the kit's change. None: found by the fields."""
    how: How | None = None
    """None: as the kit says."""
    operation: str | None = None
    """Identifies the request, so that a repetition is recognised. None: a new id."""
    dry_run: bool = False
    accept_loss: bool = False
    """Make the change even if the plan says that it deletes data."""
    ends: bool = False
    """Part of a confirmed end: commit it directly, even if the kit asks for a review."""
    trailers: tuple[tuple[str, str], ...] = ()
    """More trailers of the commit: a key and one line each."""
    is_searched: bool = False
    """The caller has just looked for this operation, and at the order's pull requests."""


class Pull(Answer, frozen=True):
    """A pull request of an order."""

    number: int
    title: str
    state: str
    url: str
    requester: str | None

    @classmethod
    def of(cls, pull: PullRequest) -> Pull:
        """Return what is said of a pull request."""
        return cls(pull.number, pull.title, pull.state, pull.web_url, pull.requester)


class ChangedAnswer(Answer, frozen=True, kw_only=True):
    """The outcome of a change, as command line and service answer it."""

    order: str
    state: State
    repeated: bool
    operation: str
    change: str
    how: How
    edits: tuple[Difference, ...]
    diff: str
    commit: str | None
    pull: Pull | None
    other_pulls: tuple[Pull, ...]
    warnings: tuple[str, ...]
    plan: PlanAnswer | None
    plan_why_not: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The outcome of a change."""

    order: OrderId
    state: State
    operation: str
    commit: CommitSha | None = None
    """On the main branch; None for what is proposed or planned."""
    pull: PullRequest | None = None
    diff: str = ""
    edits: tuple[FieldDifference, ...] = ()
    """The fields that changed, or would change."""
    change: str = ""
    how: How = How.DIRECT
    warnings: tuple[str, ...] = ()
    other_pulls: tuple[PullRequest, ...] = ()
    """Other open pull requests of this order."""
    change_plan: ChangePlan | None = None
    """What the change does or will do; None if it was not planned."""
    repeated: bool = False
    """The same operation was carried out before; nothing was done now."""
    approvers: str | None = None
    """Who has to approve what is proposed, in words; empty: nobody; None: it is not known."""

    @property
    def answer(self) -> ChangedAnswer:
        """What command line and service say of it."""
        planned = self.change_plan
        return ChangedAnswer(
            order=self.order,
            state=self.state,
            repeated=self.repeated,
            operation=self.operation,
            change=self.change,
            how=self.how,
            edits=tuple(edit.answer for edit in self.edits),
            diff=self.diff,
            commit=self.commit,
            pull=Pull.of(self.pull) if self.pull else None,
            other_pulls=tuple(map(Pull.of, self.other_pulls)),
            warnings=self.warnings,
            plan=plan_answer(planned.plan) if planned and planned.plan else None,
            plan_why_not=planned.why_not if planned else "",
        )


def tidied(request: ChangeRequest) -> ChangeRequest:
    """
    Return the request as it can be written into a commit: the reason on one line.

    Raises:
        InvalidInputError: The reason is too long, or the operation's id is invalid.
    """
    reason = " ".join(request.reason.split()).replace("-->", "→")
    if len(reason) > _REASON_MAX:
        raise InvalidInputError(
            "reason", reason, f"is longer than {_REASON_MAX} characters", hint="shorten --reason"
        )
    operation = request.operation
    if operation is not None and (not operation or any(map(str.isspace, operation))):
        raise InvalidInputError(
            "operation", operation, "is empty or holds a space", hint="--operation top-up-2026-11"
        )
    return replace(request, reason=reason)
