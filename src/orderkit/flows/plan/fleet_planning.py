"""
Plan what a changed kit does to all its live orders, by comparing two packs.

Each order is assembled with both packs, and its composed resources are compared. Stored values that
survive a changed XRD (old defaults) are kept, as the API server keeps them. Writes nothing.

`BulkLookup` reads a cluster in bulk: it lists a kind once instead of reading its objects one by
one. The first few objects of a kind are read singly; then the whole kind is listed and cached, so
all answers about a kind are of one moment. If listing is not allowed, objects are read singly.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

from compositions.function_processes import FunctionProcess
from ground.errors import AccessError, InvalidInputError, NotFoundError, OrderkitError
from ground.names import CommitSha, Files
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.compositions import composition_of
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack, read_pack
from orderkit.core.plan.fleet_plan import FleetPlan, OrderPlan, Side, with_collisions
from orderkit.core.plan.live_state import default_changes, defaults_of, keeps, with_stored
from orderkit.core.plan.price_table import PRICES, PriceTable, read_prices
from orderkit.core.plan.snapshot import PlanSnapshot, RecordedOrder
from orderkit.flows.composing.cluster_questions import (
    NOT_ASKED,
    Lookup,
    as_living,
    living,
    observed_of,
)
from orderkit.flows.composing.published_pack import called_functions, needed_files, refuse_uncalled
from orderkit.flows.composing.recording import PlanRecorder, Replay, differs
from orderkit.flows.plan.fleet_orders import (
    CLUSTER,
    FILE,
    GIT,
    FleetReading,
    ObjectLookup,
    OrderSelection,
    ReadOrder,
    read_file_orders,
    read_orders,
)
from orderkit.flows.plan.parallel_planning import FleetLimits, OrderToPlan, plan_all
from orderkit.flows.plan.planning_process import AssemblerSetup
from orderkit.flows.platform import Platform, pack_files
from orderkit.ports.cluster import NoSuchKindError, ObjectList
from orderkit.ports.pipeline_functions import PipelineFunctions
from orderkit.ports.processes import Processes

_SINGLY = 5


class BulkLookup:
    """A `Lookup` that keeps what it read. Safe to use from several threads."""

    def __init__(self, cluster: Lookup) -> None:
        self._place = cluster
        self._lock = threading.RLock()
        self._singly: Counter[Kind] = Counter()
        self._objects: dict[ObjectKey, Manifest | None] = {}
        self._kinds: dict[Kind, ObjectList | NoSuchKindError] = {}
        self._closed: set[Kind] = set()
        self._plurals: dict[Kind, str | None] = {}

    def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it does not exist."""
        with self._lock:
            if key in self._objects:
                return self._objects[key]
            if key.kind not in self._kinds and key.kind not in self._closed:
                self._singly[key.kind] += 1
                if self._singly[key.kind] > _SINGLY:
                    self._read_kind(key.kind)
            if key.kind in self._kinds:
                self._of_kind(key.kind)
                return self._objects.get(key)
            self._objects[key] = manifest = self._place.get(key)
            return manifest

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        """Return the objects of a kind."""
        with self._lock:
            if kind in self._closed:
                return self._place.list(kind, namespace=namespace)
            if kind not in self._kinds and not self._read_kind(kind):
                return self._place.list(kind, namespace=namespace)
            objects = self._of_kind(kind)
        if namespace is None:
            return objects
        items = (
            manifest for manifest in objects.items if ObjectKey.of(manifest).namespace == namespace
        )
        return ObjectList(tuple(items), objects.resource_version)

    def plural(self, kind: Kind) -> str | None:
        """Return the resource name of a kind."""
        with self._lock:
            if kind not in self._plurals:
                self._plurals[kind] = self._place.plural(kind)
            return self._plurals[kind]

    def serves(self, kind: Kind) -> bool:
        """Say whether the kind is served."""
        return self.plural(kind) is not None

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        """Return the OpenAPI v3 document of a group's version."""
        return self._place.openapi(group, version)

    def _of_kind(self, kind: Kind) -> ObjectList:
        objects = self._kinds[kind]
        if isinstance(objects, NoSuchKindError):
            raise NoSuchKindError(str(objects))
        return objects

    def _read_kind(self, kind: Kind) -> bool:
        """List a kind and keep it; say whether that was allowed."""
        try:
            objects = self._place.list(kind)
        except NoSuchKindError as error:
            self._kinds[kind] = error
            return True
        except AccessError:
            self._closed.add(kind)  # its objects are read singly from now on
            return False
        self._kinds[kind] = objects
        self._objects.update((ObjectKey.of(manifest), manifest) for manifest in objects.items)
        return True


