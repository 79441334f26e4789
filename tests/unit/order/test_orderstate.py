"""What an order's phase is, from what Argo CD and Crossplane wrote (texts as observed)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ground.names import CommitSha
from orderkit.core.order.order_state import judge, object_unready

HEAD = CommitSha("a" * 40)
OLD = "b" * 40


def application(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "garage-ae86"}, "status": status}


def delivered(revision: str = HEAD, **more: Any) -> dict[str, Any]:
    return application(
        sync={"status": "Synced", "revision": revision},
        health={"status": "Healthy"},
        operationState={"phase": "Succeeded", "syncResult": {"revision": revision}},
        resources=[{"kind": "XGarage", "name": "garage-ae86", "status": "Synced"}],
        **more,
    )


def xr(*, synced: str = "True", ready: str = "True", seen: int = 2, **ready_more: Any) -> Any:
    return {
        "apiVersion": "garage.example.org/v1alpha1",
        "kind": "XGarage",
        "metadata": {"name": "garage-x", "generation": 2},
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
    Case("no Application yet", "Written", says="no Application"),
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
    Case(
        "a repository in which Argo CD finds nothing will never have one",
        "Failing",
        application(sync={"status": "Synced", "revision": HEAD}, health={"status": "Healthy"}),
        says="finds no object",
    ),
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


def _responsive(status: str, seen: int, **ready: Any) -> Any:
    found = xr(**ready)
    said = {"type": "Responsive", "status": status, "observedGeneration": seen}
    found["status"]["conditions"].append(said)
    return found


def test_a_round_that_began_before_the_change_does_not_speak_for_it() -> None:
    """Crossplane writes Synced and Ready of the changed generation when such a round ends."""
    begun_before, begun_after = _responsive("True", 1), _responsive("True", 2)

    state = judge(delivered(), begun_before, head=HEAD, ending=False)

    assert (state.phase, state.reason) == (
        "Assembling",
        "Crossplane has not reconciled the newest values yet",
    )
    assert judge(delivered(), begun_after, head=HEAD, ending=False).ready


def test_a_status_that_crossplane_has_half_written_is_not_ready() -> None:
    """Seen on a live core for some ten milliseconds, whenever an XR becomes unready."""
    torn = xr(ready="True", reason="Available", message="Unready resources: worker-replicas")

    assert judge(delivered(), torn, head=HEAD, ending=False).phase == "Assembling"


def test_who_waits_for_an_order_that_crossplane_seldom_looks_at_is_told_why() -> None:
    seldom = _responsive("False", 2, ready="False", message="Unready resources: budget")

    state = judge(delivered(), seldom, head=HEAD, ending=False)

    assert state.reason == "Unready resources: budget"
    assert "--circuit-breaker-burst" in state.advice


def test_an_open_circuit_breaker_is_reported_although_the_order_is_ready() -> None:
    """It stays open until the XR has an event, also when its cause is long gone."""
    state = judge(delivered(), _responsive("False", 2), head=HEAD, ending=False)

    assert (state.phase, state.throttled) == ("Ready", True)
    assert "circuit breaker is open (Responsive=False)" in state.reason
    assert "--circuit-breaker-burst=1000" in state.advice
    assert (
        "kubectl annotate xgarage.garage.example.org garage-x "
        "crossplane.io/reconcile-requested-at=$(date +%s) --overwrite" in state.advice
    )
    assert not judge(delivered(), xr(), head=HEAD, ending=False).throttled


def test_a_delivered_annotation_that_steers_argocd_wants_a_look_and_holds_nobody_up() -> None:
    steered = xr()
    steered["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": "Force=true"}

    state = judge(delivered(), steered, head=HEAD, ending=False)

    assert (state.phase, state.ready, state.is_held) == ("Attention", True, False)
    assert "sync-options: Force=true steers Argo CD" in state.reason
    assert state.advice.startswith("take argocd.argoproj.io/sync-options out of the annotations")


@pytest.mark.parametrize("synced", ["False", "True"], ids=["Crossplane has seen it", "not yet"])
def test_a_paused_order_is_neither_ready_nor_failing(synced: str) -> None:
    paused = xr(synced=synced)
    paused["metadata"]["annotations"] = {"crossplane.io/paused": "true"}

    state = judge(delivered(), paused, head=HEAD, ending=False)

    assert (state.phase, state.ready, state.paused) == ("Attention", False, True)
    assert state.reason == (
        "XGarage garage-x is paused (annotation crossplane.io/paused): Crossplane composes, "
        "changes and deletes nothing until it is resumed"
    )
    assert "remove the annotation crossplane.io/paused from its manifest in Git" in state.advice
    assert "kubectl annotate xgarage.garage.example.org garage-x crossplane.io/paused-" in (
        state.advice
    )


@pytest.mark.parametrize(
    ("conditions", "wrong"),
    [
        ((("Ready", "True"),), ""),
        ((("Accepted", "True"),), ""),
        ((("Ready", "False"),), "no pod"),
        ((("Synced", "True"), ("Ready", "False")), "no pod"),
        ((("Synced", "False"), ("Ready", "True")), "no pod"),
        ((("Synced", "True"),), "Crossplane has not reconciled the newest values yet"),
    ],
)
def test_a_part_that_keeps_no_synced_is_judged_by_ready(
    conditions: tuple[tuple[str, str], ...], wrong: str
) -> None:
    said = [{"type": type_, "status": status, "message": "no pod"} for type_, status in conditions]

    assert object_unready({"metadata": {}, "status": {"conditions": said}}) == wrong
