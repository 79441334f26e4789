"""
A process that assembles orders by the stations of one pack, for a plan over many orders.

It gets the pack once, then answers one task after the other over its socket: assemble an order as
it is, or go on from there with another pack and compare. Two packs never meet in one process, and
whoever started it may kill it whatever a station is doing; it also ends when they are gone.

Wire: frames of a length (4 bytes) and as many bytes, pickled values of this module. Both ends are
ours, on one machine, and the stations have the rights of this user anyway. `main` is run in a
process of its own by ``lanes``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orderkit.core.crossplane.station import Selector
from orderkit.core.errors import OrderkitError
from orderkit.core.kit.pack import read_pack
from orderkit.core.objects.kube_objects import Kind, Manifest
from orderkit.core.objects.values import ABSENT, path_text, same, value_at
from orderkit.core.plan import Assembly, AssemblyContext, Fault, assemble, compare
from orderkit.core.plan.dangers import DangerContext
from orderkit.core.plan.fleet_plan import without_unnamed
from orderkit.core.plan.price_table import PriceTable
from orderkit.core.plan.stored_defaults import Defaults
from orderkit.core.yaml.documents import Files
from orderkit.flows.plan.cluster_verdicts import judged
from orderkit.flows.plan.pricing import with_costs
from orderkit.flows.plan.published_pack import loaded_workshop

LENGTH = struct.Struct("!I")
_WATCH_S = 1.0


@dataclass(frozen=True, slots=True)
class AssemblerSetup:
    """What the process works with."""

    files: Files
    """Of the pack, as far as they are needed."""
    memory_bytes: int = 0
    """Data memory of the process; 0: any."""
    defaults: Defaults = field(default_factory=dict)
    """What the XRD of the pack before gave to fields that nobody set."""
    same_laws: bool = False
    """Schemas and rights are those of the pack before: what stays the same needs no judge."""
    prices: PriceTable | None = None
    """What things cost."""


@dataclass(frozen=True, slots=True)
class PlanBefore:
    """Assemble an order as it is."""

    xr: Manifest
    observed: Mapping[str, Manifest]
    existing: tuple[Manifest, ...]
    is_judged: bool = False
    """Say, too, what of it should be refused already."""


@dataclass(frozen=True, slots=True)
class PlanAfter:
    """Assemble an order anew and compare with what the other process found."""

    xr: Manifest
    before: bytes
    """The `Assembly`, pickled."""
    existing: tuple[Manifest, ...]
    is_stored: bool = False
    """The XR is as the API server has it, with the defaults of its first day."""


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """What became of a task: a pickled `Assembly` or slim `Plan`, or an error."""

    payload: bytes = b""
    error: str = ""
    asked: tuple[Selector, ...] = ()
    stored: Manifest = field(default_factory=dict)
    """Of `PlanBefore`: the XR with its defaults."""
    judged: bool = False
    """Of `PlanAfter`: something is wrong with the outcome, perhaps already before."""


def main(descriptor: int) -> None:
    """Answer until the owner closes the socket."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with socket.socket(fileno=descriptor) as owner:
        first = receive(owner)
        if first is None:
            return
        setup: AssemblerSetup = pickle.loads(first)  # noqa: S301 - from the process that started us
        if setup.memory_bytes:
            limit = (setup.memory_bytes, setup.memory_bytes)
            with contextlib.suppress(ValueError, OSError):  # a lower limit holds already
                resource.setrlimit(resource.RLIMIT_DATA, limit)
        try:
            workshop = loaded_workshop(read_pack(setup.files))
            bench = _Bench(workshop, setup.defaults, setup.prices, same_laws=setup.same_laws)
        except OrderkitError as error:
            send(owner, TaskAnswer(error=str(error)))
            return
        send(owner, TaskAnswer())
        _serve(owner, bench)


