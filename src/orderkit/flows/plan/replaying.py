"""
Plan one order from a recorded snapshot and a pack in a folder, without platform or cluster.

Edits are judged by the XRD, not by the kit's rules and the team's limits, which need the platform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compositions.function_processes import FunctionProcess
from ground.errors import NotFoundError, RefusedError
from ground.names import Files
from ground.objects.kube_objects import Kind, Manifest, metadata
from kubeschema.known import Layer
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.pack import read_pack
from orderkit.core.order.change import FieldEdit, apply, resolve
from orderkit.core.plan import Plan
from orderkit.core.plan.price_table import PRICES, PriceTable, read_prices
from orderkit.core.plan.snapshot import PlanSnapshot
from orderkit.flows.composing.cluster_questions import with_schemas
from orderkit.flows.composing.planner import OrderPlanner, with_costs
from orderkit.flows.composing.published_pack import loaded_workshop, needed_files
from orderkit.flows.composing.recording import Replay, check_one, differs
from orderkit.ports.pipeline_functions import PipelineFunctions


def plan_replayed(
    recorded: PlanSnapshot,
    order: str,
    files: Files,
    change: Sequence[FieldEdit] | Manifest,
    *,
    functions: PipelineFunctions,
    processes: Sequence[FunctionProcess] = (),
    by: tuple[PriceTable | None, Layer | None] = (None, None),
) -> Plan:
    """
    Return the plan of edits of a recorded order, or of a new XR, with the pack of these files.

    Args:
        processes: Functions to call instead of running them here.
        by: What things cost (None: the pack's own table), and kinds to judge by.

    Raises:
        InvalidInputError: The snapshot is of another order, the pack is broken, an edit names
            no field or has no value for it, or no step calls a function that was asked for.
        NotFoundError: The pack has no such kit, or no Composition for it.
        RefusedError: The XR is another object than the order's.
    """
    recorded_order = check_one(recorded, order)
    pack = read_pack(needed_files(files))
    pack.kit(recorded_order.kit)  # raises if there is no such kit
    kit = checked_kit(recorded_order.kit, pack.files)
    if isinstance(change, dict):
        _check_same(recorded_order.xr, change)
        home = metadata(recorded_order.xr).get("namespace")
        as_recorded = {"namespace": home} if home else {}
        new = {**change, "metadata": {**as_recorded, **metadata(change)}}
    else:
        targets = [resolve(kit, edit) for edit in change]
        new = {**recorded_order.xr, "spec": apply(recorded_order.xr.get("spec") or {}, targets)}
    prices, schemas = by
    workshop = loaded_workshop(pack, functions, processes)
    if schemas:
        workshop = with_schemas(workshop, schemas)
    if workshop.blueprint(recorded_order.xr) is None:
        raise NotFoundError(
            f"kit '{kit.name}' has no Composition in the pack", hint="orderkit kit check KIT"
        )
    replay = Replay(recorded)
    plan = OrderPlanner(replay if recorded.clustered else None, workshop).plan_step(
        recorded_order.xr, new
    )
    unknowns = (*differs(recorded, [kit]), *sorted(replay.missed))
    plan = replace(plan, before=replace(plan.before, unknowns=(*unknowns, *plan.before.unknowns)))
    if prices is None and PRICES in files:
        prices = read_prices(files[PRICES], name=str(PRICES))
    return with_costs(plan, prices)


def _check_same(old: Manifest, new: Manifest) -> None:
    if (Kind.of(old), metadata(old).get("name")) != (Kind.of(new), metadata(new).get("name")):
        raise RefusedError(
            f"{Kind.of(new)} {metadata(new).get('name')} is not the XR of the snapshot",
            hint="an XR of another name or kind is another order",
        )
