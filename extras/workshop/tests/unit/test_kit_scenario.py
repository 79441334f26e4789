"""scenario.yaml, and how what came out is compared with what is expected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from ground.errors import InvalidInputError
from orderkit_workshop.check.scenario import (
    ERROR,
    RESOURCES,
    RefusalStage,
    ScenarioOutcome,
    ScenarioRefusal,
    differences,
    golden,
    read_scenario,
)


@dataclass(frozen=True)
class Broken:
    reason: str
    text: str
    says: str


BROKEN = [
    Broken("no reason", "values: {a: 1}", "'reason' is a required property"),
    Broken("an empty reason", "reason: ' '\nvalues: {a: 1}", "reason"),
    Broken("neither values nor xr", "reason: It matters.", "either values or xr"),
    Broken("values and xr", "reason: It matters.\nvalues: {}\nxr: {}", "either values or xr"),
    Broken("a misspelt key", "reason: It matters.\nvalue: {}", "'value' is not a known key"),
    Broken(
        "a stage that there is not",
        "reason: It matters.\nvalues: {}\nrefused: portal",
        "'portal' is refused",
    ),
    Broken(
        "an observed object without a kind",
        "reason: It matters.\nvalues: {}\nobserved: {a: {apiVersion: v1}}",
        "'kind' is a required property",
    ),
    Broken("no YAML", "reason: [", "is not valid YAML"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.reason)
def test_a_broken_scenario_is_named_with_its_rule(case: Broken) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_scenario(case.text.encode(), name="tests/kits/a/b/scenario.yaml")

    assert f" {case.says}" in f" {caught.value}"
    assert "tests/kits/a/b/scenario.yaml" in str(caught.value)


def test_one_round_is_run_where_parts_exist_already_unless_it_says_otherwise() -> None:
    observed = "observed: {a: {apiVersion: v1, kind: Pod}}"

    def run(more: str) -> str:
        return read_scenario(f"reason: It matters.\nxr: {{}}\n{more}".encode(), name="x").run

    assert run("") == "settle"
    assert run(observed) == "once"
    assert run(f"{observed}\nrun: settle") == "settle"


def test_data_is_compared_as_data_and_files_as_bytes() -> None:
    data = b"# why\na: {b: [1]}\n"
    readme = PurePosixPath("files/README.md")

    assert not differences({RESOURCES: data}, {RESOURCES: b"a:\n  b:\n    - 1\n"})
    found = differences({readme: b"a\n", RESOURCES: data}, {readme: b"a \n", RESOURCES: b"a: 1\n"})
    assert [one.path for one in found] == [readme, RESOURCES]


def test_expected_data_that_is_no_yaml_is_a_difference() -> None:
    assert differences({RESOURCES: b"{"}, {RESOURCES: b"a: 1\n"})


def test_a_diff_says_from_what_to_what_also_without_a_last_newline() -> None:
    (one,) = differences({ERROR: b"old"}, {ERROR: b"new\n"})
    (gone,) = differences({ERROR: b"old\n"}, {})

    assert one.diff().splitlines() == [
        "--- expected/error.txt",
        "+++ what came out",
        "@@ -1 +1 @@",
        "-old",
        "\\ No newline at end of file",
        "+new",
    ]
    assert "+++ (nothing came out)" in gone.diff()


def test_a_refusal_is_recorded_with_its_hint_and_nothing_else() -> None:
    refused = ScenarioOutcome(
        ScenarioRefusal(RefusalStage.FORM, "no", "say yes"), {PurePosixPath("a"): b"b"}
    )

    assert golden(refused) == {ERROR: b"no\nhint: say yes\n"}
