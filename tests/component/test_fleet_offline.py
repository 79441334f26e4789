"""A changed kit over XRs in a folder: no platform, and stations of two packs kept apart."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from changingpack import changing_pack
from commands import Done

from orderkit.cli.main import run

STATION = Path("stations", "garage", "bay.py")
COMPOSITION = Path("gitops", "apis", "garage", "composition.yaml")
DEFINITION = Path("gitops", "apis", "garage", "definition.yaml")
XR = """apiVersion: blog.opsbogus.dev/v1alpha1
kind: XGarage
metadata:
  name: garage-{name}
spec:
  teamName: {name}
  stage: stage1
{more}"""


@dataclass
class Bench:
    """A pack under git, and a folder of XRs."""

    pack: Path
    xrs: Path
    capsys: pytest.CaptureFixture[str]

    def order(self, name: str, more: str = "") -> None:
        (self.xrs / f"{name}.yaml").write_text(XR.format(name=name, more=more))

    def edit(self, file: Path, old: str, new: str) -> None:
        text = (self.pack / file).read_text()
        assert old in text
        (self.pack / file).write_text(text.replace(old, new))

    def give_note_a_default(self, value: str) -> None:
        """Make the XRD fill the field ``note`` in."""
        path = self.pack / DEFINITION
        found = yaml.safe_load(path.read_text())
        schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["note"]["default"] = value
        path.write_text(yaml.safe_dump(found, sort_keys=False))

    def plan(self, *arguments: str) -> Done:
        self.capsys.readouterr()
        where = ("--pack", str(self.pack), "--xrs", str(self.xrs))
        code = run(["plan", "--kit", "garage", *where, *arguments])
        said = self.capsys.readouterr()
        return Done(code, said.out, said.err)

    def fleet(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = self.plan("--json", *arguments).json["fleet"]
        return found

    def commit(self) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "pack"]):
            subprocess.run(["git", *arguments], cwd=self.pack, check=True)


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    made = Bench(changing_pack(tmp_path / "pack"), tmp_path / "xrs", capsys)
    made.commit()
    made.xrs.mkdir()
    made.order("one")
    made.order("two", "  pit: {lift: true}\n")
    return made


def test_nothing_changes_without_an_edit(bench: Bench) -> None:
    done = bench.plan()

    assert done.code == 0
    assert "garage: 2 orders: 2 unchanged" in done.out


def test_a_dropped_step_takes_what_it_made_from_all(bench: Bench) -> None:
    text = (bench.pack / COMPOSITION).read_text()
    begin, end = text.index("    - step: garage"), text.index("    # always last")
    (bench.pack / COMPOSITION).write_text(text[:begin] + text[end:])

    found = bench.fleet()

    removed = {f["path"]: f["orders"] for f in found["folds"] if f.get("action") == "removed"}
    assert removed == {
        "namespace": ["garage-one", "garage-two"],
        "spec-sheet": ["garage-one", "garage-two"],
        "lift": ["garage-two"],
    }
    told = Counter(
        danger["code"] for order in found["orders"] for danger in order["plan"]["dangers"]
    )
    assert told == {"data-loss": 3, "emptied": 2, "status-lost": 4}


PRICES = """apiVersion: orderkit.dev/v1alpha1
kind: PriceTable
metadata: {name: ours}
spec:
  currency: EUR
  source: a test
  date: 2026-08-01
  prices:
    - {kind: XGarage, price: 40}
    - {kind: ConfigMap, price: '0.50'}
    - {kind: ConfigMap, title: pages, per: data.pages, price: 1}
