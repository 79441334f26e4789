"""``orderkit kit test`` on the reference pack and on copies of it that somebody broke."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from commands import Done

from orderkit.adapters.folders.pack_folder import ROOMS, reference_pack
from orderkit.cli.main import run

KitTest = Callable[..., Done]
ORDER = "tests/kits/garage/first-order"
REFUSED = "tests/kits/garage/team-in-capitals"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return a copy of the reference pack with two of its scenarios."""
    for room in (*ROOMS, ORDER, REFUSED):
        if (reference_pack() / room).exists():
            shutil.copytree(reference_pack() / room, tmp_path / room)
    shutil.copy(reference_pack() / "pack.yaml", tmp_path)
    return tmp_path


@pytest.fixture
def kit_test(pack: Path, capsys: pytest.CaptureFixture[str]) -> KitTest:
    def command(*arguments: str) -> Done:
        code = run(["kit", "test", "--pack", str(pack), *arguments])
        return Done(code, *capsys.readouterr())

    return command


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_reference_packs_scenarios_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kit", "test", "--pack", str(reference_pack()), "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "orderkit.kit-test/v1"
    assert len(found["cases"]) == found["counts"]["passed"] >= 9
    assert not found["untested"]


def test_a_changed_station_fails_with_a_diff_that_names_file_and_lines(
    pack: Path, kit_test: KitTest
) -> None:
    edit(pack / "stations/garage/station.py", '{"stage": stage, "team"', '{"kit": stage, "team"')

    done = kit_test()

    assert done.code == 1
    assert "failed   garage/first-order\n" in done.out
    assert "passed   garage/team-in-capitals\n" in done.out
    assert "--- expected/resources.yaml" in done.out
    assert "-      stage: stage2\n" in done.out
    assert "+      kit: stage2\n" in done.out
    assert "why it matters: A team's first order" in done.out
    assert "2 scenarios: 1 passed, 1 failed" in done.err


@pytest.mark.parametrize(
    ("written", "wrong", "told"),
    [
        ('"stage": stage})', '"stage": 3})', ["the status cannot be written: status.stage: "]),
        (
            'data={"stage"',
            'dta={"stage"',
            ["cannot be applied: ConfigMap: dta: unknown field", "did you mean 'data'?"],
        ),
    ],
    ids=["a status that the XRD does not allow", "an object that does not fit its schema"],
)
def test_what_the_cluster_would_refuse_is_told(
    written: str, wrong: str, told: list[str], pack: Path, kit_test: KitTest
) -> None:
    edit(pack / "stations/garage/station.py", written, wrong)

    done = kit_test("garage")

    assert done.code == 1
    assert [text for text in told if text not in done.out] == []


def test_a_changed_skeleton_fails_and_update_makes_it_what_is_expected(
    pack: Path, kit_test: KitTest
) -> None:
    (pack / "templates/garage/skeleton/NOTES.md").write_text("Of ${{ values.order }}.\n")
    (pack / ORDER / "expected/files/gone.md").write_text("no longer\n")

    failed = kit_test("--json")
    updated = kit_test("--update")

    (case,) = [one for one in failed.json["cases"] if one["result"] == "failed"]
    assert [one["file"] for one in case["differences"]] == ["files/NOTES.md", "files/gone.md"]
    assert updated.code == 0
    assert "wrote expected/files/NOTES.md" in updated.out
    assert "removed expected/files/gone.md" in updated.out
    assert (pack / ORDER / "expected/files/NOTES.md").read_text() == "Of garage-ae86.\n"
    assert kit_test().code == 0


@dataclass(frozen=True)
class Contradiction:
    reason: str
    file: str
    old: str
    new: str
    says: str


CONTRADICTIONS = [
    Contradiction(
        "what must be refused is not",
        f"{REFUSED}/scenario.yaml",
        "AE86",
        "ae86",
        "was not refused, but must be (refused: form)",
    ),
    Contradiction(
        "what must not be refused is",
        f"{ORDER}/scenario.yaml",
        "stage2",
        "stage9",
        "refused by form: stage: 'stage9' is none of",
    ),
    Contradiction(
        "it is refused elsewhere than it must be",
        f"{REFUSED}/scenario.yaml",
        "refused: form",
        "refused: pipeline",
        "it must be refused by pipeline",
    ),
    Contradiction(
        "the station fails",
        "stations/garage/station.py",
        'bay = f"garage-{team}"',
        'raise ValueError("no bays left")',
        'refused by pipeline: pipeline step "garage" returned a fatal result: '
        'station "garage" failed: ValueError: no bays left',
    ),
    Contradiction(
        "the station is not deterministic",
        "stations/garage/station.py",
        'response.merge_status({"namespace": bay, "stage": stage})',
        "station.calls = getattr(station, 'calls', 0) + 1\n"
        '    response.merge_status({"calls": station.calls})',
        "never settles",
    ),
    Contradiction(
        "the skeleton cannot be rendered",
        "templates/garage/skeleton/README.md",
        "${{ values.order }}",
        "${{ values.ordre | upper }}",
        "refused by files:",
    ),
    Contradiction(
        "the rendered XR does not fit the XRD",
        "templates/garage/skeleton/manifests/xgarage.yaml",
        "  teamName:",
        "  team:",
        "refused by xr:",
    ),
]


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=lambda case: case.reason)
def test_update_never_writes_against_the_scenarios_own_word(
    case: Contradiction, pack: Path, kit_test: KitTest
) -> None:
    edit(pack / case.file, case.old, case.new)
    before = {path: path.read_bytes() for path in (pack / "tests").rglob("*") if path.is_file()}

    done = kit_test("--update")

    assert done.code == 1
    assert case.says in done.out
    assert before == {p: p.read_bytes() for p in (pack / "tests").rglob("*") if p.is_file()}