@dataclass(frozen=True, slots=True)
class FleetPack:
    """One of the two packs."""

    side: Side
    files: Files


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """What is to be planned."""

    kit: str
    base: FleetPack
    candidate: FleetPack
    processes: Processes
    functions: PipelineFunctions
    limits: FleetLimits
    selection: OrderSelection = field(default_factory=OrderSelection)
    prices: PriceTable | None = None
    """What things cost; None: as the other pack says, if it does."""
    called: tuple[FunctionProcess, ...] = ()
    """Functions that both packs call as processes."""
    today: dt.date | None = None
    """By which the age of the other pack's prices is judged; None: not judged."""


def published(platform: Platform, ref: str = "") -> FleetPack:
    """
    Return the pack as published to a platform.

    Args:
        ref: A branch or commit of the platform's pack repository; empty: main.

    Raises:
        NotFoundError: Nothing is published, or there is no such commit.
        RemoteError: The forge.
    """
    repo = platform.pack_repo
    commit = platform.forge.head(repo, ref or "main") or CommitSha(ref)
    if not commit:
        raise NotFoundError(
            f"{repo}: no pack on {platform.forge.base_url}", hint="the platform is not bootstrapped"
        )
    blobs = platform.forge.tree(repo, commit)
    files = pack_files(platform, commit, needed_files(dict.fromkeys(blobs, b"")))
    return FleetPack(Side(f"{repo} at {commit[:8]}", commit), files)


def plan_living(
    platform: Platform,
    request: FleetRequest,
    *,
    offline: bool = False,
    recorder: PlanRecorder | None = None,
) -> FleetPlan:
    """
    Plan for the live orders of a platform.

    Args:
        offline: Ask the cluster nothing; every XR is read from Git.
        recorder: Records everything the plan is computed from.

    Raises:
        NotFoundError: The kit, or an order that is asked for, does not exist.
        InvalidInputError: A pack is broken.
        RemoteError: The ledger cannot be read.
    """
    herd = None if offline else BulkLookup(platform.cluster)
    cluster = recorder.wrap(herd) if recorder else herd
    fleet = _Fleet(request, cluster, recorder)
    return fleet.planned(lambda kit: read_orders(platform, kit, request.selection, cluster))


def plan_files(
    request: FleetRequest, files: Iterable[tuple[str, bytes | str]], folder: str
) -> FleetPlan:
    """
    Plan for XRs in the files of a folder; no platform is needed.

    Args:
        files: Name and bytes of each file, or why it cannot be read.
        folder: What messages call the folder.

    Raises:
        NotFoundError: The kit does not exist, or the files hold none of its XRs.
        InvalidInputError: A pack is broken, or an order that is asked for is not there.
    """
    fleet = _Fleet(request, None, None)
    return fleet.planned(lambda kit: read_file_orders(files, folder, kit, request.selection))


