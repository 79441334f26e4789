"""
The effect of another pack on many orders: one plan for each order.

An order is unchanged, changed, refused (by the new pack, and not already by the old one) or unknown
(there is no plan for it, and the reason is kept). Pure: callers make the plans. ``fleet_folding``
groups their effects; ``fleet_json`` and ``fleet_markdown`` write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ground.objects.kube_objects import Manifest
from orderkit.core.plan.assembly import Assembly, Fault, SecretField
from orderkit.core.plan.comparison import Plan
from orderkit.core.plan.cost import Costs, Sums, summed
from orderkit.core.plan.stored_defaults import DefaultChange


class OrderVerdict(StrEnum):
    """The result for one order."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REFUSED = "refused"
    """Something it composes would be refused, and is not refused already."""
    UNKNOWN = "unknown"
    """It could not be read or planned."""


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """One order and its plan, or why it has none."""

    order: str
    team: str = ""
    plan: Plan | None = None
    why_not: str = ""
    source: str = ""
    """Where its XR was read: ``cluster``, ``git`` or ``file``."""
    stored: Manifest = field(default_factory=dict)
    """Its XR with the defaults of the old pack."""
    secret_fields: frozenset[SecretField] = frozenset()
    """What of its objects follows from a Secret."""

    @property
    def new_faults(self) -> tuple[Fault, ...]:
        """Faults that the order does not have already."""
        if self.plan is None:
            return ()
        old_faults = set(self.plan.before.faults)
        return tuple(fault for fault in self.plan.faults if fault not in old_faults)

    @property
    def standing_faults(self) -> tuple[Fault, ...]:
        """Faults that the order has already and keeps."""
        new_faults = set(self.new_faults)
        faults = self.plan.faults if self.plan else ()
        return tuple(fault for fault in faults if fault not in new_faults)

    @property
    def verdict(self) -> OrderVerdict:
        if self.plan is None:
            return OrderVerdict.UNKNOWN
        if self.new_faults:
            return OrderVerdict.REFUSED
        touched = self.plan.changes or self.plan.fields or self.plan.status or self._mended
        return OrderVerdict.CHANGED if touched else OrderVerdict.UNCHANGED

    @property
    def is_pinned(self) -> bool:
        """Return whether the other pack does not reach the order: it is pinned, and unchanged."""
        if self.plan is None or "" not in self.plan.after.pinned:
            return False
        return self.verdict is OrderVerdict.UNCHANGED

    @property
    def _mended(self) -> bool:
        return self.plan is not None and self.plan.before.faults != self.plan.faults


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two packs, as shown to people."""

    title: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The effect of another pack on orders."""

    kits: tuple[str, ...]
    base: Side
    candidate: Side
    orders: tuple[OrderPlan, ...]
    """Sorted by id."""
    defaults: tuple[DefaultChange, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for people on how the plan was made."""
    read_s: float = 0.0
    planned_s: float = 0.0

    def of(self, verdict: OrderVerdict) -> tuple[OrderPlan, ...]:
        """Return the orders with this verdict."""
        return tuple(order for order in self.orders if order.verdict is verdict)

    @property
    def counts(self) -> Mapping[OrderVerdict, int]:
        """The number of orders by verdict."""
        return {verdict: len(self.of(verdict)) for verdict in OrderVerdict}

    @property
    def dangers(self) -> int:
        """The number of dangers in all orders."""
        return sum(len(order.plan.dangers) for order in self.orders if order.plan)

    @property
    def endangered(self) -> int:
        """The number of orders with dangers."""
        return sum(bool(order.plan and order.plan.dangers) for order in self.orders)

    @property
    def priced(self) -> tuple[Costs, ...]:
        """Return the costs of the orders for which a price table was used."""
        return tuple(order.plan.costs for order in self.orders if order.plan and order.plan.costs)

    @property
    def costs(self) -> FleetCosts | None:
        """Return the total costs of all orders; None without a price table."""
        priced = self.priced
        sums = summed(priced)
        if sums is None:
            return None
        bills = [costs.after for costs in priced]
        without = {kind for bill in bills for kind in bill.without}
        unread = dict.fromkeys(text for bill in bills for text in bill.unread)
        return FleetCosts(sums, len(bills), tuple(sorted(without)), tuple(unread))

    @property
    def summary(self) -> str:
        """Return a summary on one line."""
        counts = [f"{count:,} {verdict}" for verdict, count in self.counts.items() if count]
        if self.dangers:
            plural = "s" if self.dangers > 1 else ""
            counts.append(f"{self.dangers:,} danger{plural} in {counted(self.endangered)}")
        pinned = sum(order.is_pinned for order in self.orders)
        counts += [f"{pinned:,} of them not affected: pinned"] if pinned else []
        total = counted(len(self.orders))
        return f"{total}: {', '.join(counts)}" if counts else total


@dataclass(frozen=True, slots=True)
class FleetCosts:
    """The total costs of orders."""

    sums: Sums
    orders: int
    """Number of orders included. Orders that would be refused or have no plan are not."""
    unpriced: tuple[str, ...]
    """Kinds without a price."""
    unread: tuple[str, ...]
    """Amounts that cannot be read, as sentences."""

    @property
    def summary(self) -> str:
        """Return a summary on one line."""
        return f"{self.sums}, of {counted(self.orders)}"


def counted(number: int) -> str:
    """Write a number of orders."""
    return f"{number:,} order{'' if number == 1 else 's'}"


def without_unnamed(plan: Plan) -> Plan:
    """Return a plan reduced to the resources it names, to save memory with thousands of plans."""
    paths = {change.path for change in plan.changes}
    paths |= {fault.path for fault in (*plan.faults, *plan.before.faults)}
    paths |= {danger.path for danger in plan.dangers}
    return replace(plan, before=_slimmed(plan.before, paths), after=_slimmed(plan.after, paths))


def _slimmed(assembly: Assembly, paths: set[str]) -> Assembly:
    def kept(by_path: Mapping[str, Manifest]) -> dict[str, Manifest]:
        return {path: manifest for path, manifest in by_path.items() if path in paths}

    return replace(
        assembly,
        resources=kept(assembly.resources),
        observed=kept(assembly.observed),
        waves=tuple(wave for wave in assembly.waves if paths & set(wave)),
    )
