"""
Plan an order or a step of one, by running the order's own stations, and say what it costs.

Reads what exists from the cluster: the order's composed resources keep their names, and objects
that stations require are looked up. Without a cluster, the plan is made from the files and says so.
Writes nothing.

`priced` says what a plan costs: by the price table that was given, else by the platform's own,
which is ``gitops/prices.yaml`` of its pack, as published; a platform without one has plans without
costs. A broken table of the platform does not stop a plan; a broken table given for this plan does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ground.errors import InvalidInputError, NotFoundError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import ABSENT, in_group, value_at
from orderkit.core.plan import (
    Assembly,
    AssemblyContext,
    Plan,
    assemble,
    compare,
    with_guesses,
    with_secret_traces,
)
from orderkit.core.plan.comparison import Drift
from orderkit.core.plan.cost import costs_of
from orderkit.core.plan.dangers import DangerContext
from orderkit.core.plan.live_state import ObservedOrder, from_live_state, paused_parts, with_stored
from orderkit.core.plan.price_table import PriceTable
from orderkit.core.plan.secret_traces import secret_fields
from orderkit.flows.composing.cluster_questions import (
    NOT_ASKED,
    AnsweredQuestions,
    Lookup,
    as_living,
    judged,
    living,
    not_run_there,
    observed_of,
)
from orderkit.flows.composing.published_pack import published_workshop
from orderkit.flows.composing.recording import PlanRecorder, Replay
from orderkit.flows.platform import Platform, published_pack, published_prices

if TYPE_CHECKING:
    from orderkit.flows.platform import Platform


def priced(
    platform: Platform, plan: Plan, table: PriceTable | None = None, pack: CommitSha | None = None
) -> Plan:
    """
    Return a plan with what it costs. One that would be refused costs nothing yet.

    Args:
        table: None: the platform's own.
        pack: The pack's commit; None: the head.

    Raises:
        RemoteError: The forge.
    """
    try:
        price_table = table or published_prices(platform, pack)
    except InvalidInputError as error:
        unknowns = (*plan.after.unknowns, f"costs are not known: {error}")
        return replace(plan, after=replace(plan.after, unknowns=unknowns))
    return with_costs(plan, price_table)


def with_costs(plan: Plan, table: PriceTable | None) -> Plan:
    """Return a plan with what it costs by a table, if there is one."""
    if table is None or plan.faults:
        return plan
    return replace(plan, costs=costs_of(plan.before, plan.after, table))


def plan_new(platform: Platform, kit: Kit, xr: Manifest, pack: CommitSha | None = None) -> Plan:
    """
    Return the priced plan of a new order's XR, as Argo CD will apply it.

    Raises:
        NotFoundError: No pack is published, or the kit has no Composition in it.
        RefusedError: Another kit defines the kind of this one too.
        RemoteError: The forge or the cluster.
    """
    workshop = workshop_of(platform, kit, xr, pack)
    plan = OrderPlanner(platform.cluster, workshop).plan_new(xr)
    plan = replace(plan, fields=in_group(plan.fields, kit.unfold))
    return priced(platform, plan, pack=pack)


def workshop_of(
    platform: Platform, kit: Kit, xr: Manifest, pack: CommitSha | None = None
) -> AssemblyContext:
    """
    Return the published workshop that composes a kit's XR.

    Args:
        pack: The pack's commit; None: the head.

    Raises:
        NotFoundError: No pack is published, or the kit has no Composition in it.
        RefusedError: Another kit defines the kind of this one too.
    """
    workshop = published_workshop(platform, pack)
    if workshop.blueprint(xr) is None:
        published_pack(platform).check_only(kit.name)
        raise NotFoundError(
            f"kit '{kit.name}' has no Composition in {platform.pack_repo}",
            hint=f"gitops/apis/{kit.name}/ should hold one",
        )
    return workshop


@dataclass(frozen=True, slots=True)
class OrderPlanner:
    """Plans for the orders of one workshop. Nothing is kept between two of them."""

    cluster: Lookup | None
    """Where the orders live; None: it is asked nothing, and the plan says what it lacks."""
    workshop: AssemblyContext
    recorder: PlanRecorder | None = None
    """Is told what not to write down."""

    def plan_new(self, xr: Manifest) -> Plan:
        """
        Return the plan of an order that does not exist yet.

        Raises:
            KeyError: Its kind has no blueprint.
            RemoteError: What a station asks for could not be looked up.
        """
        unknowns = () if self.cluster is not None else (NOT_ASKED,)
        workshop, desk = self._asking()
        after = with_guesses(assemble(xr, workshop), xr, workshop, {})
        after = with_secret_traces(after, xr, workshop, {})
        desk.check()
        nothing = Assembly({**xr, "spec": {}, "status": {}}, {}, {}, unknowns=unknowns)
        context = DangerContext(workshop.laws, (*workshop.existing, *desk.objects))
        return compare(nothing, judged(self.cluster, workshop, nothing, after), context=context)

    def plan_step(self, old: Manifest, new: Manifest, *, historical: bool = False) -> Plan:
        """
        Return the plan of the step from one XR to another, beginning with the live state.

        Args:
            historical: `old` is not what is delivered: the live state is not a starting point.

        Raises:
            KeyError: Their kind has no blueprint.
            RemoteError: What a station asks for could not be looked up.
        """
        root, unknowns = living(self.cluster, old)
        is_xr = self._is_xr
        observed = dict(observed_of(self.cluster, root, is_xr)) if root else {}
        workshop, desk = self._asking()
        living_xr, wanted_xr = (self._as_stored(xr, old, root) for xr in (old, new))
        before = assemble(living_xr, workshop, observed=observed)
        before = with_secret_traces(before, living_xr, workshop, observed)
        if self.recorder is not None:
            live = {**observed, "": root or old}
            self.recorder.leave_out(live, secret_fields(before, live))
        made_by = before.made_by
        after = assemble(wanted_xr, workshop, observed=before.observed, attributed=made_by)
        after = with_guesses(after, wanted_xr, workshop, observed, attributed=made_by)
        after = with_secret_traces(
            after, wanted_xr, workshop, before.observed, attributed=made_by, before=before
        )
        fresh = after
        if after.renamed:
            fresh = assemble(wanted_xr, workshop)
            fresh = with_secret_traces(fresh, wanted_xr, workshop, {})
        desk.check()
        made_paths = observed if self.cluster is not None else None
        after = judged(self.cluster, workshop, before, after, made_paths=made_paths)
        before = replace(before, unknowns=(*unknowns, *before.unknowns))
        live_order = None
        drift: tuple[Drift, ...] = ()
        if root is not None:
            live_order = ObservedOrder(root, observed, emptied=isinstance(self.cluster, Replay))
        paused = paused_parts(before, after, live_order, old)
        if live_order is not None and not historical:
            before, drift = from_live_state(before, after, live_order, old)
        context = DangerContext(workshop.laws, (*workshop.existing, *desk.objects))
        return compare(before, after, fresh=fresh, context=context, drift=drift, paused=paused)

    def _as_stored(self, xr: Manifest, old: Manifest, root: Manifest | None) -> Manifest:
        """Return an XR with the defaults that are stored where Git left the field alone so far."""
        blueprint = self.workshop.blueprint(xr)
        spec = old.get("spec") or {}
        defaults = blueprint.defaults if blueprint else {}
        alone = {
            steps: default for steps, default in defaults.items() if value_at(spec, steps) is ABSENT
        }
        stored = with_stored(xr, root, alone)
        return as_living(stored, root, blueprint.xrd if blueprint else None, applied=old)

    def _asking(self) -> tuple[AssemblyContext, AnsweredQuestions]:
        """Return the workshop with the place where orders live to look things up."""
        desk = AnsweredQuestions(self.cluster)
        asks_cluster = self.cluster is not None and not isinstance(self.cluster, Replay)
        shop = self.workshop
        called = {name for blueprint in shop.blueprints.values() for name in blueprint.called}
        foreign = dict(not_run_there(self.cluster, called - shop.functions.keys()))
        return replace(shop, lookup=desk.look, asks_cluster=asks_cluster, foreign=foreign), desk

    def _is_xr(self, manifest: Manifest) -> bool:
        return self.workshop.blueprint(manifest) is not None
