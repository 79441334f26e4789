"""The workspaces' pack as a whole: it passes its own checks, and what it composes is safe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeschema.validate.findings import FindingSeverity
from orderkit.core.kit.pack import read_kit
from orderkit.core.plan import Assembly
from orderkit.core.plan.cost import order_cost
from orderkit.core.plan.price_table import read_prices
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.stories.check_kits import check_pack
from orderkit_workshop.stories.test_kits import TestSelection as Selection
from orderkit_workshop.stories.test_kits import run_tests

PACK = Path(__file__).parents[3] / "packs" / "workspaces"
CASES = PACK / "tests" / "kits" / "gpuworkspace"
KNOWN = {"function-tag"}
"""Digests need a registry (`orderkit kit digests`)."""


def resources(case: str) -> dict[str, Any]:
    """Return the objects that a scenario composes, by logical name."""
    parts = yaml.safe_load((CASES / case / "expected" / "resources.yaml").read_text())
    return {name: part["object"] for name, part in parts.items()}


def test_the_kit_passes_every_rule() -> None:
    verdict = check_pack(LocalPack(PACK))

    findings = {
        (str(getattr(finding.about, "reason", "gap")), str(finding)) for finding in verdict.findings
    }
    assert {finding for finding in findings if finding[0] not in KNOWN} == set()
    assert verdict.count(FindingSeverity.ERROR) == 0
    assert verdict.runs > 0


def test_every_scenario_comes_out_as_expected() -> None:
    report = run_tests(Selection(LocalPack(PACK)))

    assert [
        (case.name, case.message, case.differences) for case in report.cases if not case.ok
    ] == []
    assert report.untested == ()


COMPOSING = sorted(path.parent.parent.name for path in CASES.glob("*/expected/resources.yaml"))


@pytest.mark.parametrize("case", COMPOSING)
def test_no_name_that_aws_assigns_is_ever_set(case: str) -> None:
    annotations = [part["metadata"].get("annotations") for part in resources(case).values()]

    assert annotations == [None] * len(annotations)


def test_user_data_is_data_from_which_no_shell_reads_a_value() -> None:
    instance = next(
        part for part in resources("first-order").values() if part["kind"] == "Instance"
    )
    first_line, _, text = instance["spec"]["forProvider"]["userData"].partition("\n")

    assert first_line == "#cloud-config"
    assert yaml.safe_load(text) == json.loads(text), "cloud-init reads it as YAML"
    config = json.loads(text)
    assert all(isinstance(command, list) for command in config["runcmd"]), "no shell splits it"
    assert "4.10.0" not in json.dumps(config["runcmd"])
    (requirements,) = config["write_files"]
    assert requirements["content"] == "opencv-contrib-python-headless==4.10.0.*\n"


@pytest.mark.parametrize(
    ("case", "cost"),
    [
        ("first-order", "395.63 USD"),  # 0.526 and 0.005 for 730 hours, 100 GB
        ("stopped", "11.65 USD"),
    ],
)
def test_what_a_workspace_costs_is_known_and_a_stopped_one_costs_little(
    case: str, cost: str
) -> None:
    prices = read_prices((PACK / "gitops/prices.yaml").read_bytes(), name="prices.yaml")
    kit = read_kit("gpuworkspace", LocalPack(PACK).files())
    spec = {"instanceType": "g4dn.xlarge", "running": case != "stopped"}
    xr = {
        "apiVersion": kit.kind.api_version,
        "kind": kit.kind.kind,
        "metadata": {"name": "gpuworkspace-vision"},
        "spec": spec,
    }

    costs = order_cost(Assembly(xr, resources(case), {}), prices)

    assert (str(costs), costs.unknown) == (cost, ())
