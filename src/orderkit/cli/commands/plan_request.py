"""
What ``orderkit plan`` was asked for, and its answer for one order.

`PlanRequest` says which options go together. `run_order` answers it for an order with edits, a file
or two commits, on the platform or from a snapshot; ``plan_fleet`` and ``plan_pulls``, which import
much more, answer the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compositions.function_processes import processes_of
from orderkit.cli.inputs import edits, prices_of, read_one, schemas_of
from orderkit.cli.options import connect_to
from orderkit.cli.time_limits import within
from orderkit.cli.views import plan_views
from orderkit.cli.views.plan_views import Screen, Shape, check_drawable
from orderkit.core.plan.plan_json import exit_code

if TYPE_CHECKING:
    from kubeschema.known import Layer
    from orderkit.core.plan import Plan
    from orderkit.core.plan.price_table import PriceTable
    from orderkit.flows.plan.order_plan import Basis
    from orderkit.flows.platform import Platform

_PLANS_OF_AN_ORDER, _PLATFORM_S = 3, 60.0
"""Before, after, and as a new order would be; and what asking the platform may take."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The options of one ``orderkit plan``."""

    order: str | None
    assignments: tuple[str, ...]
    file: Path | None
    base: str | None
    head: str | None
    pull: str | None
    """An open pull request, as OWNER/REPO#N."""
    no_post: bool
    offline: bool
    graph: Path | None
    prices_file: Path | None
    full: bool
    color: str
    schemas_folder: Path | None
    function_texts: tuple[str, ...]
    requester: str
    platform_file: str | None
    shape: Shape | None
    kit: str | None
    pack_folder: Path
    orders: tuple[str, ...]
    teams: tuple[str, ...]
    xr_folder: Path | None
    limit_s: float
    lanes: int
    record_file: Path | None
    snapshot_file: Path | None

    def check(self) -> None:
        """
        Refuse options that contradict each other, before anything is read.

        Raises:
            click.UsageError: They do. InvalidInputError: the graph has an ending we cannot draw.
        """
        self._check_sources()
        if self.pull or self.no_post:
            self._check_pull()
        elif self.kit is not None:
            self._check_kit()
        else:
            self._check_order()
        if self.graph:
            check_drawable(self.graph)

    def _check_sources(self) -> None:
        if self.kit is None and (self.orders or self.teams or self.xr_folder):
            raise click.UsageError("--order, --team and --xrs go with --kit")
        if sum(map(bool, (self.snapshot_file, self.xr_folder, self.record_file))) > 1:
            raise click.UsageError("--snapshot, --xrs and --record: one of them")

    def _check_pull(self) -> None:
        excluded_options = (
            *(self.order, self.file, self.base, self.head, self.schemas_folder),
            *(self.kit, self.record_file, self.snapshot_file),
        )
        if not self.pull or any(excluded_options):
            raise click.UsageError("--pull-request stands alone; --no-post goes with it")

    def _check_kit(self) -> None:
        excluded_options = (self.order, self.file, self.head, self.graph, self.schemas_folder)
        if any(excluded_options):
            raise click.UsageError("--kit goes without ORDER and what is for one order")

    def _check_order(self) -> None:
        if self.order is None or sum(map(bool, (self.assignments, self.file, self.head))) != 1:
            raise click.UsageError(
                "give ORDER and FIELD=VALUE, --file FILE or --head COMMIT, one of them; "
                "or --kit KIT, or --pull-request OWNER/REPO#N"
            )
        if self.base and not self.head:
            raise click.UsageError("--base goes with --head")
        if self.snapshot_file and self.head:
            raise click.UsageError("a snapshot has no commits: give FIELD=VALUE or --file FILE")

    @property
    def screen(self) -> Screen:
        return Screen.of(full=self.full, color=self.color)

    @property
    def time_limit_s(self) -> float:
        """How long the plan of one order may take altogether."""
        return _PLATFORM_S + self.limit_s * _PLANS_OF_AN_ORDER


def run_order(request: PlanRequest) -> int:
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