def plan_recorded(request: FleetRequest, recorded: PlanSnapshot) -> FleetPlan:
    """
    Plan for the orders of a snapshot; neither platform nor cluster is needed.

    Raises:
        NotFoundError: The kit does not exist, or the snapshot has no order of it.
        InvalidInputError: A pack is broken, or an order that is asked for is not in it.
    """
    replay = Replay(recorded)
    fleet = _Fleet(request, replay if recorded.clustered else None, None)
    fleet_plan = fleet.planned(lambda kit: _recorded(recorded, kit, request.selection))
    notes = (
        *fleet_plan.notes,
        *differs(recorded, [fleet.base.kit(request.kit)]),
        *sorted(replay.missed),
    )
    return replace(fleet_plan, notes=notes)


def _recorded(recorded: PlanSnapshot, kit: Kit, selection: OrderSelection) -> FleetReading:
    recorded_orders = [recorded.order(name) for name in selection.orders] or list(recorded.orders)
    orders = [
        ReadOrder(order.order, order.team, order.xr, "snapshot")
        for order in recorded_orders
        if order.kit == kit.name and (not selection.teams or order.team in selection.teams)
    ]
    if not orders:
        raise NotFoundError(f"the snapshot has no order of kit '{kit.name}'")
    return FleetReading(tuple(orders))


