"""What CI runs after a change: everything that could notice it, and no more than that."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.affected import ROOMS, decide
from scripts.houses import HOUSES

ROOT = Path(__file__).parents[3]
ALL = (
    *(f"{house.folder}/tests" for house in HOUSES if house.folder != "src"),
    "tests",
)
FORGE = "extras/standins/src/orderkit_standins/forge/git_read.py"


def test_the_rooms_are_there() -> None:
    assert [room for room in ROOMS if not (ROOT / room).is_dir()] == []


@pytest.mark.parametrize(
    "path",
    [
        *("requirements.lock", "scripts/test.sh", "conftest.py", "tests/support/labkit.py"),
        *("packs/agents/stations/datasetagent/station.py", "packs/README.md", "lab/daemons.py"),
    ],
)
def test_what_may_reach_all_runs_all(path: str) -> None:
    decision = decide(["docs/plans.md", path])

    assert {*decision.tests} == {*ALL}
    assert decision.journeys
    assert path in decision.reason


def test_a_change_of_the_embedded_forge_leaves_the_libraries_alone() -> None:
    decision = decide([FORGE])

    assert decision.journeys
    assert "--ignore=tests/conformance/forge" not in decision.tests
    assert "--ignore=extras/standins/tests" not in decision.tests
    assert {
        *("libs/yamlfiles/tests", "tests/conformance/yamledit", "tests/conformance/render"),
        "extras/workshop/tests",
    } <= {*decision.left_out}
    ignored = {f"--ignore={room}" for room in decision.left_out if room.startswith("tests/")}
    assert {*decision.tests} == ({*ALL} - {*decision.left_out}) | ignored


def test_a_change_of_the_lowest_library_runs_all() -> None:
    decision = decide(["libs/ground/src/ground/names.py"])

    assert {*decision.tests} == {*ALL}
    assert decision.left_out == ()


def test_a_change_of_a_library_runs_it_and_all_above_it() -> None:
    left_out = decide(["libs/softwaretemplates/src/softwaretemplates/template.py"]).left_out

    assert {*left_out} == {
        *(f"libs/{name}/tests" for name in ("ground", "yamlfiles", "kubeschema")),
        "tests/conformance/yamledit",
    }


def test_tests_alone_run_alone_and_pages_with_what_reads_them() -> None:
    assert decide(["libs/ground/tests/test_waves.py"]).tests == ("libs/ground/tests",)
    pages = decide(["docs/plans.md", "docs/plan.svg"])
    assert "tests/component/pages" in pages.tests
    assert not pages.journeys
    assert all((ROOT / test).exists() for test in pages.tests)
