"""The stations of the agents' pack, one by one: what they say to what they see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositions.station import Ready, Resource, Severity, State, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from orderkit.adapters.folders.station_process import load_stations

STATIONS = load_stations(Path(__file__).parents[3] / "packs" / "agents")
SPEC = {
    "agentName": "housing-bot",
    "datasetRef": {"name": "houses"},
    "budgetUsd": 5,
    "description": "Answers questions.",
    "owner": "ae86",
    "baseDomain": "apps.example.org:8443",
    "projectId": "lab-1",
}
FACTS = {
    "name": "houses",
    "displayName": "Houses",
    "gcsPath": "gs://data/a/Houses.csv",
    "sizeBytes": 10,
}
DATASET, PAUSED, SPEND = "whisperops.io/dataset", "whisperops.io/paused", "whisperops.io/spend"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "agent-housing-bot"}}


def asked(
    spec: Mapping[str, Any],
    *,
    status: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    observed: Mapping[str, Manifest] | None = None,
    **required: tuple[Manifest, ...],
) -> StationRequest:
    xr: Manifest = {
        "metadata": {"name": "housing-bot", "namespace": "agent-housing-bot"},
        "spec": dict(spec),
        "status": dict(status or {}),
    }
    parts = {name: Resource(dict(found)) for name, found in (observed or {}).items()}
    return StationRequest(
        State(Resource(xr), parts), context=dict(context or {}), required=required
    )


def fatal(response: StationResponse) -> list[str]:
    return [each.message for each in response.results if each.severity is Severity.FATAL]


# --- the dataset


def record(*, ready: bool = True, **spec: Any) -> Manifest:
    given_ = {"gcsPath": "gs://data/Houses.csv", "displayName": "Houses", "sizeBytes": 7, **spec}
    return {"spec": given_, "status": {"ready": ready}}


def test_the_requirement_is_declared_before_anything_else() -> None:
    """Crossplane's first call is a probe: it must neither refuse nor forget to ask."""
    response = STATIONS["datasetagent/validate-dataset"](asked(SPEC))

    assert response.requirements["dataset"].name == "houses"
    assert response.results == []


@dataclass(frozen=True)
class Missing:
    reason: str
    found: tuple[Manifest, ...]
    told: str


MISSING = [
    Missing("no record", (), "not in the registry"),
    Missing("a record that is not ready", (record(ready=False),), "not ready"),
    Missing("a record without a size", (record(sizeBytes=None),), "no size"),
    Missing("a record that the watcher has not judged", ({"spec": {}},), "not ready"),
]


@pytest.mark.parametrize("case", MISSING, ids=lambda case: case.reason)
def test_a_new_agent_is_refused_for_want_of_a_dataset(case: Missing) -> None:
    response = STATIONS["datasetagent/validate-dataset"](asked(SPEC, dataset=case.found))

    (told,) = fatal(response)
    assert case.told in told


@pytest.mark.parametrize("case", MISSING, ids=lambda case: case.reason)
def test_a_living_agent_keeps_the_facts_of_its_last_good_round(case: Missing) -> None:
    request = asked(SPEC, status={"dataset": FACTS}, dataset=case.found)

    response = STATIONS["datasetagent/validate-dataset"](request)

    assert fatal(response) == []
    assert response.context[DATASET] == FACTS
    assert response.desired.composite.resource["status"]["dataset"] == FACTS
    assert response.desired.composite.ready is Ready.FALSE
    (condition,) = response.conditions
    assert (condition.type, condition.status) == ("DatasetFound", "False")


@pytest.mark.parametrize(
    "name",
    [n for n in STATIONS if n.startswith("datasetagent/") and "validate" not in n],
)
def test_no_station_goes_on_without_a_dataset(name: str) -> None:
    """Somebody took the first step out of the Composition: nothing may be deleted for it."""
    response = STATIONS[name](asked(SPEC))

    assert "validate-dataset must come first" in fatal(response)[0]


# --- the nested budget