def test_a_broken_scenario_does_not_keep_the_others_from_running(
    pack: Path, kit_test: KitTest
) -> None:
    (pack / REFUSED / "scenario.yaml").write_text("values: {}\n")
    (pack / "tests/kits/garage/empty").mkdir()

    done = kit_test()

    assert done.code == 1
    assert "broken   garage/team-in-capitals\n" in done.out
    assert "'reason' is a required property" in done.out
    assert "tests/kits/garage/empty/scenario.yaml: is missing" in done.out
    assert "passed   garage/first-order\n" in done.out


def test_a_broken_kit_and_scenarios_of_a_kit_that_is_gone_are_told(
    pack: Path, kit_test: KitTest
) -> None:
    (pack / "gitops/apis/garage/definition.yaml").write_text("spec: [")
    shutil.copytree(pack / ORDER, pack / "tests/kits/garrage/first")

    done = kit_test()

    assert done.code == 1
    assert done.out.count("broken ") == 3
    assert "definition.yaml" in done.out
    assert "kit 'garrage' is not in pack 'reference' (did you mean 'garage'?)" in done.out


def test_a_scenario_with_values_needs_the_kits_form(pack: Path, kit_test: KitTest) -> None:
    (pack / "templates/garage/template.yaml").unlink()

    done = kit_test()

    assert done.code == 1
    assert "is missing, so there is no form for values" in done.out
    assert "run 'orderkit kit generate', or give an xr" in done.out


def test_a_new_scenario_asks_for_an_update(pack: Path, kit_test: KitTest) -> None:
    shutil.rmtree(pack / ORDER / "expected")

    done = kit_test()

    assert done.code == 1
    assert "there are no expected files yet: run with --update" in done.out


def test_a_pipeline_with_a_step_of_others_is_told_as_not_run(pack: Path, kit_test: KitTest) -> None:
    edit(pack / "gitops/apis/garage/composition.yaml", "function-orderkit", "function-kcl")

    updated = kit_test("--update")
    done = kit_test("--json")

    assert updated.code == done.code == 0
    said = 'step "garage": function-kcl runs in a cluster only'
    assert done.json["cases"][0]["not_run"] == said
    assert f"pipeline not run: {said}" in updated.out
    assert said in (pack / ORDER / "expected/outcome.yaml").read_text()
    assert not (pack / ORDER / "expected/resources.yaml").exists()


def test_kits_and_a_pattern_choose_and_nothing_chosen_is_an_error(kit_test: KitTest) -> None:
    assert len(kit_test("garage", "-k", "capitals", "--json").json["cases"]) == 1
    assert len(kit_test("-k", "*/first-*", "--json").json["cases"]) == 1

    assert kit_test("-k", "nothing").code == 2
    unknown = kit_test("garrage")
    assert (unknown.code, "did you mean 'garage'" in unknown.err) == (1, True)


def test_a_kit_without_scenarios_is_said(pack: Path, kit_test: KitTest) -> None:
    shutil.rmtree(pack / "tests/kits/garage")

    done = kit_test()

    assert done.code == 1
    assert "kit 'garage' has no scenario" in done.err
    assert "0 scenarios: none" in done.err


def test_the_junit_report_has_a_suite_per_kit_and_each_failure(
    pack: Path, kit_test: KitTest, tmp_path: Path
) -> None:
    edit(pack / "stations/garage/station.py", '"team": team', '"team": team + "\\x0b"')
    (pack / REFUSED / "scenario.yaml").write_text("values: {}\n")

    kit_test("--junit", str(tmp_path / "report.xml"))

    (suite,) = ET.parse(tmp_path / "report.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("name"), suite.get("tests")) == ("garage", "2")
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    order, broken = suite
    assert (order.get("classname"), order.get("name")) == ("garage", "first-order")
    assert "+      team: " in (order[0].text or "")
    assert "'reason' is a required property" in str(broken[0].get("message"))
