"""``python -m whisperops watch`` as a process: probes, metrics, the end by signal, kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from lab.daemons import Daemon

from ground.objects.kube_objects import ObjectKey
from orderkit.controllers import LEASE
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster.http import cluster_app, kubeconfig

TOKEN = "a" * 40
READY_S = 180.0


@dataclass
class Site:
    """A bucket on disk, the shop behind HTTP, and watchers as processes."""

    shop: Any
    bucket: Path
    settings: Path
    undo: ExitStack
    started: int = 0
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def put(self, count: int, *, first: int = 0, size: int = 1) -> None:
        for number in range(first, first + count):
            (self.bucket / f"data-{number:04d}.csv").write_bytes(b"x" * size)

    def command(self, *more: str) -> list[str]:
        return [
            sys.executable, "-m", "whisperops", "--verbose", "watch",
            "--platform", str(self.settings), "--bucket", f"file://{self.bucket}",
            "--source", "datasets", "--catalog", str(self.shop.repo), "--listen", "127.0.0.1:0",
            *more,
        ]  # fmt: skip

    def start(self, *more: str) -> Daemon:
        self.started += 1
        log = self.settings.parent / f"watcher-{self.started}.log"
        return self.undo.enter_context(
            Daemon("watcher", self.command("--interval", "0.2", *more), log=log)
        )

    def once(self, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command("--once", *more), capture_output=True, text=True, timeout=240, check=False
        )

    def in_step(self) -> bool:
        wanted = {f"file://{path}" for path in self.bucket.glob("*.csv")}
        records = self.shop.records().values()
        if {record["spec"]["gcsPath"] for record in records} != wanted:
            return False
        if not all("status" in record for record in records):
            return False  # the pass goes on
        names = {record["metadata"]["name"] for record in records}
        return bool(self.shop.commits()) and self.shop.entities().keys() == names


@pytest.fixture
def site(shop: Any, tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "bucket").mkdir()
    server = HttpServer(cluster_app(shop.cluster, token=TOKEN), bind("cluster", 0))
    server.start()
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig(server.url, TOKEN)))
    (tmp_path / "token").write_text(TOKEN)
    endpoint = {"url": shop.forge.base_url, "tokenFile": "token"}
    settings = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Platform",
        "metadata": {"name": "test"},
        "spec": {
            "forge": endpoint,
            "portal": endpoint,
            "service": endpoint,
            "cluster": {"kubeconfig": "kubeconfig"},
        },
    }
    (tmp_path / "platform.yaml").write_text(yaml.safe_dump(settings))
    with ExitStack() as undo:
        yield Site(shop, tmp_path / "bucket", tmp_path / "platform.yaml", undo)
    shop.cluster.close()
    server.stop()


def metrics_url(daemon: Daemon) -> str:
    daemon.wait_until(lambda: "metrics at " in daemon.text(), timeout_s=READY_S)
    return daemon.text().split("metrics at ")[1].split()[0]


def until(probe: Callable[[], bool], *, timeout_s: float = READY_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not probe():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)


def test_a_process_shows_how_it_is_and_ends_on_a_signal_with_the_lease_given_back(
    site: Site,
) -> None:
    site.put(3)
    (site.bucket / "empty.csv").touch()
    daemon = site.start()
    url = metrics_url(daemon)
    daemon.wait_until(site.in_step, timeout_s=READY_S)
    daemon.wait_until(
        lambda: "passes_total 0" not in requests.get(url, timeout=60).text, timeout_s=READY_S
    )

    shown = requests.get(url, timeout=60)
    health = [
        requests.get(url.replace("metrics", p), timeout=60) for p in ("healthz", "readyz", "x")
    ]
    daemon.stop()

    assert [answer.status_code for answer in health] == [200, 200, 404]
    assert shown.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = shown.text.splitlines()
    assert "whisperops_watcher_registered_datasets 4" in lines
    assert "whisperops_watcher_ready_datasets 3" in lines
    assert 'whisperops_watcher_failures_total{part="catalog"} 0' in lines
    assert "whisperops_watcher_suspicious 0" in lines
    assert daemon._process.returncode == 0  # noqa: SLF001  how it ended
    lease = site.shop.cluster.get(ObjectKey(LEASE, "dataset-watcher-datasets", "whisperops"))
    assert lease["spec"]["holderIdentity"] == ""
    assert "Traceback" not in daemon.text()


def test_of_two_processes_one_works_and_the_other_takes_over(site: Site) -> None:
    site.put(2)
    first = site.start()
    first.wait_until(site.in_step, timeout_s=READY_S)
    second = site.start()
    metrics = metrics_url(second)
    idle = "whisperops_watcher_passes_total 0"
    second.wait_until(lambda: idle in requests.get(metrics, timeout=60).text, timeout_s=READY_S)

    first.stop()
    site.put(1, first=10)

    second.wait_until(site.in_step, timeout_s=READY_S)
    assert len(site.shop.commits()) == 2
    second.stop()


def test_watchers_killed_at_any_moment_leave_nothing_that_the_next_does_not_finish(
    site: Site, chances: Any
) -> None:
    """Kill -9 in the middle of passes; then registry and catalog are as if nothing happened."""
    random = chances.random("watchers killed mid-pass")
    kills = chances.count(2, 100)
    for number in range(kills):
        site.put(15, first=(number * 7) % 60, size=number + 1)
        begun = len(site.shop.records())
        process = subprocess.Popen(
            site.command("--once", "--no-election"), stderr=subprocess.DEVNULL
        )
        moment = random.random()
        writes_seen = site.shop.cluster.store.version
        until(
            lambda p=process, seen=writes_seen: (  # type: ignore[misc]  # mypy has no type for a bound default
                p.poll() is not None or site.shop.cluster.store.version > seen
            )
        )
        time.sleep(moment * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(site.shop.records()) >= begun

    last = site.once("--no-election")

    assert last.returncode == 0, last.stderr
    assert site.in_step()
    assert all(record["status"]["ready"] for record in site.shop.records().values())
    assert len(site.shop.commits()) <= kills + 1
    again = site.once("--no-election")
    assert "0 writes" in again.stderr


def test_a_pass_that_leaves_something_ends_with_a_code_that_says_so(site: Site) -> None:
    site.put(3)
    assert site.once().returncode == 0
    for path in site.bucket.glob("*.csv"):
        path.unlink()

    done = site.once()

    assert done.returncode == 5
    assert "nothing is removed" in done.stderr
    assert len(site.shop.records()) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--bucket", "ftp://x"], 2, "begins with none of", id="a bucket"),
        pytest.param(["--catalog", "nowhere"], 2, "OWNER/REPOSITORY", id="a repository"),
        pytest.param(["--passes", "0"], 2, "less than 1", id="a count"),
        pytest.param(["--interval", "-1"], 2, "not within a day", id="an interval"),
        pytest.param(["--source", "No Label"], 2, "RFC 1123", id="a source"),
        pytest.param(["--platform", "/nowhere.yaml"], 1, "no platform", id="a platform"),
        pytest.param(["--listen", "everywhere"], 2, "HOST:PORT", id="an address"),
    ],
)
def test_an_option_that_cannot_be_used_ends_it_at_once(
    site: Site, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from whisperops.commands import main

    assert main(site.command(*arguments)[3:]) == code
    assert said in capsys.readouterr().err
