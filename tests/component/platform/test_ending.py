"""The end of an order while the world goes on around it."""

from __future__ import annotations

from pathlib import PurePosixPath

from commands import Command

from orderkit.cli.running import Running
from orderkit.core.names import OrderId, RepoId, TeamName
from orderkit.core.objects import CONFIG_MAP, ObjectKey
from orderkit.flows.destroying import EndRequest, destroy
from orderkit.flows.registering import Registration, register
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation

XR = PurePosixPath("manifests/xgarage.yaml")
KEEP = PurePosixPath("manifests/.gitkeep")
EVE = "user:default/eve"


def test_what_is_assembled_while_the_end_mark_travels_is_seen_to_go_too(
    orderkit: Command, platform: Running, team: str
) -> None:
    """Somebody pushes the XR after the end looked at what there is and before it empties."""
    xr = register_without_manifests(orderkit, platform, team)
    sheet = ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{team}")

    def push_late(step: str, _: str) -> None:
        if step != "marked":
            return
        write(platform, RepoId(team, f"garage-{team}"), {XR: xr})
        until(
            SystemClock(),
            lambda: platform.platform.cluster.get(sheet),
            lambda found: found is not None,
            timeout_s=20,
            what="the late assembly",
        )

    ended = destroy(platform.platform, EndRequest(f"garage-{team}", EVE), on_step=push_late)

    assert sheet in ended.record.must_be_gone
    assert platform.platform.cluster.get(sheet) is None


def register_without_manifests(orderkit: Command, platform: Running, team: str) -> bytes:
    """Enter an order that holds no XR yet; return the XR that belongs there."""
    donor = f"{team}-donor"
    assert orderkit("team", "add", donor).code == 0
    assert orderkit("order", "garage", f"team_name={donor}", "stage=stage2").code == 0
    forge, source = platform.platform.forge, RepoId(donor, f"garage-{donor}")
    head = forge.head(source)
    assert head is not None
    found = {path: forge.read(source, path, head) for path in forge.tree(source, head)}
    files = {
        path: each.data.replace(donor.encode(), team.encode())
        for path, each in found.items()
        if each
    }
    xr = files.pop(XR)
    repo = RepoId(team, f"garage-{team}")
    forge.ensure_repo(repo, description="")
    write(platform, repo, {**files, KEEP: b""})
    register(
        platform.platform, Registration(OrderId(f"garage-{team}"), "garage", TeamName(team), EVE)
    )
    return xr


def write(platform: Running, repo: RepoId, files: dict[PurePosixPath, bytes]) -> None:
    changes = [FileChange(path, data, None) for path, data in files.items()]
    platform.platform.forge.write(
        repo, changes, Operation(f"by-hand-{repo}-{len(files)}", EVE, "by hand")
    )
