"""
The live model with 10,000 orders: lists, 500 streams, and its memory.

``orderkit serve`` is a process of its own, beside an embedded platform whose cluster holds what it
would hold of delivered orders. Memory is measured in another process, on a cluster that is made
up: 220,000 parts would take the embedded one too long. The forge is the same.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from bench.figure import Figure, median_s, size, timed_s
from bench.ledger import ORDERS, XGARAGE, entry_of, fill_cluster, started, write_ledger
from bench.platform import rss_mb
from bench.service import serving
from ground.objects.kube_objects import ObjectKey
from orderkit.cli.connecting import SECRET_HEADER, connect, token
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.platform import Platform

STREAMS, CHANGES, RUNS = size((500, 10, 20), (3, 2, 2))
_COMMANDS = size(5, 1)
READY_S = 600.0


def figures() -> Iterator[Figure]:
    """Yield the figures of one platform."""
    with tempfile.TemporaryDirectory() as name, started(Path(name)) as settings:
        platform = connect(settings)
        write_ledger(platform)
        yield from _memory(Path(name) / "platform.yaml")
        fill_cluster(platform)
        with serving(settings, Path(name)) as (url, pid):
            yield Figure("live.ready", _ready_s(url), "s")
            yield from _listing(url, settings)
            yield from _commanding(url, settings, Path(name))
            yield from _streaming(url, settings, platform)
            yield Figure("live.service-memory", rss_mb(pid), "MB")


def _memory(platform_file: Path) -> Iterator[Figure]:
    command = [sys.executable, "-m", "bench.live_memory", str(platform_file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured = json.loads(done.stdout)
    yield Figure("live.model.memory.10000x22", measured["model_mb"], "MB", aim="<= 400")
    yield Figure("live.model.process.10000x22", measured["process_mb"], "MB")
    yield Figure("live.model.complete.10000x22", measured["complete_s"], "s")


def _ready_s(url: str) -> float:
    begin_s = time.perf_counter()
    while requests.get(f"{url}/readyz", timeout=60).status_code != requests.codes.ok:
        assert time.perf_counter() - begin_s < READY_S
        time.sleep(0.2)
    return time.perf_counter() - begin_s


def _listing(url: str, settings: PlatformSettings) -> Iterator[Figure]:
    with requests.Session() as session:
        session.trust_env = False
        session.headers[SECRET_HEADER] = token(settings.service)

        def ask(query: str) -> Any:
            answer = session.get(f"{url}/v1/orders{query}", timeout=60)
            assert answer.ok, answer.text
            return answer

        assert len(ask("").json()["orders"]) == ORDERS
        for name, query, aim_ms in (("page", "?limit=50", 20), ("all", "", 300)):
            times = [timed_s(partial(ask, query)) for _ in range(RUNS)]
            yield Figure(
                f"live.list.{name}", statistics.median(times) * 1000, "ms", aim=f"<= {aim_ms}"
            )


def _commanding(url: str, settings: PlatformSettings, folder: Path) -> Iterator[Figure]:
    """Run ``orderkit list`` as a process: through the service, and where nobody answers for it."""
    for name, address, aim_s in (("service", url, 0.5), ("direct", "http://127.0.0.1:9", 2)):
        file = folder / f"{name}.yaml"
        file.write_text(settings.to_yaml().replace(settings.service.url, address))
        command = [sys.executable, "-m", "orderkit", "list", "--platform", str(file)]
        run = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
        seconds = median_s(run, runs=_COMMANDS)
        yield Figure(f"live.list.command.{name}", seconds, "s", aim=f"<= {aim_s}")


def _streaming(url: str, settings: PlatformSettings, platform: Platform) -> Iterator[Figure]:
    delays_s = asyncio.run(_delays(url, token(settings.service), platform))
    cuts = statistics.quantiles(delays_s, n=100)
    yield Figure("live.stream.p50", cuts[49], "s")
    yield Figure("live.stream.p95", cuts[94], "s", aim="<= 1")


async def _delays(url: str, secret: str, platform: Platform) -> list[float]:
    """Return how long each change of a condition took to each stream."""
    readers = [await _open(url, secret) for _ in range(STREAMS)]
    delays_s: list[float] = []
    for number in range(CHANGES):
        order = entry_of(number).order
        waiting = [asyncio.create_task(_arrival_s(reader, order)) for reader, _ in readers]
        begin_s = time.perf_counter()
        await asyncio.to_thread(_fail, platform, order)
        delays_s += [arrived_s - begin_s for arrived_s in await asyncio.gather(*waiting)]
    for _, writer in readers:
        writer.close()
    return delays_s


async def _open(url: str, secret: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"GET /v1/stream HTTP/1.1\r\nHost: {address.netloc}\r\n{SECRET_HEADER}: {secret}\r\n\r\n"
    writer.write(head.encode())
    await reader.readuntil(b"event: ready")
    return reader, writer


async def _arrival_s(reader: asyncio.StreamReader, order: str) -> float:
    await reader.readuntil(f'"order":"{order}"'.encode())
    return time.perf_counter()


def _fail(platform: Platform, order: str) -> None:
    ready = {"type": "Ready", "status": "False", "reason": "Unavailable", "observedGeneration": 1}
    synced = {**ready, "type": "Synced", "status": "True", "reason": "ReconcileSuccess"}
    at = {"lastTransitionTime": "2026-11-22T12:00:02Z"}
    conditions = [{**synced, **at}, {**ready, **at}]
    key = ObjectKey(XGARAGE, order)
    platform.cluster.patch(key, {"status": {"conditions": conditions}}, owner="b", status=True)