class _Fleet:
    """One plan over many orders."""

    def __init__(
        self, request: FleetRequest, cluster: Lookup | None, recorder: PlanRecorder | None
    ) -> None:
        self._wanted, self._place, self._recorder = request, cluster, recorder
        self.base: Pack = read_pack(request.base.files)
        self._candidate = read_pack(request.candidate.files)
        self._kit, self._other = self.base.kit(request.kit), self._candidate.kit(request.kit)
        checked_kit(request.kit, self._candidate.files)
        self._prices, self._priceless = _prices(request)
        self._defaults = defaults_of(self._kit.xrd)
        self._kinds = set(_assembled(self.base))
        if (self._kit.kind.group, self._kit.kind.kind) not in self._kinds:
            raise NotFoundError(
                f"kit '{request.kit}' has no Composition in {request.base.side.title}",
                hint=f"gitops/apis/{request.kit}/ should hold one",
            )

    def planned(self, read: Callable[[Kit], FleetReading]) -> FleetPlan:
        begun_s = time.monotonic()
        reading = read(self._kit)
        if reading.facts:
            self._place = ObjectLookup(reading.facts)
        work = [self._work(fleet_order) for fleet_order in reading.orders]
        read_s = time.monotonic() - begun_s
        to_plan = [work_item for work_item in work if isinstance(work_item, OrderToPlan)]
        planned = self._all(to_plan)
        if self._recorder is not None:
            for order, plan in zip(to_plan, planned, strict=True):
                objects = {**order.observed, "": order.xr}
                self._recorder.leave_out(objects, plan.secret_fields)
        planned = with_collisions(planned)
        orders = (*planned, *(work_item for work_item in work if isinstance(work_item, OrderPlan)))
        return FleetPlan(
            (self._kit.name,),
            self._wanted.base.side,
            self._wanted.candidate.side,
            tuple(sorted(orders, key=lambda order_plan: order_plan.order)),
            tuple(
                replace(
                    change, orders=sum(keeps(o.stored, change, self._defaults) for o in planned)
                )
                for change in default_changes(self._defaults, defaults_of(self._other.xrd))
            ),
            (*self._notes(reading.orders), *reading.notes, *self._priceless),
            read_s,
            time.monotonic() - begun_s - read_s,
        )

    def _all(self, work: Sequence[OrderToPlan]) -> list[OrderPlan]:
        if not work:
            return []
        base, other = (
            needed_files(pack.files) for pack in (self._wanted.base, self._wanted.candidate)
        )
        setup = AssemblerSetup(
            base,
            self._wanted.functions,
            processes=self._processes(),
            asks_cluster=not isinstance(self._place, (NoneType, Replay, ObjectLookup)),
        )
        packs = (
            setup,
            replace(setup, files=other, defaults=self._defaults, prices=self._prices),
        )
        return plan_all(work, packs, self._place, self._wanted.limits, self._wanted.processes)

    def _processes(self) -> tuple[FunctionProcess, ...]:
        """
        Return the functions to call.

        Raises:
            InvalidInputError: No step of either pack calls a function that was asked for.
        """
        called = called_functions(self.base) | called_functions(self._candidate)
        refuse_uncalled(self._wanted.called, called)
        return tuple(replace(process, is_asked=False) for process in self._wanted.called)

    def _work(self, fleet_order: ReadOrder) -> OrderToPlan | OrderPlan:
        """Return what there is to plan of an order, or why it cannot be."""
        if fleet_order.xr is None:
            return OrderPlan(
                fleet_order.order, fleet_order.team, None, fleet_order.why_not, fleet_order.source
            )
        if self._recorder is not None:
            order = RecordedOrder(
                fleet_order.order, self._kit.name, fleet_order.xr, fleet_order.team
            )
            self._recorder.note(order, self._kit)
        try:
            return self._prepared(fleet_order, fleet_order.xr)
        except OrderkitError as error:
            return OrderPlan(
                fleet_order.order, fleet_order.team, None, str(error), fleet_order.source
            )

    def _prepared(self, fleet_order: ReadOrder, xr: Manifest) -> OrderToPlan:
        root: Manifest | None = xr
        notes: tuple[str, ...] = ()
        if fleet_order.source == FILE:
            root = None
        elif fleet_order.source != CLUSTER:
            root, notes = living(self._place, xr) if self._place is not None else (None, ())
            xr = as_living(with_stored(xr, root, self._defaults), root, self._kit.xrd)
        observed = dict(observed_of(self._place, root, self._is_xr)) if root else {}
        return OrderToPlan(
            fleet_order.order,
            fleet_order.team,
            _plain(xr),
            fleet_order.source,
            {path: _plain(manifest) for path, manifest in observed.items()},
            notes,
            is_stored=root is not None and root.get("spec") == xr.get("spec"),
        )

    def _is_xr(self, manifest: Manifest) -> bool:
        kind = Kind.of(manifest)
        return (kind.group, kind.kind) in self._kinds

    def _notes(self, orders: Sequence[ReadOrder]) -> Iterator[str]:
        """Say where the XRs were read, and whose orders compose this kind as a part."""
        by = {
            source: sum(fleet_order.source == source for fleet_order in orders)
            for source in (CLUSTER, GIT)
        }
        if by[CLUSTER]:
            yield f"{by[CLUSTER]:,} XRs as the cluster has them" + (
                f", {by[GIT]:,} from Git: the cluster does not have them" if by[GIT] else ""
            )
        elif by[GIT]:
            yield f"{by[GIT]:,} XRs from Git"
        if self._place is None or any(fleet_order.source == FILE for fleet_order in orders):
            yield NOT_ASKED
        yield "outcomes are judged by the packs' own schemas and rights"
        for kit in self._candidate.kits():
            if any(composed.kind == self._kit.kind.kind for composed in kit.composes):
                yield (
                    f"orders of kit '{kit.name}' compose {self._kit.kind.kind}s too: "
                    f"orderkit plan --kit {kit.name}"
                )


def _prices(request: FleetRequest) -> tuple[PriceTable | None, tuple[str, ...]]:
    """Return the price table that holds, and why there is none if the pack's cannot be read."""
    data = request.candidate.files.get(PRICES)
    if request.prices is not None or data is None:
        return request.prices, ()
    try:
        return read_prices(data, name=str(PRICES), today=request.today), ()
    except InvalidInputError as error:
        return None, (f"costs are not known: {error}",)


def _assembled(pack: Pack) -> Iterator[tuple[str, str]]:
    """Yield group and kind of each XR that a pack has a Composition for."""
    for kit in pack.kits():
        if composition_of(pack.files, kit) is not None:
            yield kit.kind.group, kit.kind.kind


def _plain(manifest: Manifest) -> Manifest:
    """Return an object without what only the API server reads."""
    meta = {key: value for key, value in metadata(manifest).items() if key != "managedFields"}
    return {**manifest, "metadata": meta}
