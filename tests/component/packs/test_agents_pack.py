"""The agents' pack as a whole: it passes its own checks, and has the parts it promises."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from ground.names import OrderId, TeamName
from kubeschema.validate.findings import FindingSeverity
from orderkit.core.kit.pack import read_kit
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_summary import summarize
from orderkit.core.order.order_view import OrderSources
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.stories.check_kits import check_pack
from orderkit_workshop.stories.test_kits import TestSelection as Selection
from orderkit_workshop.stories.test_kits import run_tests

PACK = Path(__file__).parents[3] / "packs" / "agents"
CASES = PACK / "tests" / "kits"
KNOWN = {"fact-source", "function-tag", "no-schema"}
"""
Both kits read records that controllers keep; digests need a registry (`orderkit kit digests`); the
pack has CRDs of managed kinds only.
"""


def test_the_kits_pass_every_rule() -> None:
    verdict = check_pack(LocalPack(PACK))

    told = {(str(getattr(each.about, "reason", "gap")), str(each)) for each in verdict.findings}
    assert {each for each in told if each[0] not in KNOWN} == set()
    assert verdict.count(FindingSeverity.ERROR) == 0
    assert verdict.runs > 0


def test_every_managed_resource_is_judged_by_a_schema() -> None:
    verdict = check_pack(LocalPack(PACK))

    unjudged = [str(e) for e in verdict.findings if getattr(e.about, "reason", "") == "no-schema"]
    assert unjudged
    assert not [text for text in unjudged if ".m.upbound.io" in text or ".m.crossplane.io" in text]


def test_a_managed_resource_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    pack = tmp_path / "agents"
    shutil.copytree(PACK, pack, ignore=shutil.ignore_patterns("controllers"))
    station = pack / "stations" / "datasetagent" / "iam.py"
    text = station.read_text()
    assert text.count('"publicAccessPrevention"') == 1
    station.write_text(text.replace('"publicAccessPrevention"', '"publicAccess"'))

    findings = [str(finding) for finding in check_pack(LocalPack(pack)).findings]

    assert [text for text in findings if "publicAccess" in text and "bucket" in text.lower()]


def test_every_scenario_comes_out_as_expected() -> None:
    report = run_tests(Selection(LocalPack(PACK)))

    assert [
        (case.name, case.message, case.differences) for case in report.cases if not case.ok
    ] == []
    assert report.untested == ()


@pytest.mark.parametrize(
    ("case", "phase", "change"),
    [("paused-by-its-budget", "Attention", "budget"), ("first-order", "Ready", None)],
)
def test_an_agent_that_its_budget_has_paused_asks_for_a_larger_one(
    case: str, phase: str, change: str | None
) -> None:
    kit = read_kit("datasetagent", LocalPack(PACK).files())
    outcome = yaml.safe_load((CASES / "datasetagent" / case / "expected/outcome.yaml").read_text())
    times = {"status": "True", "lastTransitionTime": "2026-11-02T10:05:00Z"}
    conditions = [{"type": "Synced", **times}, {"type": "Ready", **times}]
    xr = {
        "apiVersion": kit.kind.api_version,
        "kind": kit.kind.kind,
        "metadata": {"name": "housing-bot"},
        "spec": {"budgetUsd": 5},
        "status": {**outcome["status"], "conditions": conditions},
    }
    application = {
        "metadata": {"name": "datasetagent-housing-bot"},
        "status": {"sync": {"status": "Synced", "revision": "a" * 40}, "resources": [{}]},
    }
    entry = OrderEntry(TeamName("ae86"), OrderId("datasetagent-housing-bot"))

    row = summarize(OrderSources(entry, ending=False, application=application, xr=xr), kit)

    assert row.phase == phase, row.reason
    assert [(a.change, a.button) for a in row.attention] == (
        [(change, "Raise the budget")] if change else []
    )
    assert [(output.name, output.is_link) for output in row.outputs if output.value] == [
        ("chat", True),
        ("bucket", False),
    ]


INVENTORY = {
    ("Bucket", "storage.gcp.m.upbound.io"): 1,
    ("ServiceAccount", "cloudplatform.gcp.m.upbound.io"): 1,
    ("ServiceAccountKey", "cloudplatform.gcp.m.upbound.io"): 1,
    ("BucketIAMMember", "storage.gcp.m.upbound.io"): 2,
    ("Namespace", ""): 1,
    ("ConfigMap", ""): 2,
    ("NetworkPolicy", "networking.k8s.io"): 1,
    ("ModelConfig", "kagent.dev"): 1,
    ("Agent", "kagent.dev"): 2,
    ("Deployment", "apps"): 2,
    ("Service", ""): 2,
    ("RemoteMCPServer", "kagent.dev"): 1,
    ("ServiceAccount", ""): 1,
    ("RoleBinding", "rbac.authorization.k8s.io"): 1,
    ("Ingress", "networking.k8s.io"): 1,
    ("Policy", "kyverno.io"): 1,
    ("XAgentBudget", "whisperops.io"): 1,
}
"""The document's table of 22 parts: five in the cloud, fifteen in Kubernetes, one, and one."""


@pytest.mark.parametrize(
    "case",
    ["first-order", "dataset-swapped", "dataset-vanished", "paused-by-its-budget"],
)
def test_an_agent_has_the_22_parts_whatever_happens_to_it(case: str) -> None:
    parts = yaml.safe_load((CASES / "datasetagent" / case / "expected/resources.yaml").read_text())

    found = Counter(
        (part["object"]["kind"], part["object"]["apiVersion"].rpartition("/")[0])
        for part in parts.values()
    )

    assert found == INVENTORY
    assert found.total() == 22
