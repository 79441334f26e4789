"""``orderkit plan ORDER``: edits, a file or two commits, on the platform or from a snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compositions.function_processes import processes_of
from orderkit.cli.inputs import edits, prices_of, read_one, schemas_of
from orderkit.cli.options import connect_to
from orderkit.cli.time_limits import within
from orderkit.cli.views import plan_views
from orderkit.core.plan.plan_json import exit_code

if TYPE_CHECKING:
    from kubeschema.known import Layer
    from orderkit.cli.commands.plan_request import PlanRequest
    from orderkit.core.plan import Plan
    from orderkit.core.plan.price_table import PriceTable
    from orderkit.flows.plan.order_plan import Basis
    from orderkit.flows.platform import Platform


def run(request: PlanRequest) -> int:
    """
    Plan a change of one order, print it, and return the exit code.

    Raises:
        OrderkitError: The order cannot be planned, or not in time.
    """
    order = request.order or ""
    prices, schemas = prices_of(request.prices_file), schemas_of(request.schemas_folder)
    with within(request.time_limit_s):
        if request.snapshot_file:
            plan = _from_snapshot(request, order, (prices, schemas))
        else:
            plan = _from_platform(request, order, (prices, schemas))
    plan_views.show(order, plan, request.shape, request.screen)
    if request.graph:
        plan_views.draw(plan, request.graph)
    return exit_code(plan)


def _from_snapshot(
    request: PlanRequest, order: str, by: tuple[PriceTable | None, Layer | None]
) -> Plan:
    from orderkit.adapters.folders.pack_folder import read_folder
    from orderkit.adapters.folders.plan_files import load_snapshot
    from orderkit.adapters.functions.local_functions import LocalFunctions
    from orderkit.flows.plan.replaying import plan_replayed

    assert request.snapshot_file is not None  # noqa: S101 - the caller has looked
    change = read_one(request.file) if request.file else edits(request.assignments)
    pack_files = read_folder(request.pack_folder)
    recorded = load_snapshot(request.snapshot_file)
    functions = LocalFunctions()
    processes = processes_of(request.function_texts)
    return plan_replayed(
        recorded, order, pack_files, change, functions=functions, processes=processes, by=by
    )


def _from_platform(
    request: PlanRequest, order: str, by: tuple[PriceTable | None, Layer | None]
) -> Plan:
    # lazy: a snapshot needs no flow of changes
    from orderkit.adapters.folders.plan_files import save_snapshot
    from orderkit.flows.composing.recording import PlanRecorder
    from orderkit.flows.plan.order_plan import Basis

    platform = _with_functions(
        connect_to(request.platform_file, reads_only=True), request.function_texts
    )
    recorder = PlanRecorder(order) if request.record_file else None
    plan = _planned(platform, request, order, Basis(request.offline, *by, recorder))
    if recorder and request.record_file:
        pack_commit = platform.forge.head(platform.pack_repo) or ""
        save_snapshot(recorder.snapshot(pack=pack_commit), request.record_file)
    return plan


def _planned(platform: Platform, request: PlanRequest, order: str, basis: Basis) -> Plan:
    from orderkit.flows.change import ChangeRequest
    from orderkit.flows.change.plan_requests import plan_between, plan_edits, plan_xr
    from orderkit.ports.requesters import Requester

    if request.head:
        return plan_between(platform, order, request.base, request.head, basis=basis)
    if request.file:
        return plan_xr(platform, order, read_one(request.file), basis=basis)
    requester = Requester(request.requester)
    change = ChangeRequest(order=order, edits=edits(request.assignments), requester=requester)
    return plan_edits(platform, change, basis=basis)


def _with_functions(platform: Platform, texts: tuple[str, ...]) -> Platform:
    """
    Return the platform with functions that plans shall call, given as NAME=HOST:PORT.

    Raises:
        InvalidInputError: A text is none.
    """
    return replace(platform, functions=(*platform.functions, *processes_of(texts)))
