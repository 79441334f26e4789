"""What a changed kit does to all its living orders, and plans from a recorded snapshot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bays import TEAM, Bay, ask, new_bay, set_
from changingpack import changing_pack
from commands import Command, Done

from ground.errors import NotFoundError
from ground.objects.kube_objects import Manifest
from orderkit.cli.main import run
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.plan.fleet_orders import OrderSelection, read_orders
from orderkit.flows.platform import Platform, published_kit
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.cluster import EmbeddedCluster

STATION = Path("stations", "garage", "bay.py")
COMPOSITION = Path("gitops", "apis", "garage", "composition.yaml")
DEFINITION = Path("gitops", "apis", "garage", "definition.yaml")


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """The platform's pack, to be changed."""
    return changing_pack(tmp_path / "candidate")


@pytest.fixture
def living(platform: Platform) -> Bay:
    """An order that is assembled, with a lift."""
    bay = new_bay(platform)
    done = ask(bay, set_("pit", {"lift": True}))
    assert done.commit is not None
    assert await_commit(platform, bay.order, done.commit, timeout_s=180).ready
    return bay


Planned = Callable[..., Done]


@pytest.fixture
def planned(orderkit: Command, pack: Path, living: Bay) -> Planned:
    """Run the plan of the candidate for the living order."""

    def command(*arguments: str) -> Done:
        return orderkit(
            "plan", "--kit", "garage", "--pack", str(pack), "--order", living.order, *arguments
        )

    return command


def edit(pack: Path, file: Path, old: str, new: str) -> None:
    text = (pack / file).read_text()
    assert old in text
    (pack / file).write_text(text.replace(old, new))


def test_the_pack_as_published_changes_nothing(planned: Planned, living: Bay) -> None:
    done = planned("--json")

    (order,) = done.json["fleet"]["orders"]
    assert done.code == 0, done.out
    assert (order["order"], order["team"], order["source"]) == (living.order, TEAM, "cluster")
    assert order["plan"]["unknowns"] == []


def test_a_station_that_drops_a_part_and_writes_another_value(
    planned: Planned, pack: Path, living: Bay
) -> None:
    edit(pack, Path("stations/garage/station.py"), 'if pit.get("lift"):', 'if pit.get("hoist"):')
    edit(pack, STATION, '"team": team}', '"team": team, "since": "2026"}')

    done = planned()

    assert done.code == 10
    assert "garage: 1 order: 1 changed, 1 danger in 1 order" in done.out
    assert f"  - Namespace lift   1 order ({living.order})" in done.out
    assert "data.since (not set) → 2026" in done.out
    assert "is deleted: everything in it is deleted too (data-loss)" in done.out


def test_a_default_that_changes_stays_as_it_is_stored(planned: Planned, pack: Path) -> None:
    edit(pack, DEFINITION, "stage:\n", "stage:\n                default: stage2\n")

    assert planned().code == 0


def test_orders_that_cannot_be_read_are_named(
    orderkit: Command, pack: Path, platform: Platform
) -> None:
    good, broken, gone = (new_bay(platform) for _ in range(3))
    broken.edit("spec:", "spec: [")
    platform.forge.delete_repo(gone.repo)
    orders = [part for bay in (good, broken, gone) for part in ("--order", bay.order)]

    done = orderkit("plan", "--kit", "garage", "--pack", str(pack), *orders, "--offline")

    assert done.code == 1
    assert "garage: 3 orders: 1 unchanged, 2 unknown" in done.out
    assert f"no plan     {broken.order}: {broken.repo}/manifests/xgarage.yaml: line" in done.out
    assert (
        f"no plan     {gone.order}: {gone.repo} has no .orderkit/order.yaml, or we may not"
        in done.out
    )
    assert "the cluster was not asked" in done.out


@pytest.mark.parametrize(
    ("crds", "notes"),
    [
        ([], ["the cluster could not be asked: no matches for kind "]),
        (argocd_crds(), []),
    ],
    ids=["no Argo CD", "no XRs"],
)
def test_orders_that_the_cluster_does_not_tell_are_read_from_git(
    platform: Platform, quiet_bay: Bay, tmp_path: Path, crds: list[Manifest], notes: list[str]
) -> None:
    kit, selection = published_kit(platform, "garage"), OrderSelection((quiet_bay.order,))
    with closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster:
        for crd in crds:
            cluster.apply(crd, owner="test")
        reading = read_orders(platform, kit, selection, cluster)

    (order,) = reading.orders
    assert order.xr is not None
    assert order.xr["spec"] == quiet_bay.spec()
    assert [note[: len(said)] for note, said in zip(reading.notes, notes, strict=True)] == notes


