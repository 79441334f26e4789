"""What an XR's status says to a program that asks whether its user may go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from orderkit.core.kit.budget_gate import GateState, verdict_of
from orderkit.core.kit.kit_file import Gate

GATE = Gate("paused", "why.cause", ("budget-exhausted", "month-exhausted"))
OPEN, EXHAUSTED, UNKNOWN = GateState.OPEN, GateState.EXHAUSTED, GateState.UNKNOWN


@dataclass(frozen=True)
class Case:
    reason: str
    status: Any
    state: GateState
    cause: str = ""


def status(cause: object, *, paused: object) -> dict[str, Any]:
    return {"paused": paused, "why": {"cause": cause}}


CASES = [
    Case("it runs", status("running", paused=False), OPEN, "running"),
    Case("it runs for a cause nobody gave", {"paused": False}, OPEN),
    Case("nothing is measured, the last known word counts", {**status("unknown", paused=False),
         "conditions": [{"type": "Measured", "status": "False"}]}, OPEN, "unknown"),
    Case("its pipeline fails, the last known word counts", {
         **status("budget-exhausted", paused=True),
         "conditions": [{"type": "Synced", "status": "False"}]}, EXHAUSTED, "budget-exhausted"),
    Case("the limit is reached", status("budget-exhausted", paused=True), EXHAUSTED,
         "budget-exhausted"),
    Case("another limit", status("month-exhausted", paused=True), EXHAUSTED, "month-exhausted"),
    Case("not paused, though the cause says so", status("budget-exhausted", paused=False), OPEN,
         "budget-exhausted"),
    Case("paused for another cause is not an empty purse",
         status("agent-unreachable", paused=True), UNKNOWN, "agent-unreachable"),
    Case("paused without a cause", {"paused": True}, UNKNOWN),
    Case("paused, and the cause is not text", status(["budget-exhausted"], paused=True), UNKNOWN),
    Case("never judged", {}, UNKNOWN),
    Case("no status at all", None, UNKNOWN),
    Case("a status that is not a map", "paused", UNKNOWN),
    Case("text that looks like a yes", status("budget-exhausted", paused="true"), UNKNOWN,
         "budget-exhausted"),
    Case("one is not true", status("budget-exhausted", paused=1), UNKNOWN, "budget-exhausted"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_judged(case: Case) -> None:
    found = verdict_of(GATE, {"status": case.status} if case.status is not None else {})

    assert (found.state, found.cause) == (case.state, case.cause)
    assert found.why
