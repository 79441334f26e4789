"""``orderkit kit generate``: writes what differs, removes what is left over, spares hand-work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli import main


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return a copy of the reference pack, generated."""
    for part in ("templates", "gitops", "stations"):
        shutil.copytree(reference_pack() / part, tmp_path / part)
    shutil.copy(reference_pack() / "pack.yaml", tmp_path / "pack.yaml")
    assert main.run(["kit", "generate", "--pack", str(tmp_path)]) == 0
    return tmp_path


def generate(pack: Path, *flags: str) -> int:
    return main.run(["kit", "generate", "--pack", str(pack), *flags])


def test_a_second_run_changes_nothing(pack: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in pack.rglob("*") if p.is_file()}

    assert generate(pack) == 0
    assert {p: p.stat().st_mtime_ns for p in pack.rglob("*") if p.is_file()} == before
    assert generate(pack, "--check") == 0


def test_check_exits_10_and_writes_nothing(pack: Path) -> None:
    page = pack / "docs/kits/garage.md"
    edited = page.read_text() + "by hand\n"
    page.write_text(edited)

    assert generate(pack, "--check") == 10
    assert page.read_text() == edited


def test_diff_shows_what_would_be_lost(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (pack / "docs/kits/garage.md").open("a") as page:
        page.write("by hand\n")
    capsys.readouterr()

    assert generate(pack, "garage", "--diff") == 10
    assert "-by hand\n" in capsys.readouterr().out


def test_json_names_each_file_and_its_fate(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / "docs/kits/garage.md").unlink()
    capsys.readouterr()

    assert generate(pack, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "orderkit.kit-generate/v1"
    assert {"kit": "garage", "path": "docs/kits/garage.md", "action": "new"} in told["files"]


def test_what_is_no_longer_generated_is_removed(pack: Path) -> None:
    left = pack / "day2/garage/tune.yaml"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text(
        "# Generated from kit.yaml and definition.yaml by `orderkit kit generate garage`.\n"
    )

    assert generate(pack, "--check") == 10
    assert generate(pack) == 0
    assert not left.exists()


def test_a_file_of_a_person_is_never_overwritten(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = pack / "docs/kits/garage.md"
    page.write_text("# My own words\n")

    assert generate(pack) == 4
    assert page.read_text() == "# My own words\n"
    assert "written by hand" in capsys.readouterr().err


def test_argo_cds_settings_written_by_hand_are_refused_with_where_their_keys_belong(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = pack / "gitops/argocd/argocd-cm.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("kind: ConfigMap\n")

    assert generate(pack) == 4
    assert settings.read_text() == "kind: ConfigMap\n"
    assert "gitops/argocd/own" in capsys.readouterr().err


def test_an_unknown_kit_is_named(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate(pack, "garge") == 1
    assert "garage" in capsys.readouterr().err
