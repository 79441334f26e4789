"""Health as a real Argo CD judges with our checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from orderkit.core.health import HEALTHY, Health, HealthStatus, health_of, worst
from orderkit.core.objects import Manifest

XR = "blog.opsbogus.dev/v1alpha1 XGarage"
XRD = "apiextensions.crossplane.io/v2 CompositeResourceDefinition"
FUNCTION = "pkg.crossplane.io/v1 Function"


def live(kind: str, *conditions: str, generation: int = 2, **status: Any) -> Manifest:
    """An object with conditions written ``Type=Status`` or ``Type=Status@observedGeneration``."""
    api_version, plain = kind.split()
    found = []
    for text in conditions:
        head, _, observed = text.partition("@")
        type_, state = head.split("=")
        entry = {"type": type_, "status": state, "message": f"{type_} says {state}"}
        found.append({**entry, "observedGeneration": int(observed)} if observed else entry)
    body: dict[str, Any] = {"conditions": found, **status} if conditions or status else {}
    manifest = {
        "apiVersion": api_version,
        "kind": plain,
        "metadata": {"name": "x", "generation": generation},
    }
    return {**manifest, "status": body} if body else manifest


@dataclass(frozen=True)
class Case:
    reason: str
    manifest: Manifest
    status: str | None
    message: str = ""


CASES = [
    Case("a ConfigMap has no check", live("v1 ConfigMap"), None),
    Case("a Composition has no check", live("apiextensions.crossplane.io/v1 Composition"), None),
    Case(
        "an Application without status is not assessed",
        live("argoproj.io/v1alpha1 Application"),
        "Progressing",
    ),
    Case(
        "an Application says itself how it is",
        live("argoproj.io/v1alpha1 Application", health={"status": "Degraded", "message": "bad"}),
        "Degraded",
        "bad",
    ),
    Case(
        "an Application with an unknown word is not assessed",
        live("argoproj.io/v1alpha1 Application", health={"status": "Great"}),
        "Progressing",
    ),
    Case("an XRD before Crossplane saw it", live(XRD), "Progressing"),
    Case("an established XRD", live(XRD, "Established=True@2"), "Healthy"),
    Case("an XRD whose CRD is still the old one", live(XRD, "Established=True@1"), "Progressing"),
    Case(
        "an XRD that is refused",
        live(XRD, "Established=False@2"),
        "Degraded",
        "Established says False",
    ),
    Case("a function that is only installed", live(FUNCTION, "Installed=True"), "Progressing"),
    Case("a function that runs", live(FUNCTION, "Installed=True", "Healthy=True"), "Healthy"),
    Case(
        "a function that cannot run", live(FUNCTION, "Installed=True", "Healthy=False"), "Degraded"
    ),
    Case("an order before Crossplane saw it", live(XR), "Progressing"),
    Case("an order with a status but no conditions", live(XR, stage="x"), "Progressing"),
    Case("an order that is ready", live(XR, "Synced=True@2", "Ready=True@2"), "Healthy"),
    Case(
        "an order that is being made",
        live(XR, "Synced=True@2", "Ready=False@2"),
        "Progressing",
        "Ready says False",
    ),
    Case(
        "an order whose pipeline fails",
        live(XR, "Synced=False@2", "Ready=True@1"),
        "Degraded",
        "Synced says False",
    ),
    Case(
        "a failure of an older generation is no verdict yet",
        live(XR, "Synced=False@1"),
        "Progressing",
    ),
    Case("Ready keeps its last value", live(XR, "Synced=True@2", "Ready=True@1"), "Progressing"),
    Case(
        "conditions without observedGeneration count",
        live(XR, "Synced=True", "Ready=True"),
        "Healthy",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_health_of_one_object(case: Case) -> None:
    verdict = health_of(case.manifest, composite=case.manifest["kind"] == "XGarage")

    assert (verdict.status.value if verdict else None) == case.status
    if case.message:
        assert verdict is not None
        assert verdict.message == case.message


def test_crossplane_conditions_are_judged_even_if_nobody_says_composite() -> None:
    verdict = health_of(live("db.example.org/v1 Database", "Synced=True@2", "Ready=False@2"))

    assert verdict is not None
    assert verdict.status is HealthStatus.PROGRESSING


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ValueError, match="not a Kubernetes object"):
        health_of({"kind": "ConfigMap"})


def test_the_worst_wins_and_the_first_of_equals() -> None:
    bad = Health(HealthStatus.DEGRADED, "first")
    verdicts = [HEALTHY, Health(HealthStatus.PROGRESSING), bad, Health(HealthStatus.DEGRADED, "b")]

    assert worst(verdicts) is bad
    assert worst([]) is HEALTHY
