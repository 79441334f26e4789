"""
The effect of another pack on many orders: one plan for each order.

An order is unchanged, changed, refused (by the new pack, and not already by the old one) or unknown
(there is no plan for it, and the reason is kept). Pure: callers make the plans. ``plan_json`` and
``fleet_markdown`` write them.

`folds` groups the effects on many orders: those that are equal except for names are reported once.
An order's own names (its id, its XR's name) are replaced in paths, values and messages before
comparing, so that ``garage-a-sheet`` and ``garage-b-sheet`` fold. Fields with the same path and
different values fold too. So do dangers, faults and unknowns that differ only in names and numbers,
each with one example.

`with_collisions` finds names that two orders of a fleet would use, which no plan of a single order
can show. A Composition that composes an object with a fixed name works for the first order and
fails for every other one. Only new names are compared: existing orders already have theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from orderkit.core.order.change import shown
from orderkit.core.plan.assembly import (
    Assembly,
    Fault,
    OutcomeObject,
    SecretField,
    key_text,
    objects_of,
)
from orderkit.core.plan.comparison import Action, Plan
from orderkit.core.plan.cost import Costs, Sums, summed
from orderkit.core.plan.judging import OutcomeRule, collisions
from orderkit.core.plan.live_state import DefaultChange


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


OWN = "<order>"
"""Placeholder for an order's own name."""


@dataclass(frozen=True, slots=True)
class FoldedField:
    """One field of many orders. `values` counts its different changes."""

    path: str
    old: str
    new: str
    values: int = 1

    def __str__(self) -> str:
        step = f"{self.old} → {self.new}"
        if self.values == 1:
            return f"{self.path} {step}"
        return f"{self.path} {self.values:,} different values, such as {step}"


@dataclass(frozen=True, slots=True)
class Fold:
    """An effect on many orders."""

    category: str
    """One of `_ORDER`."""
    title: str
    orders: tuple[str, ...]
    fields: tuple[FoldedField, ...] = ()
    action: Action | None = None
    code: str = ""
    path: str = ""
    kind: str = ""

    @property
    def count(self) -> int:
        return len(self.orders)

    def examples(self, at_most: int = 3) -> str:
        """Return the names of some of the orders."""
        hidden_count = self.count - at_most
        names = ", ".join(self.orders[:at_most])
        return f"{names} and {hidden_count:,} more" if hidden_count > 0 else names


def folds(fleet: FleetPlan) -> tuple[Fold, ...]:
    """Return all effects, those on most orders first. Deterministic."""
    groups: dict[tuple[str, ...], list[_Effect]] = {}
    for order in fleet.orders:
        for effect in _effects(order):
            groups.setdefault(effect.key, []).append(effect)
    folded = [_folded(parts) for parts in groups.values()]
    return tuple(
        sorted(folded, key=lambda f: (_ORDER.index(f.category), -f.count, f.title, f.path))
    )


_ORDER = (
    "fault",
    "standing-fault",
    "danger",
    "accepted",
    "paused",
    "pinned",
    "resource",
    "field",
    "status",
    "unknown",
)


