"""
Say beforehand what a campaign will do to each order. Nothing is written.

Every order is checked as its own change would be: rules of the kit, limits, approvals, the plan
with its dangers and costs. Also the drift of a fleet: how far its orders are from the skeleton.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Any, Literal

from ground.errors import OrderkitError
from ground.names import UNKNOWN_PERSON, CommitSha, RepoId
from ground.objects.kube_objects import dig, metadata
from ground.objects.values import shown
from orderkit.core.campaign.computing import Computer
from orderkit.core.campaign.definition import Campaign, FieldValues, TemplateFiles, What, Which
from orderkit.core.campaign.record import WaveRecord, assigned
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.kit_file import How
from orderkit.core.plan.cost import Costs, Sums, summed
from orderkit.core.plan.fleet_plan import counted
from orderkit.core.plan.plan_markdown import plain_line
from orderkit.flows.campaign.campaign_reads import (
    Selected,
    SelectedOrder,
    kit_of,
    select,
    shared_reads,
)
from orderkit.flows.campaign.files_kinds import check_kind, drafter_of
from orderkit.flows.campaign.files_work import Drafter, FilesDraft, is_reviewed
from orderkit.flows.campaign.order_work import HOW, living
from orderkit.flows.campaign.version_work import retirement
from orderkit.flows.campaign.wave_facts import ClusterLook
from orderkit.flows.change import ChangeRequest, change_living
from orderkit.flows.order.live_order import LiveOrder, main_head, read_xr
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    ledger_snapshot,
    published_pack,
)
from orderkit.ports.forge import FileRevision
from orderkit.ports.requesters import Requester

_AT_ONCE = 4
_NAMED = 3
Verdict = Literal["direct", "review", "same", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """What a campaign would do to one order."""

    order: str
    verdict: Verdict
    effects: tuple[str, ...] = ()
    """What changes, without the order's own name."""
    why: str = ""
    dangers: tuple[str, ...] = ()
    costs: Costs | None = None
    version: str = ""
    """The version that its XR has now, if the campaign is about versions."""

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of ``--json``."""
        return {
            "order": self.order,
            "verdict": self.verdict,
            "effects": list(self.effects),
            "why": self.why or None,
            "dangers": list(self.dangers),
        }


@dataclass(frozen=True, slots=True)
class Fold:
    """What is the same in several orders, said once."""

    kind: Literal["effect", "danger", "refused", "unknown", "same"]
    text: str
    orders: tuple[str, ...]

    @property
    def examples(self) -> str:
        """Some of the orders."""
        names, more = ", ".join(self.orders[:_NAMED]), len(self.orders) - _NAMED
        return f"{names} and {more:,} more" if more > 0 else names

    def __str__(self) -> str:
        return f"{self.text}: {counted(len(self.orders))} ({self.examples})"


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """What a campaign would do to all of its orders."""

    campaign: Campaign
    waves: tuple[WaveRecord, ...]
    orders: tuple[PlannedOrder, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of orders by verdict."""
        verdicts = [order.verdict for order in self.orders]
        return {v: verdicts.count(v) for v in dict.fromkeys(sorted(verdicts))}

    @property
    def costs(self) -> Sums | None:
        """What all orders together cost a month, before and after."""
        return summed([order.costs for order in self.orders if order.costs])

    @property
    def folds(self) -> tuple[Fold, ...]:
        """Everything that happens, each thing once."""
        return folded(self.orders)

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of ``--json``."""
        return {
            "campaign": self.campaign.name,
            "counts": dict(self.counts),
            "waves": [{"name": w.name, "orders": list(w.orders)} for w in self.waves],
            "costs": str(self.costs) if self.costs else None,
            "orders": [order.to_json() for order in self.orders],
            "notes": list(self.notes),
        }


def folded(orders: Sequence[PlannedOrder]) -> tuple[Fold, ...]:
    """Return what happens to orders, each thing once, what is bad first."""
    groups: dict[tuple[Any, str], list[str]] = {}
    for order in orders:
        for kind, text in _said(order):
            groups.setdefault((kind, text), []).append(order.order)
    folds = [Fold(kind, text, tuple(names)) for (kind, text), names in groups.items()]
    rank = ("refused", "unknown", "danger", "effect", "same")
    return tuple(sorted(folds, key=lambda f: (rank.index(f.kind), -len(f.orders), f.text)))


def _said(order: PlannedOrder) -> list[tuple[str, str]]:
    said = [("danger", danger) for danger in order.dangers]
    if order.verdict in ("refused", "unknown"):
        said.append((order.verdict, order.why))
    elif order.verdict == "same":
        said.append(("same", order.why or "nothing changes"))
    how = " (pull request)" if order.verdict == "review" else ""
    return [*said, *(("effect", f"{effect}{how}") for effect in order.effects)]


def plan_campaign(
    platform: Platform,
    campaign: Campaign,
    requester: Requester,
    *,
    on_order: Callable[[int, int], object] = lambda *_: None,
) -> CampaignPlan:
    """
    Plan a campaign over all of its orders.

    Args:
        on_order: Told how many orders of how many are planned.

    Raises:
        InvalidInputError: A field, an expression or a wave is refused.
        NotFoundError: An order or a team is not in the ledger.
    """
    computer = Computer(kit_of(platform, campaign))
    computer.check(campaign)
    checked = check_kind(platform, campaign, computer.kit)
    notes = checked.notes
    selected = select(platform, campaign, computer)
    waves = assigned(campaign, list(selected.orders))
    chosen = [selected.orders[order] for wave in waves for order in wave.orders]
    planner = planner_of(platform, campaign, computer, requester, chosen, revision=checked.revision)
    orders = each(chosen, planner, on_order)
    unknown = tuple(PlannedOrder(o, "unknown", why=why) for o, why in selected.unknown.items())
    planned = (*orders, *unknown)
    if campaign.what.version is not None and campaign.which.is_whole:
        versions = {order.order: order.version for order in planned}
        names = [str(metadata(order.xr)["name"]) for order in chosen]
        notes = (*notes, *retirement(platform.cluster, computer.kit, versions, names))
    return CampaignPlan(campaign, waves, planned, (*notes, *_notes(selected)))


def _notes(selected: Selected) -> tuple[str, ...]:
    if not selected.unknown:
        return selected.notes
    count = len(selected.unknown)
    note = f"{count} orders are left out, because nobody can tell whether they belong to it"
    return (*selected.notes, note)


@dataclass(frozen=True)
class Planner:
    """Plans the orders of one campaign, one at a time."""

    platform: Platform
    campaign: Campaign
    computer: Computer
    requester: Requester
    snapshot: RepositorySnapshot
    revision: str = ""

    @cached_property
    def _drafter(self) -> Drafter:
        return drafter_of(self.platform, self.campaign, self.computer.kit, self.revision)

    def __call__(self, order: SelectedOrder) -> PlannedOrder:
        """Plan one order; what is refused is part of the plan."""
        name = order.entry.order
        try:
            live = living(self.platform, self.computer.kit, order.entry, self.snapshot)
            head = self.platform.forge.head(live.repository)
            if head is None:
                return PlannedOrder(name, "refused", why="its repository has no commit")
            if self.campaign.what.fields is None:
                draft = self._drafter.draft(live, head, order.xr)
                return _planned_files(order, live, draft, self.campaign.how)
            return self._fields(order, live, head, self.campaign.what.fields)
        except OrderkitError as error:
            verdict: Verdict = "unknown" if error.retryable else "refused"
            return PlannedOrder(name, verdict, why=_nameless(order, str(error)))

    def _fields(
        self, order: SelectedOrder, live: LiveOrder, head: CommitSha, fields: FieldValues
    ) -> PlannedOrder:
        name = order.entry.order
        xr = read_xr(self.platform, live, head).xr
        values = self.computer.variables(order.entry, xr, order.xr)
        edits = self.computer.edits_of(fields, xr.get("spec") or {}, values)
        if not edits:
            return PlannedOrder(name, "same", why="it has the values already")
        request = ChangeRequest(
            order=name,
            edits=edits,
            requester=self.requester,
            base=head,
            how=HOW[self.campaign.how],
            reason=self.campaign.reason,
            dry_run=True,
            is_searched=True,
        )
        changed = change_living(self.platform, live, request)
        plan = changed.change_plan.plan if changed.change_plan else None
        faults = [f"{f.where}: {f.message}".removeprefix(": ") for f in plan.faults] if plan else []
        dangers = [f"{danger.message} ({danger.code})" for danger in plan.dangers] if plan else []
        verdict: Verdict = "review" if changed.how is How.REVIEW else "direct"
        if faults and verdict == "direct":
            verdict = "refused"
        effects = (f"{e.path} {shown(e.old)} → {shown(e.new)}" for e in changed.edits)
        return PlannedOrder(
            name,
            verdict,
            tuple(_nameless(order, effect) for effect in effects),
            _nameless(order, "; ".join(faults)),
            tuple(_nameless(order, danger) for danger in dangers),
            plan.costs if plan and not faults else None,
        )


def each(
    orders: Sequence[SelectedOrder],
    planner: Callable[[SelectedOrder], PlannedOrder],
    on_order: Callable[[int, int], object],
) -> tuple[PlannedOrder, ...]:
    """Plan several orders at once."""
    planned = []
    with InheritingThreads(_AT_ONCE, thread_name_prefix="planning") as pool:
        for found in pool.map(planner, orders):
            planned.append(found)
            on_order(len(planned), len(orders))
    return tuple(planned)


def planner_of(
    platform: Platform,
    campaign: Campaign,
    computer: Computer,
    requester: Requester,
    orders: Sequence[SelectedOrder],
    *,
    revision: str = "",
) -> Planner:
    """Return what plans one of the orders, and reads what is the same for all once."""
    snapshot = ledger_snapshot(platform)
    known: dict[tuple[RepoId, PurePosixPath], FileRevision] = {}
    with suppress(OrderkitError):  # without the cluster, each order's entry is asked for
        look = ClusterLook.at(platform, computer, [order.entry.order for order in orders])
        known = {(platform.ledger, file.path): file for file in look.followers(snapshot.blobs)}
    shared = replace(platform, forge=shared_reads(platform.forge, known))
    return Planner(shared, campaign, computer, requester, snapshot, revision)


def _planned_files(
    order: SelectedOrder, live: LiveOrder, draft: FilesDraft, how: str
) -> PlannedOrder:
    """Say what becomes of an order's files."""
    name = order.entry.order
    if not draft.steps:
        return PlannedOrder(name, "same", why=draft.same, version=draft.version)
    verdict: Verdict = "review" if is_reviewed(live, draft, how) else "direct"
    dangers = [f"{d.message} ({d.code})" for d in draft.plan.dangers] if draft.plan else []
    return PlannedOrder(
        name,
        verdict,
        tuple(_nameless(order, effect) for effect in draft.said),
        draft.note,
        tuple(_nameless(order, danger) for danger in dangers),
        draft.plan.costs if draft.plan else None,
        draft.version,
    )


