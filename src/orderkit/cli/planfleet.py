"""``orderkit plan --kit``: what a changed pack does to all living orders of a kit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orderkit.cli import fleetviews
from orderkit.cli.inputs import prices_of
from orderkit.core.plan.fleet import Side
from orderkit.core.plan.fleetdata import fleet_exit_code
from orderkit.flows.planning import fleet
from orderkit.flows.planning.fleetorders import Wanted
from orderkit.flows.planning.lanes import Limits
from orderkit.flows.planning.recording import Recorder, digest_of, load, save

if TYPE_CHECKING:
    from orderkit.cli.planrequest import PlanRequest
    from orderkit.core.plan.fleet import FleetPlan
    from orderkit.core.plan.prices import PriceTable


def run(request: PlanRequest) -> int:
    """
    Plan for many orders, print it, and return the exit code.

    Raises:
        OrderkitError: The pack, the platform or the price table cannot be read.
    """
    prices = prices_of(request.prices_file)
    recorder = Recorder() if request.record_file else None
    if request.xr_folder:
        plan = fleet.plan_folder(_offline(request, prices), request.xr_folder)
    elif request.snapshot_file:
        plan = fleet.plan_recorded(_offline(request, prices), load(request.snapshot_file))
    else:
        plan = _plan_living(request, prices, recorder)
    if recorder and request.record_file:
        save(recorder.snapshot(pack=plan.base.commit), request.record_file)
    fleetviews.show(plan, request.shape, request.screen)
    return fleet_exit_code(plan)


def _plan_living(
    request: PlanRequest, prices: PriceTable | None, recorder: Recorder | None
) -> FleetPlan:
    from orderkit.cli.connecting import connect, load_settings
    from orderkit.cli.platform import rendered_for

    settings = load_settings(request.platform_file)
    platform, folder = connect(settings), request.pack_folder
    base = fleet.published(platform, request.base or "")
    candidate = fleet.FleetPack(Side(str(folder.resolve())), rendered_for(settings, folder))
    asked = _fleet_request(request, (base, candidate), prices)
    return fleet.plan_living(platform, asked, offline=request.offline, recorder=recorder)


def _offline(request: PlanRequest, prices: PriceTable | None) -> fleet.FleetRequest:
    """Compare the pack's folder with a commit of its own repository."""
    from orderkit.adapters.packfolder import read_commit, read_folder

    folder, ref = request.pack_folder, request.base or "HEAD"
    base_files, files = read_commit(folder, ref), read_folder(folder)
    base = fleet.FleetPack(Side(f"{folder} at {ref}", digest_of(base_files)), base_files)
    candidate = fleet.FleetPack(Side(str(folder), digest_of(files)), files)
    return _fleet_request(request, (base, candidate), prices)


def _fleet_request(
    request: PlanRequest,
    packs: tuple[fleet.FleetPack, fleet.FleetPack],
    prices: PriceTable | None,
) -> fleet.FleetRequest:
    orders = Wanted(request.orders, request.teams)
    limits = Limits(request.lanes, request.limit_s)
    return fleet.FleetRequest(request.kit or "", *packs, orders, limits, prices)
