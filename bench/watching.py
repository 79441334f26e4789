"""
A pass of the dataset-watcher over ten thousand blobs on disk, with a forge over HTTP.

Filling the registry is measured once; the pass over what did not change has the aim, in seconds of
CPU (of the cluster and the forge too: they are in this process), and has to write nothing. The
cluster's HTTP is not in the figures.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from bench.figure import Figure, size, timed_s
from ground.names import RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.ports.clock import SystemClock
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.forge import EmbeddedForge
from whisperops.buckets import FsspecBucket
from whisperops.catalogrepo import CatalogFolder, CatalogRepo
from whisperops.confirming import Confirmation
from whisperops.records import Origin
from whisperops.registry import Registry
from whisperops.watching import Watcher, WatchResult

BLOBS = size(10_000, 20)
RUNS = size(5, 1)
TOKEN = "b" * 40
CATALOG = RepoId("platform", "datasets")
DEFINITION = Path("packs/agents/gitops/apis/dataset/definition.yaml")


def figures() -> Iterator[Figure]:
    """Yield the figures of one registry."""
    with tempfile.TemporaryDirectory() as folder, _watcher(Path(folder)) as watcher:
        done: list[WatchResult] = []
        fill_s = timed_s(lambda: done.append(watcher.run_pass()))
        times = sorted(_cpu_s(lambda: done.append(watcher.run_pass())) for _ in range(RUNS))
        assert done[0].registered == BLOBS, done[0].failures
        assert not any(each.failures for each in done)
        writes = sum(each.writes + each.removed + bool(each.commit) for each in done[1:])
        yield Figure("watcher: first pass over 10,000 blobs", fill_s, "s")
        median_s = times[RUNS // 2]
        yield Figure(
            "watcher: CPU of a pass over 10,000 unchanged blobs", median_s, "s of CPU", aim="<= 2"
        )
        yield Figure("watcher: writes of these passes", writes, "writes", aim="<= 0")


def _cpu_s(work: Callable[[], object]) -> float:
    """Return this process's own time for one call: machines are shared."""
    begin_s = time.process_time()
    work()
    return time.process_time() - begin_s


@contextlib.contextmanager
def _watcher(folder: Path) -> Iterator[Watcher]:
    bucket, clock = folder / "bucket", SystemClock()
    bucket.mkdir()
    for number in range(BLOBS):
        (bucket / f"Data set_{number:05d}.csv").write_bytes(b"a,b\n1,2\n")
    with contextlib.ExitStack() as undo:
        cluster = EmbeddedCluster(folder / "cluster.sqlite")
        undo.callback(cluster.close)
        cluster.apply(yaml.safe_load(DEFINITION.read_text()), owner="bench")
        found = FsspecBucket(f"file://{bucket}")
        origin = Origin(found.root, "datasets")
        yield Watcher(
            found,
            Registry(cluster, origin, clock),
            CatalogRepo(
                _forge(folder, undo), CatalogFolder(RepoId("platform", "datasets"), "datasets")
            ),
            Confirmation(cluster, clock, namespace="default", source="datasets"),
            origin,
        )


def _forge(folder: Path, undo: contextlib.ExitStack) -> GiteaForge:
    embedded = EmbeddedForge(folder / "forge")
    undo.callback(embedded.close)
    server = HttpServer(embedded.app, bind("forge", 0))
    server.start()
    undo.callback(server.stop)
    embedded.set_base_url(server.url)
    embedded.ensure_user("bench", "bench-pw1", admin=True)
    embedded.ensure_token("bench", "t", TOKEN, ["all"])
    client = GiteaForge(server.url, token=TOKEN)
    client.ensure_org("platform")
    return client