def drift(
    platform: Platform,
    kits: Sequence[str],
    teams: Sequence[str] = (),
    *,
    on_order: Callable[[int, int], object] = lambda *_: None,
) -> tuple[PlannedOrder, ...]:
    """
    Say which orders differ from the pack, and in what: skeleton, version of the XR, Composition.

    Args:
        kits: Empty: all kits of the pack.

    Raises:
        InvalidInputError: The pack has no such kit.
        NotFoundError: The ledger has no such team.
    """
    names = kits or [kit.name for kit in published_pack(platform).kits()]
    found: list[PlannedOrder] = []
    for name in names:
        campaign = Campaign(
            name="drift",
            reason="drift",
            what=What(template=TemplateFiles()),
            which=Which(kit=name, teams=tuple(teams)),
        )
        computer = Computer(kit_of(platform, campaign))
        selected = select(platform, campaign, computer)
        orders = sorted(selected.orders.values(), key=lambda order: order.entry.order)
        planner = planner_of(platform, campaign, computer, Requester(UNKNOWN_PERSON), orders)
        found += each(orders, partial(_drifted, planner), on_order)
        found += [PlannedOrder(o, "unknown", why=why) for o, why in selected.unknown.items()]
    return tuple(found)


def _drifted(planner: Planner, order: SelectedOrder) -> PlannedOrder:
    """Say how an order differs: in files, in its version, or by a revision that it is pinned to."""
    plan, wanted = planner(order), planner.computer.kit.kind.api_version
    effects = list(plan.effects)
    # what follows the skeleton has its version
    version = _version_in_git(planner, order) if effects else wanted
    if version != wanted:
        effects.append(f"XR is {version}, the kit's is {wanted}")
    steering = dig(order.xr, "spec", "crossplane", default={})
    revision = dig(steering, "compositionRevisionRef", "name", default="")
    if steering.get("compositionUpdatePolicy") == "Manual" and revision:
        effects.append(f"pinned to Composition revision {revision}")
    verdict: Verdict = "direct" if effects and plan.verdict == "same" else plan.verdict
    return replace(plan, effects=tuple(effects), verdict=verdict)