@pytest.mark.parametrize(
    ("spec", "seen", "ready", "reason"),
    [
        ({}, 3, Ready.TRUE, "everything was seen with these values"),
        ({"budgetUsd": 4}, 3, Ready.FALSE, "Ready was said of the values before"),
        ({}, 2, Ready.FALSE, "its new values are there, and nobody looked at them yet"),
        ({}, None, Ready.TRUE, "conditions that say nothing of generations"),
    ],
)
def test_a_raised_budget_is_ready_once_it_was_seen_ready_as_raised(
    spec: Mapping[str, Any], seen: int | None, ready: Ready, reason: str
) -> None:
    dated = {} if seen is None else {"observedGeneration": seen}
    says = [{"type": type_, "status": "True", **dated} for type_ in ("Synced", "Ready")]
    context, there = {DATASET: FACTS}, {"namespace": NAMESPACE}
    wanted = STATIONS["datasetagent/emit-budget"](asked(SPEC, context=context, observed=there))
    budget = wanted.desired.resources["budget"].resource
    observed: Manifest = {
        **budget,
        "metadata": {**budget["metadata"], "generation": 3},
        "spec": {**budget["spec"], **spec},
        "status": {"conditions": says},
    }

    response = STATIONS["datasetagent/emit-budget"](
        asked(SPEC, context=context, observed={**there, "budget": observed})
    )

    assert response.desired.resources["budget"].ready is ready, reason


# --- the sandbox

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("size_bytes", "memory_mib", "reason"),
    [
        (1, 1024, "one GiB is the least"),
        (292 * MIB, 1024, "1022 MiB are within the first GiB"),
        (292 * MIB + 599186, 1024, "the last byte that fits"),
        (292 * MIB + 599187, 2048, "one byte more takes the next GiB"),
        (900_000_000, 3072, "2.9 GiB are rounded up"),
        (2 * 1024 * MIB, 7168, "seven GiB exactly stay seven"),
        (3 * 1024 * MIB, 8192, "eight GiB are the most"),
        (5 * 10**12, 8192, "five terabytes too"),
        (2**62, 8192, "numbers that no float holds"),
    ],
)
def test_memory_is_three_and_a_half_times_the_file(
    size_bytes: int, memory_mib: int, reason: str
) -> None:
    context = {DATASET: {**FACTS, "sizeBytes": size_bytes}}

    response = STATIONS["datasetagent/compute-tuning"](asked(SPEC, context=context))

    assert response.desired.composite.resource["status"]["sandboxMemMi"] == memory_mib, reason


# --- Google's cloud


@pytest.mark.parametrize(
    ("path", "bucket"),
    [
        ("gs://data/Houses.csv", "data"),
        ("gs://data/a/b/Houses.csv", "data"),
        ("s3://data/Houses.csv", "data"),
        ("file:///var/lib/buckets/demo/Houses.csv", "demo"),
        ("file:///Houses.csv", "files"),
        ("memory://Houses.csv", "files"),
    ],
)
def test_the_right_to_read_is_on_the_bucket_of_the_dataset(path: str, bucket: str) -> None:
    context = {DATASET: {**FACTS, "gcsPath": path}}
    request = asked(SPEC, context=context, observed={"namespace": NAMESPACE})

    wanted = STATIONS["datasetagent/render-iam"](request).desired.resources

    member = wanted[f"reader-of-{bucket}"].resource["spec"]["forProvider"]
    assert (member["bucket"], member["role"]) == (bucket, "roles/storage.objectViewer")
    assert len(wanted) == 5


def test_the_bucket_is_deleted_only_where_that_was_asked_for() -> None:
    def bucket(**more: str) -> dict[str, Any]:
        request = asked(
            {**SPEC, **more}, context={DATASET: FACTS}, observed={"namespace": NAMESPACE}
        )
        found = STATIONS["datasetagent/render-iam"](request).desired.resources["bucket"]
        spec: dict[str, Any] = found.resource["spec"]
        return spec

    kept, deleted = bucket(), bucket(bucketOnEnd="delete")

    assert "Delete" not in kept["managementPolicies"]
    assert "*" not in kept["managementPolicies"]
    assert kept["forProvider"]["forceDestroy"] is False
    assert deleted["managementPolicies"] == ["*"]
    assert deleted["forProvider"]["forceDestroy"] is True


# --- texts


@given(st.text(min_size=1, max_size=200))
def test_a_description_arrives_word_for_word(description: str) -> None:
    spec = {**SPEC, "description": description}
    context = {DATASET: FACTS, "whisperops.io/sandbox-memory": 1024}
    request = asked(spec, context=context, observed={"namespace": NAMESPACE})

    workloads = STATIONS["datasetagent/render-workloads"](request).desired.resources
    request = asked(spec, context=context, observed={"namespace": NAMESPACE})
    dashboard = STATIONS["datasetagent/render-dashboard"](request).desired.resources["dashboard"]

    assert workloads["prompts"].resource["data"]["description"] == description
    (text,) = dashboard.resource["data"].values()
    assert json.loads(text)["description"] == f"Houses: {description}"


# --- money


def spend(**data: str) -> Manifest:
    return {"data": {"windowStart": "2026-11-01T00:00:00Z", **data}}


