"""
The request and the outcome of a change, and what would refuse it.

`check_least_values` has numbers of the live XR below which a change may not set its field:
``atLeast`` in kit.yaml. A budget below what is spent already, for example, would pause an agent at
once. Where the cluster has no such number, nothing is refused.

`plan_change` plans what a change will do, for its pull request and its answer. A change whose plan
fails is still possible; the reason stands in place of the plan. A change that would delete data,
break a healthy order, or wait for a paused one, is not committed unless the caller accepts that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from ground.errors import InvalidInputError, OrderkitError, RefusedError, every
from ground.names import CommitSha, OrderId
from ground.objects.kube_objects import Manifest, ObjectKey, dig
from ground.shapes import Answer
from orderkit.core.kit.kit_file import AtLeast, How
from orderkit.core.order.change import Difference, FieldDifference, FieldEdit
from orderkit.core.plan import Code, Fault, Plan
from orderkit.core.plan.plan_json import PlanAnswer, plan_answer
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.order.live_order import LiveOrder, delivered_xr
from orderkit.flows.plan.order_plan import plan_order
from orderkit.flows.platform import Platform, get_object
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import PullRequest
from orderkit.ports.requesters import Requester


def least_value(
    cluster: Cluster, live: LiveOrder, xr: Manifest, at_least: AtLeast
) -> int | float | None:
    """
    Return the number in the status of the order's XR; None if there is none.

    Raises:
        UnreachableError, RemoteError: The cluster cannot be read.
    """
    living_xr = get_object(cluster, ObjectKey.of(delivered_xr(live, xr)))
    value = dig(living_xr or {}, "status", *at_least.path.split("."))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def check_least_values(
    cluster: Cluster, live: LiveOrder, xr: Manifest, edits: Iterable[FieldDifference]
) -> None:
    """
    Check that no edit sets a field below its least value.

    Raises:
        RefusedError: One does. SeveralProblemsError: Several do.
        UnreachableError, RemoteError: The cluster cannot be read.
    """
    by_path = {change.fields[0]: change.at_least for change in live.kit.changes if change.at_least}

    def check(edit: FieldDifference) -> None:
        at_least = by_path[edit.path]
        least = least_value(cluster, live, xr, at_least)
        if least is not None and isinstance(edit.new, int | float) and edit.new < least:
            raise RefusedError(
                f"{edit} is refused: it may not be less than {least}; {at_least.why}",
                hint=f"set at least {least}",
            )

    every(partial(check, edit) for edit in edits if edit.path in by_path)


_NAMED = 3
"""Number of faults that a refusal lists."""


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """What a change will do, or why that is not known."""

    plan: Plan | None
    why_not: str = ""

    @property
    def markdown(self) -> str:
        """The plan for a pull request."""
        if self.plan is None:
            return f"No plan: {self.why_not}"
        return to_markdown(self.plan)


def plan_change(platform: Platform, live: LiveOrder, old: Manifest, new: Manifest) -> ChangePlan:
    """Return the plan from one XR to another; a plan that fails is not an error."""
    try:
        return ChangePlan(plan_order(platform, live, old, new))
    except OrderkitError as error:
        return ChangePlan(None, str(error))


def refuse_losses(live: LiveOrder, change_plan: ChangePlan) -> None:
    """
    Check that a change deletes no data.

    Raises:
        RefusedError: It does; the message lists the losses.
    """
    dangers = change_plan.plan.dangers if change_plan.plan else ()
    losses = [danger.message for danger in dangers if danger.code is Code.DATA_LOSS]
    if losses:
        raise RefusedError(
            f"{live.entry.order}: {'; '.join(losses)}",
            hint="to accept the loss: --accept-loss; 'orderkit plan' shows the whole plan",
            form_hint="to accept the loss, send 'acceptLoss: true'; the plan shows what goes",
        )


def refuse_paused(live: LiveOrder, change_plan: ChangePlan) -> None:
    """
    Check that the order is not paused: Crossplane would ignore what is committed.

    Raises:
        RefusedError: It is; the message says what resumes it.
    """
    text = change_plan.plan.paused.get("") if change_plan.plan else None
    if text:
        raise RefusedError(
            f"{live.entry.order}: {text}",
            hint="--pr (how: review) proposes the change meanwhile, "
            "--direct --no-wait (how: direct) commits it",
        )


def refuse_faults(
    platform: Platform, live: LiveOrder, change_plan: ChangePlan, old: Manifest
) -> None:
    """
    Check that a change does not break a healthy order.

    Args:
        old: Its current XR.

    Raises:
        RefusedError: It would; the message lists the faults.
    """
    if change_plan.plan is None or not change_plan.plan.faults:
        return
    as_it_is = plan_change(platform, live, old, old).plan
    # what is broken already may be changed in any way, since mending may take several steps; so may
    # what cannot be planned
    if as_it_is is None or as_it_is.faults:
        return
    faults = change_plan.plan.faults
    listed_faults = "; ".join(_fault_text(fault) for fault in faults[:_NAMED])
    rest_note = f" (and {len(faults) - _NAMED} more)" if len(faults) > _NAMED else ""
    raise RefusedError(
        f"{live.entry.order}: the change would be committed, but its outcome would be refused:"
        f" {listed_faults}{rest_note}",
        hint="'orderkit plan' shows the whole plan; --pr (how: review) proposes it anyway,"
        " --direct (how: direct) commits it anyway",
        form_hint="'how: review' proposes it anyway, 'how: direct' commits it anyway",
    )


def _fault_text(fault: Fault) -> str:
    return f"{fault.where}: {fault.message}" if fault.where else fault.message


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