"""


def test_what_all_orders_cost_is_told_by_the_packs_prices_or_others(bench: Bench) -> None:
    """Two garages of 40; their two sheets, 50 cents each, go."""
    text = (bench.pack / COMPOSITION).read_text()
    begin, end = text.index("    - step: garage"), text.index("    # always last")
    (bench.pack / COMPOSITION).write_text(text[:begin] + text[end:])
    assert bench.fleet()["costs"] is None
    table = bench.pack / "gitops" / "prices.yaml"
    table.write_text(PRICES)
    other = bench.pack.parent / "other.yaml"
    other.write_text(PRICES.replace("40", "50"))

    told, found = bench.plan().out, bench.fleet("--prices", str(other))["costs"]

    assert "  costs       81.00 → 80.00 EUR a month (-1.00), of 2 orders\n" in told
    assert "  prices      ours: a test, 2026-08-01; prices of 2026-08-01 are older than" in told
    assert found["monthly"] == {"before": "101", "after": "100", "difference": "-1"}
    assert (found["orders"], found["notPriced"], found["notReckoned"]) == (2, [], [])
    assert "<summary>Costs: 81.00 → 80.00" in bench.plan("--markdown").out
    table.write_text("kind: PriceTable\n")
    assert "  note        costs are not known: gitops/prices.yaml" in bench.plan().out


def test_what_has_no_price_is_named_once_for_all_orders(bench: Bench) -> None:
    table = bench.pack.parent / "prices.yaml"
    table.write_text(PRICES)

    told = bench.plan("--prices", str(table)).out

    assert "  costs       81.00 EUR a month, of 2 orders\n" in told
    assert "  not priced  Namespace\n" in told
    assert told.count("data.pages is not set") == 2
    assert bench.plan("--prices", str(bench.pack / "pack.yaml")).code == 2


def test_two_versions_of_the_same_module_do_not_meet(bench: Bench) -> None:
    """Also what a station leaves in a module that both sides share stays on its side."""
    mark = "import string\nstring.painted = getattr(string, 'painted', '') + 'x'\n"
    bench.edit(STATION, "from orderkit.stations", mark + "from orderkit.stations")
    bench.edit(STATION, '"team": team}', '"team": team, "paint": string.painted}')
    bench.commit()
    bench.edit(STATION, "string.painted}", "string.painted + '!'}")

    found = bench.fleet()

    (fold,) = (f for f in found["folds"] if f["what"] == "resource")

    assert bench.fleet()["folds"] == found["folds"]
    assert fold["fields"] == [{"field": "data.paint", "from": "x", "to": "x!", "values": 1}]
    assert fold["count"] == 2


def test_a_station_that_never_ends_costs_its_order_only(bench: Bench) -> None:
    bench.edit(
        STATION,
        '    response.merge_status({"namespace"',
        '    while team == "one":\n        pass\n    response.merge_status({"namespace"',
    )
    begun_s = time.monotonic()

    done = bench.plan("--limit", "8")

    assert done.code == 1
    assert "1 unchanged, 1 unknown" in done.out
    assert "garage-one: the stations of the other pack gave no answer within 8 s" in done.out
    assert time.monotonic() - begun_s < 280


def test_a_pack_that_never_answers_is_given_up(bench: Bench) -> None:
    for number in range(2):
        bench.order(f"more-{number}")
    bench.edit(
        STATION,
        "    response = StationResponse",
        "    while True: pass\n    response = StationResponse",
    )

    done = bench.plan("--limit", "3", "--lanes", "1")

    assert done.code == 1
    assert "not tried: the other pack gave 3 orders no answer" in done.out


def test_a_station_that_ends_its_process_costs_its_order_only(bench: Bench) -> None:
    bench.edit(
        STATION,
        '    response.merge_status({"namespace"',
        '    if team == "one":\n        __import__("os")._exit(3)\n'
        '    response.merge_status({"namespace"',
    )

    done = bench.plan()

    assert 'station "garage" was stopped: the child ended' in done.out
    assert "1 unchanged, 1 refused" in done.out


def test_what_the_new_xrd_refuses_is_told_and_what_both_refuse_apart_from_it(bench: Bench) -> None:
    bench.order("odd", "  colour: 7\n")
    bench.order("long", "  note: a note that is longer than ten characters\n")
    bench.edit(DEFINITION, "maxLength: 40", "maxLength: 10")

    done = bench.plan()

    assert done.code == 4
    assert "1 refused" in done.out
    assert "refused     spec.note: " in done.out
    assert "as before   refused by both packs: spec.colour: Invalid value" in done.out
    assert "1 order (garage-odd)" in done.out
    assert "Refused by both packs:" in bench.plan("--markdown").out


def test_a_field_that_both_packs_misspell_is_reported(bench: Bench) -> None:
    bench.edit(STATION, 'data={"stage"', 'dta={}, data={"stage"')
    bench.commit()

    done = bench.plan()

    assert done.code == 0
    assert "2 unchanged" in done.out
    fault = 'spec-sheet.dta: ConfigMap: unknown field "dta"'
    assert f"as before   refused by both packs: {fault}: 2 orders" in done.out


def test_living_orders_keep_an_old_default(bench: Bench) -> None:
    bench.give_note_a_default("none")
    bench.commit()
    bench.order("own", "  note: mine\n")
    bench.give_note_a_default("other")

    done = bench.plan()

    assert done.code == 0
    assert "default     note none → other: 2 orders keep the old value" in done.out


def test_a_field_that_goes_is_refused_only_where_it_is_set(bench: Bench) -> None:
    bench.give_note_a_default("none")
    bench.commit()
    bench.order("own", "  note: mine\n")
    text = (bench.pack / DEFINITION).read_text()
    at = text.index("note:")
    (bench.pack / DEFINITION).write_text(text[:at] + "remark:" + text[at + len("note:") :])
    bench.edit(Path("templates", "garage", "kit.yaml"), "- note\n", "- remark\n")

    verdicts = {each["order"]: each["verdict"] for each in bench.fleet()["orders"]}

    assert verdicts["garage-own"] == "refused"
    assert verdicts["garage-one"] == verdicts["garage-two"] == "changed"


def test_files_that_are_broken_are_named_and_facts_are_found(bench: Bench) -> None:
    (bench.xrs / "bad.yaml").write_text("apiVersion: v1\nkind: [\nmetadata:\n")
    (bench.xrs / "notes.txt").write_text("no manifest")

    done = bench.plan()

    assert done.code == 1
    assert "no plan     bad.yaml: bad.yaml: line" in done.out


def test_a_folder_without_such_xrs_is_an_error(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    done = bench.plan("--xrs", str(tmp_path / "empty"))

    assert done.code == 1
    assert "no file holds an object of XGarage" in done.err


def test_only_the_orders_that_are_asked_for(bench: Bench) -> None:
    assert [o["order"] for o in bench.fleet("--order", "garage-two")["orders"]] == ["garage-two"]
    assert bench.plan("--order", "garage-none").code == 2


def test_files_have_no_teams(bench: Bench) -> None:
    done = bench.plan("--team", "one")

    assert (done.code, "does not work with files" in done.err) == (2, True), done.err


def test_a_pack_that_composes_nothing_for_the_kit_is_refused(bench: Bench) -> None:
    bench.edit(COMPOSITION, "kind: XGarage", "kind: XShed")
    bench.commit()

    done = bench.plan()

    assert (done.code, "kit 'garage' has no Composition in" in done.err) == (1, True), done.err


def test_markdown_and_several_lanes(bench: Bench) -> None:
    for number in range(20):
        bench.order(f"n{number:02d}")
    bench.edit(STATION, '"team": team}', '"team": team, "since": "2026"}')

    done = bench.plan("--markdown", "--lanes", "2")

    assert done.code == 10
    assert "**Plan for garage: 22 orders: 22 changed.**" in done.out
    assert "~ ConfigMap spec-sheet</code> 22 orders (garage-n00, garage-n01" in done.out


def test_no_process_is_left_behind(bench: Bench) -> None:
    bench.plan()

    listed = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "planning.assembler" not in listed.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--kit", "garage", "garage-one"],
        ["plan", "garage-one", "--xrs", "."],
        ["plan", "--kit", "garage", "--xrs", ".", "--record", "x.json"],
        ["plan"],
        ["plan", "garage-one"],
    ],
)
def test_what_does_not_go_together_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    capsys.readouterr()