def through_the_line(
    budget: Mapping[str, Any],
    *,
    status: Mapping[str, Any] | None = None,
    found: tuple[Manifest, ...] = (),
) -> StationResponse:
    spec = {"agentName": "housing-bot", "targets": [{"name": "planner"}], **budget}
    first = STATIONS["agentbudget/fetch-spend"](asked(spec, status=status, spend=found))
    request = asked(spec, status=status, context=first.context)
    return STATIONS["agentbudget/decide"](request)


cents = st.integers(0, 2_000_000).map(lambda n: Decimal(n) / 100)
budgets = st.integers(100, 1_000_000).map(lambda n: Decimal(n) / 100)


@given(cents, budgets)
def test_an_agent_is_paused_exactly_when_all_is_spent(spent: Decimal, budget: Decimal) -> None:
    found = (spend(spentUsd=f"{spent:.2f}", measured="true"),)

    response = through_the_line({"budgetUsd": float(budget)}, found=found)

    status = response.desired.composite.resource["status"]
    assert status["paused"] is (spent >= budget)
    assert status["cause"] == ("budget-exhausted" if spent >= budget else "running")
    assert response.context[PAUSED] is status["paused"]


@given(cents, budgets)
def test_an_agent_that_is_only_watched_is_never_paused(spent: Decimal, budget: Decimal) -> None:
    asked_for = {"budgetUsd": float(budget), "enforcement": "monitor-only"}
    found = (spend(spentUsd=f"{spent:.2f}", measured="true"),)

    status = through_the_line(asked_for, found=found).desired.composite.resource["status"]

    assert status["paused"] is False
    assert status["spentUsd"] == float(spent)


outages = st.sampled_from(
    [
        (),
        (spend(measured="false", reason="connection refused"),),
        (spend(measured="true", spentUsd="1e400"),),
        (spend(measured="true", spentUsd="-3"),),
        (spend(measured="true", spentUsd="NaN"),),
        (spend(measured="true"),),
        ({"data": None},),
        ({},),
    ]
)


@given(cents, budgets, outages)
def test_an_outage_changes_nothing(
    spent: Decimal, budget: Decimal, outage: tuple[Manifest, ...]
) -> None:
    """What was running runs on, what was paused stays so, and no number changes."""
    asked_for = {"budgetUsd": float(budget)}
    good = (spend(spentUsd=f"{spent:.2f}", measured="true"),)
    before = through_the_line(asked_for, found=good).desired.composite.resource["status"]

    after = through_the_line(asked_for, status=before, found=outage)

    assert after.desired.composite.resource["status"] == before


@given(outages)
def test_what_was_never_measured_shows_no_numbers(outage: tuple[Manifest, ...]) -> None:
    status = through_the_line({"budgetUsd": 5}, found=outage).desired.composite.resource["status"]

    assert not {"spentUsd", "ratio", "ratioPct"} & status.keys()
    assert (status["paused"], status["cause"]) == (False, "unknown")


def test_the_status_reads_as_a_person_writes_money() -> None:
    found = (spend(spentUsd="1.4602", measured="true"),)

    status = through_the_line({"budgetUsd": 5}, found=found).desired.composite.resource["status"]

    assert status == {
        "budget": "5.00",
        "spentUsd": 1.4602,
        "ratio": 0.292,
        "ratioPct": "29.20%",
        "windowStart": "2026-11-01T00:00:00Z",
        "paused": False,
        "cause": "running",
    }


def test_a_number_from_the_wire_gives_the_same_status() -> None:
    """Over gRPC every number is a double: 5 and 5.0 must not make two statuses."""
    found = (spend(spentUsd="4.00", measured="true"),)

    assert through_the_line({"budgetUsd": 5}, found=found) == through_the_line(
        {"budgetUsd": 5.0}, found=found
    )


@pytest.mark.parametrize("name", ["decide", "render"])
def test_a_budget_without_its_first_steps_refuses(name: str) -> None:
    response = STATIONS[f"agentbudget/{name}"](asked({"budgetUsd": 5, "targets": []}))

    assert "must come before this one" in fatal(response)[0]


def test_an_object_owns_the_replicas_and_nothing_else() -> None:
    spec = {"targets": [{"name": "planner", "replicas": 3}]}
    request = asked(spec, context={PAUSED: True})

    wanted = STATIONS["agentbudget/render"](request).desired.resources["planner-replicas"]

    made = wanted.resource["spec"]
    assert made["managementPolicies"] == ["Observe", "Update"]
    assert made["forProvider"]["manifest"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "planner", "namespace": "agent-housing-bot"},
        "spec": {"replicas": 0},
    }
    assert wanted.ready is Ready.FALSE