def _end_with(parent: int) -> None:
    """End when the owner has gone: a station that never ends would stay for ever."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(1)


def _serve(owner: socket.socket, bench: _Bench) -> None:
    gc.collect()
    gc.freeze()
    while True:
        data = receive(owner)
        if data is None:
            return
        task: PlanBefore | PlanAfter = pickle.loads(data)  # noqa: S301 - from the process that started us
        try:
            answer = bench.before(task) if isinstance(task, PlanBefore) else bench.after(task)
        except (OrderkitError, ValueError, MemoryError, RecursionError) as error:
            answer = TaskAnswer(error=f"{type(error).__name__}: {error}")
        send(owner, answer)


@dataclass(slots=True)
class _Bench:
    workshop: AssemblyContext
    defaults: Defaults
    prices: PriceTable | None
    same_laws: bool

    def before(self, task: PlanBefore) -> TaskAnswer:
        if self.workshop.blueprint(task.xr) is None:
            return TaskAnswer(error=_no_composition(task.xr))
        workshop = replace(self.workshop, existing=task.existing)
        found = assemble(task.xr, workshop, observed=task.observed)
        stored = {key: part for key, part in found.xr.items() if key != "status"}
        if task.is_judged:
            found = judged(None, workshop, found, found)
        return TaskAnswer(_pickled(found), asked=found.requirements, stored=stored)

    def after(self, task: PlanAfter) -> TaskAnswer:
        if self.workshop.blueprint(task.xr) is None:
            return TaskAnswer(error=_no_composition(task.xr))
        before: Assembly = pickle.loads(task.before)  # noqa: S301 - from a process like this one
        workshop = replace(self.workshop, existing=task.existing)
        known = before.observed
        # what the old XRD refused is not what is stored
        stored = task.xr if any(_is_schema(each) for each in before.faults) else before.xr
        made_by = before.made_by
        after = assemble(stored, workshop, observed=known, attributed=made_by)
        after = replace(after, faults=tuple(f for f in after.faults if not self._is_ours(f, task)))
        fresh = assemble(stored, workshop) if after.renamed else after
        mind = DangerContext(workshop.laws, workshop.existing)
        plan = compare(before, after, fresh=fresh, mind=mind)
        if plan.changes or not self.same_laws:
            plan = replace(plan, after=judged(None, workshop, before, plan.after))
        asked = {repr(each): each for each in (*after.requirements, *fresh.requirements)}
        is_judged = plan.after.faults != after.faults
        plan = without_unnamed(with_costs(plan, self.prices))
        return TaskAnswer(_pickled(plan), asked=tuple(asked.values()), judged=is_judged)

    def _is_ours(self, fault: Fault, task: PlanAfter) -> bool:
        """Say whether an unknown field is only an old default, which the API server drops."""
        if fault.path or not fault.message.startswith("unknown field"):
            return False
        for steps, default in self.defaults.items():
            if fault.field == path_text(("spec", *steps)):
                found = value_at(task.xr, ("spec", *steps))
                return found is ABSENT or (task.is_stored and same(found, default))
        return False


def _is_schema(fault: Fault) -> bool:
    return not fault.path and bool(fault.field)


def _no_composition(xr: Manifest) -> str:
    return f"this pack has no Composition for {Kind.of(xr)}"


def _pickled(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def send(place: socket.socket, value: object) -> None:
    """Send one value."""
    data = _pickled(value)
    place.sendall(LENGTH.pack(len(data)) + data)


def receive(place: socket.socket) -> bytes | None:
    """Return one value's bytes; None if the other side is gone."""
    head = _read(place, LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    wanted: int = LENGTH.unpack(head)[0]
    data = _read(place, wanted)
    return data if len(data) == wanted else None


def _read(place: socket.socket, wanted: int) -> bytes:
    data = bytearray()
    while len(data) < wanted:
        part = place.recv(min(wanted - len(data), 1 << 20))
        if not part:
            break
        data += part
    return bytes(data)