def test_another_version_of_the_published_pack_can_be_the_base(
    planned: Planned,
) -> None:
    assert planned("--base", "main").code == 0
    missing = planned("--base", "f" * 40)
    assert missing.code == 1
    assert "no commit" in missing.err


def test_a_team_or_order_that_is_not_there_is_an_error(orderkit: Command, pack: Path) -> None:
    plan = ("plan", "--kit", "garage", "--pack", str(pack))

    assert "no team 'nobody' in the ledger" in orderkit(*plan, "--team", "nobody").err
    assert orderkit(*plan, "--order", "garage-nothing").code == NotFoundError.exit_code


def test_what_was_recorded_plans_the_same_without_a_platform(
    orderkit: Command, pack: Path, living: Bay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, again = tmp_path / "plan.json", tmp_path / "again.json"
    edits = (living.order, "stage=stage3", "pit.lift=false")
    there = orderkit("plan", *edits, "--json", "--record", str(file))
    orderkit("plan", *edits, "--record", str(again))

    code = run(["plan", *edits, "--json", "--snapshot", str(file), "--pack", str(pack)])
    offline = json.loads(capsys.readouterr().out)

    assert there.code == code == 10
    assert offline["plan"]["unknowns"] == [
        "OpenAPI documents are in no snapshot: built-in kinds are judged by a table of ours"
    ]
    assert _told(offline) == _told(there.json)
    assert file.read_bytes() == again.read_bytes()


def _told(found: dict[str, Any]) -> Any:
    keys = ("fields", "resources", "dangers", "faults", "waves", "unchanged")
    return {key: found["plan"][key] for key in keys}, found["summary"]


def test_a_recorded_fleet_is_planned_with_a_pack_of_today(
    planned: Planned, living: Bay, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fleet.json"
    assert planned("--record", str(file)).code == 0
    committed(pack)
    edit(pack, STATION, '"team": team}', '"team": team, "since": "2026"}')

    code = run(["plan", "--kit", "garage", "--snapshot", str(file), "--pack", str(pack), "--json"])

    found = json.loads(capsys.readouterr().out)
    assert code == 10
    assert [each["order"] for each in found["fleet"]["orders"]] == [living.order]
    assert found["fleet"]["orders"][0]["plan"]["summary"] == "1 changed, 2 unchanged"


def test_a_snapshot_without_an_order_of_the_team_is_refused(
    planned: Planned, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fleet.json"
    planned("--record", str(file))
    committed(pack)
    plan = ["plan", "--kit", "garage", "--snapshot", str(file), "--pack", str(pack)]
    capsys.readouterr()

    assert run([*plan, "--team", "nobody"]) == 1
    assert "the snapshot has no order of kit 'garage'" in capsys.readouterr().err


def test_a_snapshot_is_not_planned_with_another_xr_or_a_pack_that_composes_nothing(
    orderkit: Command, living: Bay, pack: Path, tmp_path: Path
) -> None:
    file, other = tmp_path / "plan.json", tmp_path / "xr.yaml"
    orderkit("plan", living.order, "stage=stage3", "--record", str(file))
    other.write_text(living.text().replace(f'name: "{living.order}"', 'name: "garage-other"'))
    replay = ("plan", living.order, "--snapshot", str(file), "--pack", str(pack))

    renamed = orderkit(*replay, "--file", str(other))
    edit(pack, COMPOSITION, "kind: XGarage", "kind: XShed")
    empty = orderkit(*replay, "stage=stage3")

    assert (renamed.code, "is not the XR of the snapshot" in renamed.err) == (4, True), renamed.err
    assert (empty.code, "has no Composition in the pack" in empty.err) == (1, True), empty.err


def test_a_snapshot_of_another_order_is_refused(
    orderkit: Command, living: Bay, pack: Path, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    orderkit("plan", living.order, "stage=stage3", "--record", str(file))

    done = orderkit(
        "plan", "garage-other", "stage=stage3", "--snapshot", str(file), "--pack", str(pack)
    )

    assert done.code == 2
    assert f"'garage-other' is not in it: it is of {living.order}" in done.err


def committed(pack: Path) -> None:
    """Make the folder a git repository with everything committed."""
    import subprocess

    shutil.rmtree(pack / ".git", ignore_errors=True)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "pack"]):
        subprocess.run(["git", *arguments], cwd=pack, check=True)
