"""
The agents' pipelines as a real Crossplane runs them: what it composed, its conditions, its status.

``recorded.json`` is what ``crossplane internal render`` of core 2.3.4 answered, with
function-auto-ready 0.7.0 and with our stations served by ``orderkit stations``. It is recorded by
hand where such a core is at hand: a change of these kits that changes what they compose changes
what it would have said, and takes a new record.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agentrounds import CASES, PACK, prepared

from compositions.composed import Composed
from ground.objects.kube_objects import RECONCILE_SUCCESS, RESPONSIVE, Condition, dig
from yamlfiles.manifests import parse_manifests

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "recorded.json").read_text()
)


_SINCE = {"agentbudget": (), "datasetagent": ("spentUsd", "paused", "cause")}
"""Fields of the status that stations write since this was recorded: copies of the budget's."""


@pytest.mark.parametrize("case", CASES)
def test_the_same_is_composed(case: str) -> None:
    core, ours = RECORDED[case], prepared(case).run()

    made = {_part(found): found for found in core["composed"]}
    assert {name: desired.manifest for name, desired in ours.resources.items()} == made
    assert sorted(ours.deletions) == core["deleted"]
    if not ours.error:
        assert list(ours.references) == core["refs"]


@pytest.mark.parametrize("case", CASES)
def test_the_xr_says_the_same(case: str) -> None:
    core, ours = RECORDED[case], prepared(case).run()
    kit = case.partition("/")[0]

    if core["code"]:
        assert ours.error in core["error"]
        return
    assert not ours.error
    assert {key: ours.status[key] for key in ours.status if key not in _SINCE[kit]} == core[
        "status"
    ]
    assert _conditions(ours) == core["conditions"]


def _part(found: dict[str, Any]) -> str:
    return str(dig(found, "metadata", "annotations", "crossplane.io/composition-resource-name"))


def _conditions(ours: Composed) -> list[dict[str, str]]:
    found = [*ours.conditions, RESPONSIVE, RECONCILE_SUCCESS, ours.ready_condition]
    return sorted(map(_condition, found), key=lambda each: each["type"])


def _condition(found: Condition) -> dict[str, str]:
    told = {"type": found.type, "status": str(found.status), "reason": found.reason}
    return told | ({"message": found.message} if found.message else {})


PRINTED = [
    (
        "agentbudget/over-budget/settled",
        {"BUDGET": "5.00", "SPENT": 5.02, "RATIO": "100.40%", "PAUSED": True,
         "CAUSE": "budget-exhausted", "SINCE": "2026-11-01T00:00:00Z"},
    ),
    (
        "agentbudget/prometheus-down/settled",
        {"BUDGET": "5.00", "SPENT": 4.2, "RATIO": "84.00%", "PAUSED": False, "CAUSE": "running",
         "SINCE": "2026-11-01T00:00:00Z"},
    ),
    (
        "datasetagent/watched-only/settled",
        {"DATASET": "California Housing", "BUDGET": "5.00", "SPENT": None,
         "URL": "https://agent-housing-bot.34.61.7.12.sslip.io:8443/",
         "BUCKET": "whisperops-lab-agent-housing-bot"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("case", "printed"), PRINTED, ids=lambda value: str(value)[:40])
def test_kubectl_prints_what_the_core_wrote(case: str, printed: dict[str, Any]) -> None:
    path = f"gitops/apis/{case.partition('/')[0]}/definition.yaml"
    (xrd,) = parse_manifests(path, (PACK / path).read_bytes())
    columns = xrd["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = {"status": RECORDED[case]["status"]}

    found = {c["name"]: dig(shown, *c["jsonPath"].lstrip(".").split(".")) for c in columns}

    assert found == printed
