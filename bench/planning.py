"""
Plans: one of an agent's 22 resources, warm and as a command, and a changed pack over 1,000 orders.

Everything is made here, from the agents' pack and one of its scenarios: the state an agent lives
in, the snapshot of it, and a thousand XRs in files, so no platform is needed. The peer of one plan
is Crossplane's own render, run twice (before and after), where ``ORDERKIT_CROSSPLANE`` names a
command line that renders one side of the same order; else there is none.
"""

from __future__ import annotations

import copy
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from bench.figure import Figure, median_s, size, timed_s
from compositions.composed import references
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.adapters.functions.local_functions import LocalFunctions
from orderkit.core.kit.pack import read_pack
from orderkit.core.plan import assemble
from orderkit.core.plan.snapshot import PlanSnapshot, RecordedOrder, to_text
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.composing.published_pack import loaded_workshop, needed_files
from orderkit.flows.composing.recording import Replay

ROOT = Path(__file__).parents[1]
PACK = ROOT / "packs" / "agents"
SCENARIO = PACK / "tests" / "kits" / "datasetagent" / "watched-only" / "scenario.yaml"
ORDER, RESOURCES = "agent-housing-bot", 22
RUNS, COMMANDS, ORDERS = size((20, 5, 1_000), (2, 1, 4))
_AS_INSTALLED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Our modules are compiled once, not anew by every command."""


@dataclass(frozen=True)
class _Agent:
    """A living order: as Git has it, and everything around it."""

    xr: Manifest
    changed: Manifest
    snapshot: PlanSnapshot


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        agent = _agent()
        yield from _one(agent, Path(name))
        yield from _many(Path(name))


def _one(agent: _Agent, folder: Path) -> Iterator[Figure]:
    workshop = loaded_workshop(read_pack(needed_files(read_folder(PACK))), LocalFunctions())
    plan_order = OrderPlanner(Replay(agent.snapshot), workshop)
    plan = plan_order.plan_step(agent.xr, agent.changed)
    assert len(plan.after.resources) >= RESOURCES, plan.summary
    assert plan.changes
    peer_s = _peer_s()
    begun_s = time.process_time()
    warm_s = median_s(lambda: plan_order.plan_step(agent.xr, agent.changed), runs=RUNS)
    used_s = (time.process_time() - begun_s) / RUNS
    aim = _Aim("ms", 1000, "<= 20")
    yield _beside("plan of 22 resources, warm", warm_s, peer_s, aim)
    yield Figure("… its processor time", used_s * 1000, "ms")
    file = folder / "plan.json"
    file.write_text(to_text(agent.snapshot))
    command = [sys.executable, "-m", "orderkit", "plan", ORDER, "budgetUsd=9", "--json"]
    command += ["--snapshot", str(file), "--pack", str(PACK)]
    _run(command, {4, 10})  # compiles
    wall_s = median_s(lambda: _run(command, {4, 10}), runs=COMMANDS)
    yield _beside("plan of 22 resources, command", wall_s, peer_s, _Aim("s", 1, "<= 0.4"))
    begun_s = _children_s()
    _run(command, {4, 10})
    yield Figure("… its processor seconds", _children_s() - begun_s, "s")


@dataclass(frozen=True)
class _Aim:
    """What a figure is told in, and what it should be."""

    unit: str
    per_s: int
    bound: str


def _beside(name: str, ours_s: float, peer_s: float | None, aim: _Aim) -> Figure:
    """Return a figure beside the peer's, if there is one."""
    return Figure(
        name,
        ours_s * aim.per_s,
        aim.unit,
        "crossplane render, both sides" if peer_s else None,
        peer_s * aim.per_s if peer_s else None,
        ours_s / peer_s if peer_s else None,
        aim.bound,
    )


def _many(folder: Path) -> Iterator[Figure]:
    pack, xrs = folder / "pack", folder / "xrs"
    shutil.copytree(PACK, pack, ignore=shutil.ignore_patterns("__pycache__"))
    _commit(pack)
    composition = pack / "gitops" / "apis" / "datasetagent" / "composition.yaml"
    found = yaml.safe_load(composition.read_text())
    dropped = found["spec"]["pipeline"].pop(-2)["step"]
    composition.write_text(yaml.safe_dump(found))
    _write_orders(xrs)
    command = [sys.executable, "-m", "orderkit", "plan", "--kit", "datasetagent", "--json"]
    command += ["--pack", str(pack), "--xrs", str(xrs)]
    begun_s = _children_s()
    wall_s = timed_s(lambda: _run(command, {1, 4, 10}))
    name = f"plan of {ORDERS:,} orders, a step dropped ({dropped})"
    yield Figure(name, wall_s, "s", aim="<= 10")
    yield Figure(f"{name}: processor seconds", _children_s() - begun_s, "s")


def _agent() -> _Agent:
    """Settle an order, and take down what the cluster then holds of it."""
    found = yaml.safe_load(SCENARIO.read_text())
    pack = read_pack(needed_files(read_folder(PACK)))
    kit = pack.kit("datasetagent")
    header = {"apiVersion": kit.kind.api_version, "kind": kit.kind.kind}
    xr: Manifest = {**header, **found["xr"]}
    required: list[Manifest] = found["required"]
    done = assemble(xr, replace(loaded_workshop(pack, LocalFunctions()), existing=required))
    observed = done.observed
    parts = {path: _with_parts(part, path, observed) for path, part in observed.items()}
    root = _with_parts(done.xr, "", observed)
    objects = (root, *parts.values(), *required)
    kinds = {Kind.of(each): Kind.of(each).kind.lower() + "s" for each in objects}
    changed = copy.deepcopy(xr)
    changed["spec"]["budgetUsd"] = 9
    asked = tuple(map(ObjectKey.of, objects))
    order = RecordedOrder(ORDER, kit.name, xr)
    return _Agent(xr, changed, PlanSnapshot((order,), "", {}, asked, (), objects, dict(kinds)))


def _with_parts(xr: Manifest, path: str, observed: dict[str, Manifest] | Any) -> Manifest:
    """Return an XR that refers to what it composes, as Crossplane writes it."""
    below = [part for name, part in observed.items() if name.rpartition("/")[0] == path]
    own = [part for part in below if part is not xr]
    if not own or (
        path and "/" not in path and not any(n.startswith(f"{path}/") for n in observed)
    ):
        return xr
    spec = {**xr["spec"], "crossplane": {"resourceRefs": list(references(own, xr))}}
    return {**xr, "spec": spec}


def _write_orders(folder: Path) -> None:
    found = yaml.safe_load(SCENARIO.read_text())
    folder.mkdir()
    for number in range(ORDERS):
        name = f"bot-{number:04d}"
        xr = {"apiVersion": "whisperops.io/v1alpha1", "kind": "XDatasetAgent", **found["xr"]}
        spec = {**xr["spec"], "agentName": name}
        written = {**xr, "metadata": {"name": name}, "spec": spec}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(written))
    (folder / "facts.yaml").write_text(yaml.safe_dump_all(found["required"]))


def _commit(folder: Path) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "pack"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


def _children_s() -> float:
    """Return what processes that have ended took of the processors, theirs too."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(command: list[str], codes: set[int]) -> None:
    done = subprocess.run(command, capture_output=True, check=False, env=_AS_INSTALLED)
    assert done.returncode in codes, done.stderr.decode()


def _peer_s() -> float | None:
    """Return how long the peer takes for both sides of a plan."""
    command = os.environ.get("ORDERKIT_CROSSPLANE")
    if not command:
        return None
    return 2 * median_s(lambda: _run(shlex.split(command), {0}), runs=COMMANDS)
