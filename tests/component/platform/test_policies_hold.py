"""What a person gets who passes the form by: a refusal, and the order as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Command
from roguery import deliver_main

from ground.errors import OrderkitError
from ground.names import RepoId
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.demo.narration import git
from orderkit_standins.serve_platform import Running

XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")


@pytest.fixture
def order(orderkit: Command, team: str) -> str:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    return f"garage-{team}"


def test_a_forged_team_in_git_is_refused_and_told(
    orderkit: Command, platform: Running, order: str, team: str, tmp_path: Path
) -> None:
    before = xr(platform, order)

    edit(platform, team, tmp_path, f'teamName: "{team}"', 'teamName: "rx7"')

    told = reason(orderkit, order)
    assert "is refused: the field names the order or its team" in told
    assert "but it names the order's team and never changes" in told
    assert xr(platform, order)["spec"]["teamName"] == team
    assert xr(platform, order)["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_second_xr_in_the_repository_is_refused(
    orderkit: Command, platform: Running, order: str, team: str, tmp_path: Path
) -> None:
    clone = cloned(platform, team, tmp_path)
    text = (clone / "manifests" / "xgarage.yaml").read_text()
    (clone / "manifests" / "second.yaml").write_text(text.replace(team, "victim"))
    git(platform, clone, "add", "--all")
    pushed(platform, team, clone)

    told = reason(orderkit, order)
    assert f"order {order} delivers one XGarage and nothing else" in told
    assert f'Application "{order}" delivers XGarage "garage-victim"' in told
    assert platform.platform.cluster.get(ObjectKey(XGARAGE, "garage-victim")) is None


def test_nobody_creates_an_order_past_its_repository(platform: Running) -> None:
    made: Manifest = {
        "apiVersion": XGARAGE.api_version,
        "kind": XGARAGE.kind,
        "metadata": {"name": "garage-sneaky"},
        "spec": {"teamName": "sneaky", "stage": "stage1"},
    }

    with pytest.raises(OrderkitError, match="no Application delivers XGarage"):
        platform.platform.cluster.create(made, owner="kubectl")


def xr(platform: Running, order: str) -> dict[str, Any]:
    found = platform.platform.cluster.get(ObjectKey(XGARAGE, order))
    assert found is not None
    return found


def reason(orderkit: Command, order: str) -> str:
    """Wait until the order fails; return what its status says, and the API server's refusal."""
    found = until(
        SystemClock(),
        lambda: orderkit("status", order, "--json").json,
        lambda status: status["phase"] == "Failing",
        timeout_s=90,
        goal="the refusal",
    )
    return f"{found['reason']} {orderkit('events', order).out}"


def cloned(platform: Running, team: str, folder: Path) -> Path:
    clone = folder / "clone"
    url = f"{platform.settings.forge.url}/{team}/garage-{team}.git"
    git(platform, folder, "clone", "--quiet", url, str(clone))
    return clone


def pushed(platform: Running, team: str, clone: Path) -> None:
    git(platform, clone, "commit", "--quiet", "--all", "--message", "by hand")
    git(platform, clone, "push", "--quiet", "origin", "main")
    deliver_main(platform.platform, RepoId(team, f"garage-{team}"))


def edit(platform: Running, team: str, folder: Path, old: str, new: str) -> None:
    clone = cloned(platform, team, folder)
    path = clone / "manifests" / "xgarage.yaml"
    text = path.read_text()
    assert old in text, text
    path.write_text(text.replace(old, new))
    pushed(platform, team, clone)
