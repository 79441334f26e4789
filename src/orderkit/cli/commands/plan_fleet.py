"""``orderkit plan --kit``: what a changed pack does to all live orders of a kit."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from compositions.function_processes import processes_of
from orderkit.adapters.folders.plan_files import load_snapshot, manifest_files, save_snapshot
from orderkit.adapters.functions.local_functions import LocalFunctions
from orderkit.adapters.processes.child_process import LocalProcesses
from orderkit.cli.inputs import prices_of
from orderkit.cli.views import plan_views
from orderkit.core.plan.fleet_plan import Side
from orderkit.core.plan.plan_json import fleet_exit_code
from orderkit.flows.composing.recording import PlanRecorder, digest_of
from orderkit.flows.plan import fleet_planning
from orderkit.flows.plan.fleet_orders import OrderSelection
from orderkit.flows.plan.parallel_planning import FleetLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compositions.function_processes import FunctionProcess
    from orderkit.cli.commands.plan_request import PlanRequest
    from orderkit.core.plan.fleet_plan import FleetPlan
    from orderkit.core.plan.price_table import PriceTable


def run(request: PlanRequest) -> int:
    """
    Plan for many orders, print it, and return the exit code.

    Raises:
        OrderkitError: The pack, the platform or the price table cannot be read.
    """
    prices = prices_of(request.prices_file)
    recorder = PlanRecorder() if request.record_file else None
    if request.xr_folder:
        files = manifest_files(request.xr_folder)
        plan = fleet_planning.plan_files(_offline(request, prices), files, str(request.xr_folder))
    elif request.snapshot_file:
        recorded = load_snapshot(request.snapshot_file)
        plan = fleet_planning.plan_recorded(_offline(request, prices), recorded)
    else:
        plan = _plan_living(request, prices, recorder)
    if recorder and request.record_file:
        save_snapshot(recorder.snapshot(pack=plan.base.commit), request.record_file)
    plan_views.show_fleet(plan, request.shape, request.screen)
    return fleet_exit_code(plan)


def _plan_living(
    request: PlanRequest, prices: PriceTable | None, recorder: PlanRecorder | None
) -> FleetPlan:
    from orderkit.cli.commands.platform import rendered_for
    from orderkit.cli.connecting import connect, load_settings

    settings = load_settings(request.platform_file)
    platform, folder = connect(settings), request.pack_folder
    base = fleet_planning.published(platform, request.base or "")
    candidate = fleet_planning.FleetPack(
        Side(str(folder.resolve())), rendered_for(settings, folder)
    )
    fleet_request = _fleet_request(request, (base, candidate), prices, platform.functions)
    return fleet_planning.plan_living(
        platform, fleet_request, offline=request.offline, recorder=recorder
    )


def _offline(request: PlanRequest, prices: PriceTable | None) -> fleet_planning.FleetRequest:
    """Compare the pack's folder with a commit of its own repository."""
    from orderkit.adapters.folders.pack_folder import read_commit, read_folder

    folder, ref = request.pack_folder, request.base or "HEAD"
    base_files, files = read_commit(folder, ref), read_folder(folder)
    base = fleet_planning.FleetPack(Side(f"{folder} at {ref}", digest_of(base_files)), base_files)
    candidate = fleet_planning.FleetPack(Side(str(folder), digest_of(files)), files)
    return _fleet_request(request, (base, candidate), prices)


def _fleet_request(
    request: PlanRequest,
    packs: tuple[fleet_planning.FleetPack, fleet_planning.FleetPack],
    prices: PriceTable | None,
    configured: Sequence[FunctionProcess] = (),
) -> fleet_planning.FleetRequest:
    orders = OrderSelection(request.orders, request.teams)
    limits = FleetLimits(request.lanes or len(os.sched_getaffinity(0)), request.limit_s)
    called = (*configured, *processes_of(request.function_texts))
    return fleet_planning.FleetRequest(
        request.kit or "",
        *packs,
        LocalProcesses(),
        LocalFunctions(),
        limits,
        orders,
        prices,
        called,
        datetime.now(UTC).date(),
    )