@dataclass(frozen=True, slots=True)
class _Effect:
    """An effect on one order, without its name."""

    order: str
    category: str
    title: str
    fields: tuple[FoldedField, ...] = ()
    action: Action | None = None
    code: str = ""
    path: str = ""
    kind: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Return what must be equal for two effects to fold."""
        fields = (field.path for field in self.fields)
        title = _NAME.sub("", self.title) if self.category in _PROSE else self.title
        return (self.category, title, str(self.action), self.code, self.path, self.kind, *fields)


_PROSE = ("fault", "standing-fault", "danger", "accepted", "paused", "pinned", "unknown")
_NAME = re.compile(r"\w+(?:[-/:]+\w+)+|\b\w*\d\w*")
"""Names and amounts, not fields or kinds: ``bay-ae86/spec-sheet``, ``64Mi``."""


def _folded(effects: list[_Effect]) -> Fold:
    first = effects[0]
    return Fold(
        first.category,
        _title([effect.title for effect in effects]),
        tuple(dict.fromkeys(effect.order for effect in effects)),
        tuple(_field([effect.fields[n] for effect in effects]) for n in range(len(first.fields))),
        first.action,
        first.code,
        first.path,
        first.kind,
    )


def _title(titles: list[str]) -> str:
    different = len(set(titles))
    return titles[0] if different == 1 else f"{different:,} different, such as: {titles[0]}"


def _field(fields: list[FoldedField]) -> FoldedField:
    first = fields[0]
    return FoldedField(first.path, first.old, first.new, len(set(fields)))


def _effects(order: OrderPlan) -> Iterator[_Effect]:
    if order.plan is None:
        yield _Effect(order.order, "unknown", nameless(order, order.why_not))
        return
    yield from _resource_effects(order)
    for category, differences in (("field", order.plan.fields), ("status", order.plan.status)):
        for difference in differences:
            old, new = (nameless(order, shown(value)) for value in (difference.old, difference.new))
            field = FoldedField(nameless(order, difference.path), old, new)
            yield _Effect(order.order, category, field.path, (field,))
    for category, faults in (
        ("fault", order.new_faults),
        ("standing-fault", order.standing_faults),
    ):
        for fault in faults:
            message = f"{fault.where}: {fault.message}" if fault.where else fault.message
            path = nameless(order, fault.path)
            yield _Effect(order.order, category, nameless(order, message), path=path)
    accepted = ((each.danger, f": {each.reason}") for each in order.plan.accepted)
    for danger, reason in (*((danger, "") for danger in order.plan.dangers), *accepted):
        message, path = nameless(order, danger.message), nameless(order, danger.path)
        category = "accepted" if reason else "danger"
        title, code = f"{message}{reason}", str(danger.code)
        yield _Effect(order.order, category, title, code=code, path=path)
    if order.plan.paused:
        yield _Effect(
            order.order, "paused", nameless(order, next(iter(order.plan.paused.values())))
        )
    if order.is_pinned:
        yield _Effect(order.order, "pinned", nameless(order, order.plan.after.pinned[""]))
    for text in order.plan.unknowns:
        yield _Effect(order.order, "unknown", nameless(order, text))


def _resource_effects(order: OrderPlan) -> Iterator[_Effect]:
    assert order.plan is not None  # noqa: S101 - the caller has checked
    for change in order.plan.changes:
        kind, path = Kind.of(change.manifest), nameless(order, change.path)
        fields = tuple(
            FoldedField(
                nameless(order, difference.path),
                nameless(order, shown(difference.old)),
                nameless(order, shown(difference.new)),
            )
            for difference in change.fields
        )
        title = f"{kind.kind} {path}"
        yield _Effect(
            order.order, "resource", title, fields, change.action, path=path, kind=str(kind)
        )


def nameless(order: OrderPlan, text: str) -> str:
    """Return a text with the order's own names replaced."""
    names = {order.order, str(metadata(order.stored).get("name") or "")}
    for name in sorted(filter(None, names), key=len, reverse=True):
        if name in text:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", OWN, text)
    return text


def of_categories(all_folds: Iterable[Fold], *categories: str) -> tuple[Fold, ...]:
    """Return the folds of some categories."""
    return tuple(fold for fold in all_folds if fold.category in categories)


def with_collisions(orders: Iterable[OrderPlan]) -> list[OrderPlan]:
    """Return the plans with a fault for each new object that another order creates too."""
    all_orders = list(orders)
    new = {order.order: _new(order.plan) for order in all_orders if order.plan is not None}
    clashes = collisions(new)
    return [
        replace(order, plan=_clashing(order.plan, new[order.order], clashes[order.order]))
        if order.plan is not None and order.order in clashes
        else order
        for order in all_orders
    ]


def _new(plan: Plan) -> Assembly:
    """Return the resources that a plan adds."""
    new = {
        change.path: change.new
        for change in plan.changes
        if change.action in {Action.ADDED, Action.REPLACED} and change.new is not None
    }
    return replace(plan.after, resources=new)


def _clashing(plan: Plan, new: Assembly, clashes: Mapping[ObjectKey, str]) -> Plan:
    faults = [
        _fault(obj, clashes[key])
        for obj in objects_of(new)
        if not obj.prefix and (key := ObjectKey.of(obj.manifest)) in clashes
    ]
    return replace(plan, after=replace(plan.after, faults=(*plan.after.faults, *faults)))


def _fault(obj: OutcomeObject, other_orders: str) -> Fault:
    return Fault(
        obj.path,
        f"{key_text(obj.manifest)} is what other orders make too: {other_orders}",
        "metadata.name",
        "give it a name that has the order's own name in it",
        code=OutcomeRule.COLLISION,
    )
