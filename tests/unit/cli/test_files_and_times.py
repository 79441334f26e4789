"""Files and times that commands take from this machine: what is read, and what is refused."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from tests.unit.plan.test_price_lists import FRANKFURT, MACHINE, dimension, offer

from ground.errors import InvalidInputError
from orderkit.adapters.folders.plan_files import load_snapshot, read_schemas, save_snapshot
from orderkit.cli.main import run
from orderkit.cli.views.lease_views import moment
from orderkit.core.plan.price_table import read_prices
from orderkit.core.plan.snapshot import PlanSnapshot

NOW = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
MAP = {
    "apiVersion": "orderkit.dev/v1alpha1",
    "kind": "PriceMap",
    "metadata": {"name": "frankfurt"},
    "spec": {"prices": [MACHINE]},
}


def test_a_price_table_is_printed_as_the_platform_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices, mapped = tmp_path / "index.json", tmp_path / "map.yaml"
    prices.write_bytes(offer((FRANKFURT, [dimension("0.1")])))
    mapped.write_text(yaml.safe_dump(MAP))
    command = ["prices", "import", "aws", str(prices), "--map", str(mapped)]

    code, printed = run(command), capsys.readouterr()
    json_code, as_json = run([*command, "--json"]), capsys.readouterr()

    assert (code, json_code) == (0, 0), printed.err + as_json.err
    assert json.loads(as_json.out)["table"] == yaml.safe_load(printed.out)
    assert read_prices(printed.out, name="prices.yaml").currency == "USD"


def test_a_map_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices, mapped = tmp_path / "index.json", tmp_path / "map.yaml"
    prices.write_bytes(offer((FRANKFURT, [dimension("0.1")])))
    mapped.write_text("items: [")

    code = run(["prices", "import", "aws", str(prices), "--map", str(mapped)])

    assert code == 2
    assert str(mapped) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("+9h", datetime(2026, 11, 24, 17, 0, tzinfo=UTC)),
        ("2027-01-31T12:00:00Z", datetime(2027, 1, 31, 12, 0, tzinfo=UTC)),
        ("2027-01-31T12:00:00", datetime(2027, 1, 31, 12, 0, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_time_or_lies_after_now(text: str, time: datetime) -> None:
    assert moment(text, NOW) == time


@pytest.mark.parametrize("text", ["tomorrow", "+", "+9", "9h", ""])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        moment(text, NOW)

    assert raised.value.field == "--at"


def test_schemas_are_neither_links_nor_huge(tmp_path: Path) -> None:
    link, huge = tmp_path / "link", tmp_path / "huge"
    for folder in (link, huge):
        folder.mkdir()
        (folder / "README.md").write_text("no schema")
    assert not read_schemas(link)
    (link / "a.yaml").symlink_to("/etc/hostname")
    (huge / "a.yaml").touch()
    os.truncate(huge / "a.yaml", 20_000_001)

    for folder in (link, huge):
        with pytest.raises(InvalidInputError, match="symbolic link, or larger than 20 MB"):
            read_schemas(folder)


def test_a_snapshot_that_cannot_be_read_or_written_is_refused_by_its_option(tmp_path: Path) -> None:
    binary, huge = tmp_path / "binary", tmp_path / "huge"
    binary.write_bytes(b"\xff\xfe")
    huge.touch()
    os.truncate(huge, 500_000_001)
    empty = PlanSnapshot((), "c0ffee", {}, ())

    for file, rule in ((binary, "cannot be read"), (huge, "larger"), (tmp_path / "no", "No such")):
        with pytest.raises(InvalidInputError, match=rule) as raised:
            load_snapshot(file)
        assert raised.value.field == "--snapshot"
    with pytest.raises(InvalidInputError, match="cannot be written") as raised:
        save_snapshot(empty, tmp_path / "no" / "folder")
    assert raised.value.field == "--record"