def _version_in_git(planner: Planner, order: SelectedOrder) -> str:
    """Return the version of an order's XR as people see it: the cluster converts to any."""
    platform, kit = planner.platform, planner.computer.kit
    with suppress(OrderkitError):  # the plan says why it cannot be read
        live = living(platform, kit, order.entry, planner.snapshot)
        head = main_head(platform, live.repository)
        return str(read_xr(platform, live, head).xr["apiVersion"])
    return kit.kind.api_version


def _nameless(order: SelectedOrder, text: str) -> str:
    """Return a text without the order's own names, so that it can be said once for many."""
    # the whole name first: it contains the other one
    for own in (order.entry.order, order.entry.order.partition("-")[2]):
        text = text.replace(own, "<order>")
    return text


def markdown(plan: CampaignPlan) -> str:
    """Return a plan as the description of a pull request."""
    campaign = plan.campaign
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in plan.counts.items())
    lines = [campaign.reason, "", f"**{counted(len(plan.orders))}: {counts or 'none'}.**", ""]
    lines += [f"- {fold.kind}: {plain_line(str(fold))}" for fold in plan.folds[:100]]
    if plan.costs:
        lines.append(f"- costs: {plain_line(str(plan.costs))}")
    lines += ["", "| Wave | Orders |", "|---|---|"]
    lines += [f"| {plain_line(wave.name)} | {len(wave.orders):,} |" for wave in plan.waves]
    lines += ["", *(f"- {plain_line(note)}" for note in plan.notes)]
    start = f"Merging this starts nothing: `orderkit campaign start {campaign.name}` does."
    return "\n".join([*lines, "", start]) + "\n"
