"""The environments' pack as a whole: it passes its own checks, and has the parts it promises."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from kubeschema.validate.findings import FindingSeverity
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.stories.check_kits import check_pack
from orderkit_workshop.stories.test_kits import TestSelection as Selection
from orderkit_workshop.stories.test_kits import run_tests

PACK = Path(__file__).parents[3] / "packs" / "environments"
CASES = PACK / "tests" / "kits"
KNOWN = {"function-tag", "many-fields"}
"""`orderkit kit digests` needs a registry; the unified form has ten fields on two pages."""


def test_the_kits_pass_every_rule() -> None:
    verdict = check_pack(LocalPack(PACK))

    findings = {(str(getattr(f.about, "reason", "gap")), str(f)) for f in verdict.findings}
    assert {finding for finding in findings if finding[0] not in KNOWN} == set()
    assert verdict.count(FindingSeverity.ERROR) == 0
    assert verdict.runs > 0


def test_every_scenario_comes_out_as_expected() -> None:
    report = run_tests(Selection(LocalPack(PACK)))

    assert [
        (case.name, case.message, case.differences) for case in report.cases if not case.ok
    ] == []
    assert report.untested == ()


def parts_of(case: str) -> Counter[str]:
    parts = yaml.safe_load((CASES / case / "expected" / "resources.yaml").read_text())
    return Counter(part["object"]["kind"] for part in parts.values())


def test_a_review_app_has_the_parts_of_the_document() -> None:
    assert parts_of("appenvironment/first-order") == {
        **dict.fromkeys(("Cluster", "NodePool", "DatabaseInstance", "Database", "User"), 1),
        "Bucket": 1,
        "Secret": 2,
    }


@pytest.mark.parametrize(
    ("case", "frontends", "database"),
    [
        ("first-order", 1, ("StatefulSet", "PersistentVolumeClaim", "NetworkPolicy")),
        ("several-frontends", 3, ("StatefulSet", "PersistentVolumeClaim", "NetworkPolicy")),
        ("rds-staging", 1, ("Instance",)),
    ],
)
def test_an_environment_has_five_resources_for_each_page(
    case: str, frontends: int, database: tuple[str, ...]
) -> None:
    pages = (
        *("Bucket", "BucketOwnershipControls", "BucketPolicy"),
        *("BucketPublicAccessBlock", "BucketWebsiteConfiguration"),
    )

    assert parts_of(f"unifiedenvironment/{case}") == {
        **dict.fromkeys(("Namespace", "ResourceQuota", "Secret", "Deployment"), 1),
        **dict.fromkeys(database, 1),
        **dict.fromkeys(pages, frontends),
        "Service": 1 if database == ("Instance",) else 2,
    }


def test_the_example_prices_every_kind_that_the_kits_compose() -> None:
    """An order whose kind has no price is refused where a team has a cost limit."""
    table = yaml.safe_load((PACK / "gitops" / "prices.example.yaml").read_text())
    priced = {entry["kind"] for entry in table["spec"]["prices"]}
    kits = [yaml.safe_load(path.read_text()) for path in PACK.glob("templates/*/kit.yaml")]
    composed = {entry["kind"] for kit in kits for entry in kit["spec"]["composes"]}

    assert composed <= priced
