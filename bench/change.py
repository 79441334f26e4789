"""
Changes of a living order on the embedded platform, end to end over HTTP.

The platform runs as its own process. The peer is what a person does by hand: clone, edit, commit,
push; nothing is checked there and nobody waits for the delivery.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from bench.figure import Figure, size, timed_s
from bench.platform import REQUESTER, running
from ground.names import RepoId
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import connect, load_settings
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import FieldEdit
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.order import placing
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.order.order_history import history
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import FileChange, MergeStyle, Operation
from orderkit.ports.requesters import Requester

TEAM = "bench"
RUNS, BY_HAND, COMMITS = size((40, 10, 300), (1, 1, 2))
ORDER = f"garage-{TEAM}"
REPO = RepoId(TEAM, ORDER)
STAGES = ("stage1", "stage2", "stage3")


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, _platform(Path(name)) as platform:
        parts: dict[str, list[float]] = defaultdict(list)
        for number in range(1, RUNS + 1):
            _direct(platform, STAGES[number % 3], parts)
        yield Figure(
            f"history.{RUNS}-changes", timed_s(lambda: history(platform, ORDER)) * 1000, "ms"
        )
        _many_commits(platform)
        yield Figure(
            f"history.of-{COMMITS}-commits",
            timed_s(lambda: history(platform, ORDER)) * 1000,
            "ms",
        )
        for number in range(RUNS + 1, 2 * RUNS + 1):
            _reviewed(platform, STAGES[number % 3], parts)
        by_hand = [_by_hand_s(platform, Path(name), STAGES[n % 2]) for n in range(BY_HAND)]
        yield from _shown(parts, statistics.median(by_hand))


def _many_commits(platform: Platform) -> None:
    """Lengthen the history, all of which is searched for copies of signatures."""
    path = PurePosixPath("README.md")
    for number in range(COMMITS):
        revision = platform.forge.read(REPO, path, "main")
        change = FileChange(path, b"%d\n" % number, revision.sha if revision else None)
        platform.forge.write(REPO, [change], Operation(f"note-{number}", REQUESTER, "note"))


@contextlib.contextmanager
def directly(
    folder: Path, prepare: Callable[[Path], object] = lambda _: None
) -> Iterator[Platform]:
    """
    Run a platform whose stage kit changes directly.

    Args:
        prepare: Told the folder of the pack before it is published.
    """
    pack = folder / "pack"
    pack.mkdir()
    shutil.copy(reference_pack() / "pack.yaml", pack)
    for part in ("templates", "stations", "gitops"):
        shutil.copytree(reference_pack() / part, pack / part)
    kit = pack / "templates" / "garage" / "kit.yaml"
    kit.write_text(kit.read_text().replace("how: review", "how: direct"))
    prepare(pack)
    with running(folder / "state", "--pack", str(pack)):
        yield connect(load_settings(str(folder / "state" / "platform.yaml")))


@contextlib.contextmanager
def _platform(folder: Path) -> Iterator[Platform]:
    """Run such a platform, with one order."""
    with directly(folder) as platform:
        add_team(platform, TEAM, requester=REQUESTER)
        wanted = placing.TaskRequest(
            "garage", {"team_name": TEAM, "stage": "stage1"}, Requester(REQUESTER)
        )
        placing.order(platform, wanted)
        yield platform


def _shown(parts: dict[str, list[float]], by_hand_s: float) -> Iterator[Figure]:
    for part in ("dry-run", "unchanged", "committed", "proposed", "merged-to-ready"):
        yield Figure(f"change.{part}.p50", statistics.median(parts[part]) * 1000, "ms")
    whole = parts["end-to-end"]
    yield Figure(
        "change.end-to-end.p50",
        statistics.median(whole) * 1000,
        "ms",
        peer="git clone, edit, commit, push by hand, nothing checked or delivered",
        peer_value=by_hand_s * 1000,
        ratio=statistics.median(whole) / by_hand_s,
    )
    yield Figure("change.end-to-end.p95", sorted(whole)[int(len(whole) * 0.95)] * 1000, "ms")


def _wanted(stage: str, *, how: How | None = None, dry_run: bool = False) -> ChangeRequest:
    return ChangeRequest(
        order=ORDER,
        edits=(FieldEdit("stage", "set", stage),),
        requester=Requester(REQUESTER),
        how=how,
        dry_run=dry_run,
    )


def _direct(platform: Platform, stage: str, parts: dict[str, list[float]]) -> None:
    """Commit a change and wait until it is Ready; time each part."""
    parts["dry-run"].append(timed_s(lambda: change(platform, _wanted(stage, dry_run=True))))
    begin_s = time.perf_counter()
    commit = change(platform, _wanted(stage)).commit
    assert commit is not None
    committed_s = time.perf_counter()
    assert await_commit(platform, ORDER, commit, timeout_s=60).ready
    parts["committed"].append(committed_s - begin_s)
    parts["end-to-end"].append(time.perf_counter() - begin_s)
    parts["unchanged"].append(timed_s(lambda: change(platform, _wanted(stage))))


def _reviewed(platform: Platform, stage: str, parts: dict[str, list[float]]) -> None:
    """Propose a change, merge it, wait until it is Ready; time each part."""
    begin_s = time.perf_counter()
    pull = change(platform, _wanted(stage, how=How.REVIEW)).pull
    assert pull is not None
    proposed_s = time.perf_counter()
    merged = platform.forge.merge_pull(
        REPO, pull.number, head=pull.head_commit, style=MergeStyle.MERGE,
        operation=Operation(f"merge-{pull.number}", REQUESTER, "Merge"),
    )  # fmt: skip
    assert await_commit(platform, ORDER, merged, timeout_s=60).ready
    parts["proposed"].append(proposed_s - begin_s)
    parts["merged-to-ready"].append(time.perf_counter() - proposed_s)


def _by_hand_s(platform: Platform, folder: Path, stage: str) -> float:
    """Time what a person with git does, up to the pushed commit."""
    token = (folder / "state" / "credentials" / "forge-token").read_text().strip()
    environment = {
        **os.environ,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: token {token}",
    }
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]

    def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            url = f"{platform.forge.base_url}/{REPO}.git"
            subprocess.run([*git, "clone", "--quiet", url, name], env=environment, check=True)
            xr = Path(name) / "manifests" / "xgarage.yaml"
            text = xr.read_text()
            xr.write_text(re.sub("stage[0-9]", stage, text) + "# by hand\n")
            for arguments in (["commit", "--quiet", "-am", "by hand"], ["push", "--quiet"]):
                subprocess.run([*git, *arguments], cwd=name, env=environment, check=True)

    return timed_s(run)
