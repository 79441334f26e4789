"""The function server: a pipeline of 22 parts over gRPC and in process, and what it takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import grpc

from bench.figure import Figure, median_s, size
from compositions.station import INPUT, Station, station_runner
from orderkit.adapters.folders.station_process import stations_in
from orderkit.adapters.functions.function_messages import answered

PARTS, RUNS, AT_ONCE = 22, size(200, 4), 4
_STATION = """
    from orderkit.stations import StationRequest, StationResponse

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        for number in range(22):
            labels = {f"example.org/label-{n}": f"value {n}" for n in range(8)}
            env = [{"name": f"VARIABLE_{n}", "value": "x" * 20} for n in range(10)]
            container = {"name": "main", "image": "example.org/image:1", "env": env}
            response.want(f"part-{number}", {
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": f"part-{number}", "namespace": "agent", "labels": labels},
                "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
            })
        response.merge_status({"parts": 22})
        return response
"""


def figures() -> Iterator[Figure]:
    """Yield the time of one call with 22 observed and desired parts, and the server's memory."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "parts"
        folder.mkdir()
        (folder / "station.py").write_text(textwrap.dedent(_STATION))
        run = station_runner(stations_in(Path(place)))
        data = _request(run)
        here_s = median_s(lambda: answered(run, data), runs=RUNS)
        yield Figure(f"function, {PARTS} parts, without a wire", here_s * 1000, "ms")
        yield from _served(Path(place), data, here_s)


def _request(run: Station) -> bytes:
    """Return a request in which everything the station wants exists already."""
    asked = fnv1.RunFunctionRequest()
    asked.input.update({"apiVersion": INPUT.api_version, "kind": INPUT.kind, "name": "parts"})
    asked.observed.composite.resource.update({"kind": "App", "metadata": {"name": "a"}})
    first = fnv1.RunFunctionResponse.FromString(answered(run, asked.SerializeToString()))
    assert len(first.desired.resources) == PARTS
    for name, part in first.desired.resources.items():
        asked.observed.resources[name].CopyFrom(part)
    return asked.SerializeToString()


def _served(stations: Path, data: bytes, here_s: float) -> Iterator[Figure]:
    command = [sys.executable, "-m", "orderkit", "function", "--insecure"]
    options = ["--stations", str(stations), "--address", "127.0.0.1:0"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split(": ")[1].partition(",")[0]
            with grpc.insecure_channel(address) as channel:
                call = channel.unary_unary(
                    "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
                )
                call(data, timeout=60)
                wire_s = median_s(lambda: call(data, timeout=60), runs=RUNS)
                for future in [call.future(data) for _ in range(RUNS)]:
                    future.result(timeout=60)
                yield Figure(
                    f"function, {PARTS} parts, over gRPC",
                    wire_s * 1000,
                    "ms",
                    peer="without a wire",
                    peer_value=here_s * 1000,
                    ratio=wire_s / here_s,
                )
                yield Figure(
                    f"function server with {AT_ONCE} busy processes, memory",
                    sum(_own_mib(pid) for pid in _tree(server.pid)),
                    "MiB",
                )
        finally:
            server.terminate()


def _tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    return [pid, *(below for child in children for below in _tree(child))]


def _own_mib(pid: int) -> float:
    """Return a process' share of memory: pages shared by n processes count 1/n."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0
