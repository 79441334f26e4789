"""What is foretold of every step of the scenes is what a live core then did."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from tests.conformance.crossplane import scenes
from tests.conformance.crossplane.differences import PLAN
from tests.conformance.crossplane.foretelling import plan_change
from tests.conformance.crossplane.judging import amended, recorded, unlike
from tests.conformance.crossplane.playing import SCENES

PLAYS = (scenes,)
"""Importing them registers what they hold."""
STEPS = [(name, step) for name in SCENES for step in recorded(name)[0]]
_OF_NO_GENERATION = " (of no generation)"


@cache
def foretold(scene: str) -> dict[str, Any]:
    return plan_change(scene)


@pytest.mark.parametrize(("scene", "step"), STEPS, ids=str)
def test_a_live_core_did_as_foretold(scene: str, step: str) -> None:
    account = recorded(scene)[0][step]
    did = {subject: _reduced(subject, seen) for subject, seen in account.items()}

    assert unlike(amended(did, scene, step, PLAN), foretold(scene)[step]) == {}


def _reduced(subject: str, seen: dict[str, Any]) -> dict[str, Any]:
    """Return of an account what a plan speaks about."""
    if "/" in subject.partition(" ")[0]:
        return seen
    conditions: dict[str, str] = seen["conditions"]
    failed = conditions["Synced"].removeprefix("False ReconcileError: cannot compose resources: ")
    if failed != conditions["Synced"]:
        return {"fault": failed}
    own = {
        type_: text.removesuffix(_OF_NO_GENERATION)
        for type_, text in conditions.items()
        if type_ not in {"Ready", "Synced", "Responsive"}
    }
    ready = conditions["Ready"].partition(" ")[0]
    return {"spec": seen["spec"], "status": seen["status"], "ready": ready, "own": own}
