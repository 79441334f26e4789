"""Show approvals, as text or as one JSON object; the JSON shapes are stable."""

from __future__ import annotations

from collections.abc import Sequence

from orderkit.cli.output import emit_json, emit_table, say
from orderkit.flows.approval.deciding import Decided
from orderkit.flows.approval.pending import PendingApproval


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
