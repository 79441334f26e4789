"""What an order's phase is, from what Argo CD and Crossplane wrote (texts as observed)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from orderkit.core.names import CommitSha
from orderkit.core.orderstate import judge

HEAD = CommitSha("a" * 40)
OLD = "b" * 40


def application(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "garage-ae86"}, "status": status}


def delivered(revision: str = HEAD, **more: Any) -> dict[str, Any]:
    return application(
        sync={"status": "Synced", "revision": revision},
        health={"status": "Healthy"},
        operationState={"phase": "Succeeded", "syncResult": {"revision": revision}},
        **more,
    )


def xr(*, synced: str = "True", ready: str = "True", seen: int = 2, **ready_more: Any) -> Any:
    return {
        "metadata": {"generation": 2},
        "status": {
            "conditions": [
                {"type": "Synced", "status": synced, "observedGeneration": 2, "message": "no"},
                {"type": "Ready", "status": ready, "observedGeneration": seen, **ready_more},
            ]
        },
    }


@dataclass(frozen=True)
class Case:
    reason: str
    phase: str
    application: Any = None
    xr: Any = None
    says: str = ""
    ending: bool = field(default=False)


CASES = [
    Case("no Application yet", "Registered", says="no Application"),
    Case("everything holds at the head", "Ready", delivered(), xr()),
    Case(
        "Synced and healthy at an older commit is not delivered",
        "Delivering",
        delivered(OLD),
        xr(),
        says="Git is at aaaaaaaa, Argo CD has seen bbbbbbbb",
    ),
    Case(
        "a ComparisonError leaves health Healthy and the revision a branch name",
        "Failing",
        application(
            sync={"status": "Unknown", "revision": "main"},
            health={"status": "Healthy"},
            conditions=[{"type": "ComparisonError", "message": "app path does not exist"}],
        ),
        says="app path does not exist",
    ),
    Case(
        "Ready keeps its last value when a pipeline fails",
        "Failing",
        delivered(),
        xr(synced="False", seen=1),
        says="no",
    ),
    Case(
        "Ready observed at an older generation does not count",
        "Assembling",
        delivered(),
        xr(seen=1),
        says="newest values",
    ),
    Case(
        "an unready part is named",
        "Assembling",
        delivered(),
        xr(ready="False", message="Unready resources: spec-sheet"),
        says="spec-sheet",
    ),
    Case(
        "a running operation is not delivered, though the revision shows the newest commit",
        "Delivering",
        delivered() | {"operation": {"sync": {}}},
        xr(),
        says="is applying",
    ),
    Case("an XR that is not there is waited for", "Assembling", delivered(), says="not in the"),
    Case("an end under way hides everything else", "Ending", delivered(), xr(), ending=True),
    Case(
        "a refused resource is the reason while retries go on",
        "Failing",
        application(
            sync={"status": "OutOfSync", "revision": HEAD},
            operationState={
                "phase": "Running",
                "retryCount": 2,
                "syncResult": {
                    "resources": [
                        {
                            "kind": "XGarage",
                            "name": "x",
                            "status": "SyncFailed",
                            "message": "denied",
                        }
                    ]
                },
            },
        ),
        says="XGarage x: denied",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_phase(case: Case) -> None:
    state = judge(case.application, case.xr, head=HEAD, ending=case.ending)

    assert (state.phase, state.ready) == (case.phase, case.phase == "Ready")
    assert case.says in state.reason


def test_without_a_head_whatever_argo_cd_saw_last_counts() -> None:
    assert judge(delivered(OLD), xr(), head=None, ending=False).ready
