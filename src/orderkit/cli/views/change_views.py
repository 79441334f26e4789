"""
Show changes of live orders, and approvals, as text or as one JSON object.

The JSON shapes of approvals are stable.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ground.errors import InvalidInputError
from orderkit.cli.output import Progress, emit_json, emit_table, say
from orderkit.cli.views import plan_views
from orderkit.core.order.order_state import OrderState, short
from orderkit.flows.approval.deciding import Decided
from orderkit.flows.approval.pending import PendingApproval
from orderkit.flows.change import Changed
from orderkit.flows.change.applying import FormEntry
from orderkit.flows.change.reviewing import Merged


def entered(text: str, *, whole_form: bool) -> FormEntry:
    """
    Read the values of a form, one JSON object.

    Raises:
        InvalidInputError: It is none.
    """
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise InvalidInputError(
            "--values",
            text,
            "is not a JSON object",
            hint='for example --values \'{"stage": "stage2"}\'',
        )
    return FormEntry(values, whole_form)


@dataclass(frozen=True, slots=True)
class Finished:
    """A change, and the order's state if its delivery was waited for."""

    change: Changed
    state: OrderState | None


class PhaseProgress:
    """Say each phase of a delivery once."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._last = progress, ""

    def committed(self, outcome: Changed) -> None:
        """Say that the change is in Git."""
        again = " before" if outcome.repeated else ""
        self._progress("committed", f"{short(outcome.commit or '')}{again}")

    def __call__(self, state: OrderState) -> None:
        if state.phase != self._last:
            self._last = state.phase
            self._progress(state.phase.lower(), state.reason)


def show_merged(merged: Merged, as_json: bool) -> None:
    """Print a merged pull request."""
    if as_json:
        emit_json("orderkit.merge/v1", merged.to_json())
        return
    by = f", approved by {' and '.join(merged.approvers)}" if merged.approvers else ""
    say(f"{merged.order}: #{merged.number} merged as {short(merged.commit)}{by}")


def show_changed(result: Finished, as_json: bool) -> None:
    """Show the outcome of a change."""
    change, state = result.change, result.state
    if as_json:
        delivered = {
            "phase": state.phase if state else None,
            "ready": state.ready if state else None,
            "revision": state.revision if state else None,
        }
        emit_json("orderkit.change/v1", {**change.answer.to_json(), **delivered})
        return
    say(f"{change.order}: {_headline(change)}")
    if change.diff:
        say(change.diff.rstrip("\n"))
    if change.change_plan is not None:
        plan_views.show_within(change.change_plan.plan, change.change_plan.why_not)
    for warning in change.warnings:
        say(f"  warning     {warning}")
    if change.pull is not None and change.state != "committed":
        say(f"  review      {change.pull.web_url}")
        merge = f"orderkit merge {change.order} {change.pull.number}"
        who = {None: ", after an approval if the kit wants one", "": ""}
        after = who.get(change.approvers, f" once {change.approvers} approved it")
        say(f"  then        '{merge}' delivers it{after};")
        say("              closing it drops it")
    if change.commit is not None and change.state == "committed":
        ready = f", {state.phase} at {short(state.revision or '')}" if state else ""
        say(f"  commit      {short(change.commit)}{ready}")
    for pull in change.other_pulls:
        say(f"  also open   {pull.web_url} ({pull.title}, {pull.requester or 'not proved'})")


def _headline(change: Changed) -> str:
    edits = ", ".join(map(str, change.edits))
    words = {
        "unchanged": "unchanged, it has these values already",
        "planned": f"would change {edits}, {_route_text(change)}; nothing was written",
        "committed": f"changed {edits}" if edits else "changed",
        "proposed": f"proposed {edits}" if edits else "proposed",
    }[change.state]
    return f"{words} (done before by {change.operation})" if change.repeated else words


def _route_text(change: Changed) -> str:
    return "by a pull request" if change.how.value == "review" else "committed directly"


def show_decision(decision: Decided, as_json: bool) -> None:
    """Show what became of an order or a change by somebody's decision."""
    if as_json:
        emit_json("orderkit.approval/v1", decision.to_json())
        return
    delivers = f"'orderkit merge {decision.order} {decision.number}'"
    delivers = "the platform" if decision.number is None else delivers
    words = {
        "approved": f"approved on the forge; {delivers} delivers it once everyone has approved it",
        "delivered": "everyone has approved it, and it is being delivered",
        "declined": "declined on the forge; the platform withdraws it",
        "withdrawn": "was withdrawn",
    }
    text = words.get(decision.state, decision.missing)
    if decision.does_not_count:
        text = f"approved on the forge, but that does not count: {decision.does_not_count}"
    say(f"{decision.order}: {text}")
    if decision.url:
        say(f"  pull request  {decision.url}")


def show_approvals(approvals: Sequence[PendingApproval], as_json: bool) -> None:
    """Show what waits."""
    if as_json:
        entries = [approval.to_json() for approval in approvals]
        emit_json("orderkit.approvals/v1", {"approvals": entries})
        return
    if not approvals:
        say("nothing waits for approval")
        say("hint:  'orderkit status ORDER' names pull requests that need a review", err=True)
        return
    rows = [
        (
            *(a.order, f"#{a.number}" if a.number else "order", a.team, a.requester),
            *("yes" if a.yours else "no", a.approval),
        )
        for a in approvals
    ]
    emit_table(("ORDER", "WHAT", "TEAM", "REQUESTER", "FOR YOU", "WAITS FOR"), rows)
