"""
``orderkit bootstrap`` killed by SIGKILL at random moments and repeated: the same end each time.

The command is a process of its own; the platform that it works on lives on. Each platform is
bootstrapped from nothing and the command killed several times before it may end. The seed of
passwords, which nothing could restore, is tried at both sides of its one write.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from compositions.resource_builders import SEED_NAME, SEED_NAMESPACE, is_seed
from ground.names import RepoId
from ground.objects.kube_objects import APPLICATION, ObjectKey, metadata
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder, reference_pack
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.install.bootstrapping import BootstrapRequest, StepVerdict, plan
from orderkit.flows.install.pack_rendering import values_of
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.team.connections import SECRET

from .conftest import Bare, bare

if TYPE_CHECKING:
    from chances import Chances

PLATFORMS, KILLS = (1, 25), (2, 2)
"""In a short run and a full one: how many, and how often each is killed; 50 kills in all."""
BUSY_S = (0.4, 4.0)
"""Between these the command does its work on a free machine."""
TEMPLATES = 4
SEED = ObjectKey(SECRET, SEED_NAME, SEED_NAMESPACE)


@pytest.mark.timeout(900)
def test_a_killed_bootstrap_is_finished_by_the_same_command(
    tmp_path: Path, chances: Chances
) -> None:
    choose = chances.random("bootstrap")
    for number in range(chances.count(*PLATFORMS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with contextlib.contextmanager(bare)(folder) as site:
            file = site.written("platform")
            for _ in range(chances.count(*KILLS)):
                _killed_after(file, choose.uniform(*BUSY_S))
            assert _bootstrap(file).wait(240) == 0, (folder / "log").read_text()
            _is_whole(site)


def _bootstrap(file: Path) -> subprocess.Popen[bytes]:
    with (file.parent / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "orderkit", "bootstrap", "--platform", str(file)],
            stdout=log,
            stderr=log,
        )


def _killed_after(file: Path, delay_s: float) -> None:
    process = _bootstrap(file)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(delay_s)
    process.send_signal(signal.SIGKILL)
    process.wait()


def _is_whole(site: Bare) -> None:
    """Assert that everything is there once, and nothing of the probe but its tombstones."""
    platform, forge = site.platform, site.platform.forge
    _until_gone(site)
    assert forge.repo(RepoId("ae86", "garage-ae86")) is None
    verdicts = {step.step: step.verdict for step in plan(platform, _request(site))}
    assert set(verdicts.values()) == {StepVerdict.DONE}, verdicts
    written = [c for c in forge.commits(platform.pack_repo) if not c.operation.endswith("-noted")]
    assert len(written) == 1
    for path in ("README.md", "teams/ae86.yaml"):
        assert len(forge.commits(platform.ledger, path=PurePosixPath(path))) == 1, path
    files = {str(path) for path in ledger_snapshot(platform).blobs if path.parts[0] != "data"}
    assert files == {
        "README.md",
        "teams/.gitkeep",
        "teams/ae86.yaml",
        "apps/ae86/.gitkeep",
        "signing-keys.yaml",
    }
    targets = [location.target for location in platform.catalog.locations()]
    assert len(targets) == len(set(targets)) == TEMPLATES
    layers = {name.removeprefix("layer ") for name in verdicts if name.startswith("layer ")}
    names = {metadata(each)["name"] for each in platform.cluster.list(APPLICATION).items}
    assert names == {"root", "team-ae86", *layers}


def _request(site: Bare) -> BootstrapRequest:
    files = read_folder(reference_pack())
    values = values_of(site.settings, pack_commit(reference_pack(), files))
    return BootstrapRequest(files, values, "user:default/test", installation=site.settings)


def _until_gone(site: Bare) -> None:
    """The team's Application removes an ended order's a moment after the command saw it go."""
    deadline = time.monotonic() + 120
    while site.platform.cluster.get(application_key("garage-ae86")) is not None:
        assert time.monotonic() < deadline, "the probe's Application stays"
        time.sleep(0.1)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_seed_whose_process_dies_is_drawn_once(site: Bare, side: str) -> None:
    drawn, cluster = side == "after", site.platform.cluster
    cluster.delete(SEED)

    assert _draws(site, 1, side).returncode == -signal.SIGKILL
    left = cluster.get(SEED)
    again = _draws(site, 0, side)

    assert (left is not None) is drawn
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.splitlines() == ([] if drawn else ["cluster create"])
    assert is_seed(cluster.get(SEED) or {})
    assert left in (None, cluster.get(SEED))


def _draws(site: Bare, at: int, side: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the seed in a process that dies at its write, or never (0)."""
    file = site.written("platform")
    return subprocess.run(
        [sys.executable, "-m", "dyingend", str(file), "", str(at), side, "seed", ""],
        cwd=Path(__file__).parents[2] / "support",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
