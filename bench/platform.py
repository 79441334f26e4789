"""
Orders on the embedded platform: from the request to Ready, and what the platform weighs.

The platform runs as processes of its own, reached over HTTP, as a user has it. Its memory is what
they hold, shared pages counted once.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.figure import Figure, size, timed_s
from orderkit.cli.connecting import connect, load_settings
from orderkit.flows.order import placing
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team
from orderkit.flows.template.scaffolder import StepEvent
from orderkit.ports.requesters import Requester

REQUESTER = "user:default/bench"
SINGLE, BULK, WORKERS = size((50, 200, 8), (1, 2, 2))
FACES = size(20, 2)
PARTS = ("fetch", "publish", "order", "register", "wait")


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "state") as process:
        platform = connect(load_settings(str(Path(name) / "state" / "platform.yaml")))
        teams = [f"bench-{n:03d}" for n in range(SINGLE + 2 * BULK)]
        team_s = [timed_s(partial(add_team, platform, t, requester=REQUESTER)) for t in teams]
        yield Figure("team.add.p50", statistics.median(team_s) * 1000, "ms")
        yield from _single(platform, teams[:SINGLE], Path(name))
        yield from _bulk(platform, teams[SINGLE : SINGLE + BULK], workers=1)
        yield Figure("platform.memory.250-orders", memory_mb(process), "MB", aim="<= 300")
        yield from _bulk(platform, teams[SINGLE + BULK :], workers=WORKERS)
        yield Figure("platform.memory.450-orders", memory_mb(process), "MB")


def face_figures() -> Iterator[Figure]:
    """Orders on each dialect of the embedded forge, one after the other, in the same run."""
    with contextlib.ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        platforms = {}
        for forge in ("gitea", "github", "gitlab"):
            undo.enter_context(running(folder / forge, "--forge", forge))
            platform = connect(load_settings(str(folder / forge / "platform.yaml")))
            platforms[forge] = platform
        took: dict[str, list[float]] = defaultdict(list)
        for number in range(FACES):
            for forge, platform in platforms.items():
                team = f"bench-{number:03d}"
                add_team(platform, team, requester=REQUESTER)
                took[forge].append(_order_s(platform, team, defaultdict(list)))
        medians = {forge: statistics.median(times) for forge, times in took.items()}
        for forge in ("github", "gitlab"):
            yield Figure(
                f"order.to-ready.{forge}.p50",
                medians[forge],
                "s",
                peer="the Gitea face",
                peer_value=medians["gitea"],
                ratio=medians[forge] / medians["gitea"],
                aim="<= 1.5" if forge == "github" else None,
                aim_of="ratio",
            )


def _single(platform: Platform, teams: list[str], folder: Path) -> Iterator[Figure]:
    parts: dict[str, list[float]] = defaultdict(list)
    totals = [_order_s(platform, team, parts) for team in teams]
    by_hand = [_by_hand_s(platform, folder, n) for n in range(size(10, 1))]
    yield Figure(
        "order.to-ready.p50",
        statistics.median(totals),
        "s",
        peer="git init, commit, push of the same files by hand, nothing delivered",
        peer_value=statistics.median(by_hand),
        ratio=statistics.median(totals) / statistics.median(by_hand),
        aim="<= 1",
    )
    yield Figure("order.to-ready.p95", sorted(totals)[int(len(totals) * 0.95)], "s")
    for part in PARTS:
        yield Figure(f"order.part.{part}.p50", statistics.median(parts[part]) * 1000, "ms")


def _order_s(platform: Platform, team: str, parts: dict[str, list[float]]) -> float:
    mark_s = begin_s = time.perf_counter()

    def on_step(event: StepEvent) -> None:
        nonlocal mark_s
        now_s = time.perf_counter()
        parts[event.step].append(now_s - mark_s)
        mark_s = now_s

    values = {"team_name": team, "stage": "stage2"}
    wanted = placing.TaskRequest("garage", values, Requester(REQUESTER), on_step=on_step)
    done = placing.order(platform, wanted)
    assert done.created
    assert done.report.state.ready
    parts["wait"].append(time.perf_counter() - mark_s)
    return time.perf_counter() - begin_s


def _bulk(platform: Platform, teams: list[str], *, workers: int) -> Iterator[Figure]:
    parts: dict[str, list[float]] = defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        begin_s = time.perf_counter()
        each_s = list(pool.map(lambda team: _order_s(platform, team, parts), teams))
        elapsed_s = time.perf_counter() - begin_s
    name = f"orders.{len(teams)}.{workers}-at-a-time"
    aim = ">= 4" if workers > 1 else None
    yield Figure(f"{name}.per-second", len(teams) / elapsed_s, "1/s", aim=aim)
    yield Figure(f"{name}.p50", statistics.median(each_s), "s")


def _by_hand_s(platform: Platform, folder: Path, number: int) -> float:
    """Time what a person would do without any tool, up to the pushed commit only."""
    from ground.names import RepoId
    from orderkit.ports.forge import Forge

    forge: Forge = platform.forge
    source = folder / f"hand-{number}"
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    target = f"{forge.base_url}/bench-000/hand-{number}.git"
    token = (folder / "state" / "credentials" / "forge-token").read_text().strip()
    environment = {
        **os.environ,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: token {token}",
    }

    def run() -> None:
        forge.ensure_repo(RepoId("bench-000", f"hand-{number}"), description="by hand")
        for relative in ("manifests/x.yaml", "catalog-info.yaml", ".orderkit/o.yaml", "README.md"):
            path = source / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("a: 1\n" * 20)
        for arguments in (
            ["init", "--quiet", "--initial-branch=main"],
            ["add", "."],
            ["commit", "--quiet", "--message=order"],
            ["push", "--quiet", target, "main"],
        ):
            subprocess.run([*git, *arguments], cwd=source, env=environment, check=True)

    return timed_s(run)


@contextlib.contextmanager
def running(state: Path, *more: str) -> Iterator[int]:
    """Run ``orderkit up`` on free ports, with more arguments; yield its process id."""
    command = [sys.executable, "-m", "orderkit", "up", "--state", str(state), *more]
    ports = [f"--{part}-port=0" for part in ("forge", "cluster", "portal", "service")]
    with subprocess.Popen(
        [*command, *ports], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Next, in another terminal" in line:
                break
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


def family(pid: int) -> list[int]:
    """Return a process and all its living descendants."""
    found = [pid]
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has just ended
            found += [each for child in file.read_text().split() for each in family(int(child))]
    return found


def cpu_s(*pids: int) -> float:
    """Return the processor time of processes, and of their children that have ended."""
    total_s = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            total_s += time.clock_gettime((~pid << 3) | 2)  # the clock of a process, to the ns
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total_s += sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
    return total_s


def memory_mb(pid: int) -> float:
    """Return the memory of a process and its descendants; a page that some share counts once."""
    total_kb = 0
    for each in family(pid):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
            total_kb += int(text.split("\nPss:")[1].split()[0])
    return total_kb / 1024


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")
