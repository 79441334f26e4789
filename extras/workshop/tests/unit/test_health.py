"""Health as a real Argo CD judges with our checks: in Python and in Lua, by one table."""

from __future__ import annotations

import pytest
import yaml
from healthcases import CASES, Case, live
from luahealth import judge

from ground.argocd.health import HEALTHY, Health, HealthStatus, health_of, worst
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit_workshop.generate.health_checks import SETTINGS

DATA = yaml.safe_load(read_folder(reference_pack())[SETTINGS])["data"]


def told(verdict: Health | None) -> str | None:
    return verdict.status.value if verdict else None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_the_lua_and_the_embedded_platform_judge_alike(case: Case) -> None:
    ours = health_of(case.manifest, composite=case.manifest["kind"] == "XGarage")
    theirs = judge(DATA, case.manifest)

    assert told(ours) == told(theirs) == case.status
    assert ours == theirs
    if case.message:
        assert ours is not None
        assert ours.message == case.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_what_is_being_deleted_is_in_progress_whatever_its_kind(case: Case) -> None:
    going = {
        **case.manifest,
        "metadata": {**case.manifest["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }

    assert health_of(going) == judge(DATA, going)
    assert told(health_of(going)) == "Progressing"


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
