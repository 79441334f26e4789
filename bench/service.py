"""
The HTTP service under load: 50 readers and 8 writers at once, over HTTP, beside its platform.

``orderkit up`` is three processes (its own service idles), ``orderkit serve`` one or two more, the
clients another; a machine with two cores shares them out among all. Each writer changes an order of
its own and reads nothing; each reader looks at one order after the other. Half of the clients ask
each of two services. Memory is one service's own process.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bench.figure import Figure, size
from bench.platform import REQUESTER, cpu_s, family, rss_mb, running
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import SECRET_HEADER, connect, load_settings, token
from orderkit.core.platform.service_access import AccessSettings
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.team.teams import add_team
from orderkit.ports.requesters import Requester

READERS, WRITERS, SECONDS = size((50, 8, 15.0), (2, 2, 1.0))
READING_S = SECONDS / 3
"""How long there are only readers first: what the service itself takes for each."""
ORDERS = [f"garage-bench-{number}" for number in range(WRITERS)]
STAGES = ("stage1", "stage2", "stage3", "stage2")


@dataclass(slots=True)
class Load:
    """What the clients saw. Times are in seconds; `refused` counts answers that are no success."""

    urls: Sequence[str]
    headers: dict[str, str]
    until: float
    reads: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    refused: int = 0

    def read(self, number: int) -> None:
        with self._connection(number) as connection:
            while time.perf_counter() < self.until:
                path = f"/v1/orders/{ORDERS[number % WRITERS]}"
                self._ask(connection, "GET", path, None, self.reads)
                number += 1

    def write(self, number: int) -> None:
        path = f"/v1/orders/{ORDERS[number]}/changes"
        with self._connection(number) as connection:
            at = 0
            while time.perf_counter() < self.until:
                at += 1
                body = {"values": {"stage": STAGES[at % len(STAGES)]}}
                self._ask(connection, "POST", path, body, self.changes)

    def _connection(self, number: int) -> contextlib.closing[http.client.HTTPConnection]:
        address = urlsplit(self.urls[number % len(self.urls)]).netloc
        return contextlib.closing(http.client.HTTPConnection(address, timeout=60))

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: object,
        times: list[float],
    ) -> None:
        begin_s = time.perf_counter()
        data = json.dumps(body).encode() if body else None
        kind = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, data, {**self.headers, **kind})
        with connection.getresponse() as answer:
            answer.read()
            if answer.status < 300:  # noqa: PLR2004 - HTTP: 2xx is success
                times.append(time.perf_counter() - begin_s)
            else:
                self.refused += 1


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        state = Path(name) / "state"
        pack = _direct_pack(Path(name) / "pack")
        with running(state, "--pack", str(pack)) as platform:
            settings = load_settings(str(state / "platform.yaml"))
            _place(settings)
            secret = token(settings.service)
            with serving(settings, state) as (url, pid):
                before_s = [cpu_s(pid), cpu_s(*family(platform))]
                alone = _loaded([url], secret, READING_S, writers=0)
                spent = [cpu_s(pid) - before_s[0], cpu_s(*family(platform)) - before_s[1]]
                for whose, spent_s in zip(("service", "platform"), spent, strict=True):
                    each_ms = spent_s / len(alone.reads) * 1000
                    aim = "<= 2" if whose == "service" else None
                    yield Figure(f"service.read.of-the-{whose}", each_ms, "ms of CPU", aim=aim)
                one = _loaded([url], secret, SECONDS, writers=WRITERS)
                yield from _shown(one, rss_mb(pid))
                with serving(settings, state, "second") as (second, _):
                    urls = [url, second]
                    read = _loaded(urls, secret, READING_S, writers=0)
                    two = _loaded(urls, secret, SECONDS, writers=WRITERS)
            yield from _compared("reads-alone", alone.reads, read.reads)
            yield from _compared("reads", one.reads, two.reads)
            yield from _compared("changes", one.changes, two.changes)


def _compared(what: str, one: list[float], two: list[float]) -> Iterator[Figure]:
    """Say how much more two processes did in the same time."""
    yield Figure(
        f"service.two-processes.{what}",
        len(two),
        "answers",
        peer="one process, in the same time",
        peer_value=len(one),
        ratio=len(two) / len(one),
        aim=">= 1.7",
        aim_of="ratio",
    )


def _direct_pack(target: Path) -> Path:
    """Copy the reference pack; its garage changes without a review."""
    target.mkdir()
    shutil.copy(reference_pack() / "pack.yaml", target)
    for part in ("templates", "day2", "stations", "gitops"):
        shutil.copytree(reference_pack() / part, target / part)
    kit = target / "templates" / "garage" / "kit.yaml"
    kit.write_text(kit.read_text().replace("how: review", "how: direct"))
    return target


def _place(settings: PlatformSettings) -> None:
    platform = connect(settings)
    for order in ORDERS:
        team = order.removeprefix("garage-")
        add_team(platform, team, requester=REQUESTER)
        values = {"team_name": team, "stage": "stage2"}
        run_task(platform, TaskRequest("garage", values, Requester(REQUESTER)))


@contextlib.contextmanager
def serving(
    settings: PlatformSettings, state: Path, name: str = "bench"
) -> Iterator[tuple[str, int]]:
    """Run a service of its own beside a platform; yield its address and its process."""
    file = state / f"{name}.yaml"
    access = AccessSettings(requests_per_minute=10_000_000)
    file.write_text(changed(settings, service=changed(settings.service, access=access)).to_yaml())
    command = [sys.executable, "-m", "orderkit", "serve", "--platform", str(file), "--port", "0"]
    command += ["--audit-log", str(state / f"{name}.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split("runs: ")[1].strip()
        try:
            yield url, process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


def _loaded(urls: Sequence[str], secret: str, seconds: float, *, writers: int) -> Load:
    load = Load(urls, {SECRET_HEADER: secret}, time.perf_counter() + seconds)
    work = [(load.read, n) for n in range(READERS)] + [(load.write, n) for n in range(writers)]
    threads = [threading.Thread(target=run, args=(n,)) for run, n in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return load


def _shown(load: Load, memory_mb: float) -> Iterator[Figure]:
    under = f"{READERS}-readers-{WRITERS}-writers"
    yield Figure(f"service.changes.{under}", len(load.changes) / SECONDS, "per s", aim=">= 10")
    yield Figure(f"service.reads.{under}", len(load.reads) / SECONDS, "per s", aim=">= 300")
    for what, times, aim in (("change", load.changes, "<= 600"), ("read", load.reads, "<= 100")):
        cuts = statistics.quantiles(times, n=100)
        yield Figure(f"service.{what}.median.{under}", cuts[49] * 1000, "ms", aim=aim)
        yield Figure(f"service.{what}.p99.{under}", cuts[98] * 1000, "ms")
    yield Figure(f"service.failed.{under}", load.refused, "answers", aim="<= 0")
    yield Figure("service.memory", memory_mb, "MB")
