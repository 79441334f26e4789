"""
Fold what happens to many orders: what is the same, but for names, is told once.

An order's own names (its id, its XR's name) are taken out of paths, values and messages before
they are compared, so that ``garage-a-sheet`` and ``garage-b-sheet`` fold. Fields with the same
path and different values fold too, and so do dangers, faults and unknowns that differ in names and
numbers only, each with one example. Called by what shows a `FleetPlan`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orderkit.core.objects.kube_objects import Kind, metadata
from orderkit.core.order.change import shown
from orderkit.core.plan.comparison import Action
from orderkit.core.plan.fleet_plan import FleetPlan, OrderPlan

OWN = "<order>"
"""What stands for an order's own name."""


@dataclass(frozen=True, slots=True)
class FoldedField:
    """One field of many orders. `values` counts how many different steps there are."""

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
    """Something that happens to many orders."""

    what: str
    """``resource``, ``field``, ``status``, ``danger``, ``fault`` or ``unknown``."""
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
        """Name some of the orders."""
        more = self.count - at_most
        named = ", ".join(self.orders[:at_most])
        return f"{named} and {more:,} more" if more > 0 else named


def folds(fleet: FleetPlan) -> tuple[Fold, ...]:
    """Return everything that happens, most orders first. Deterministic."""
    found: dict[tuple[str, ...], list[_Part]] = {}
    for order in fleet.orders:
        for part in _parts(order):
            found.setdefault(part.key, []).append(part)
    folded = [_folded(parts) for parts in found.values()]
    return tuple(sorted(folded, key=lambda f: (_ORDER.index(f.what), -f.count, f.title, f.path)))


_ORDER = ("fault", "danger", "resource", "field", "status", "unknown")


@dataclass(frozen=True, slots=True)
class _Part:
    """What happens to one order, without its name."""

    order: str
    what: str
    title: str
    fields: tuple[FoldedField, ...] = ()
    action: Action | None = None
    code: str = ""
    path: str = ""
    kind: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Return what must be the same for two to fold."""
        fields = (field.path for field in self.fields)
        title = _NAME.sub("", self.title) if self.what in _TOLD else self.title
        return (self.what, title, str(self.action), self.code, self.path, self.kind, *fields)


_TOLD = ("fault", "danger", "unknown")
_NAME = re.compile(r"\w+(?:[-/:]+\w+)+|\b\w*\d\w*")
"""Names and amounts, not fields or kinds: ``bay-ae86/spec-sheet``, ``64Mi``."""


def _folded(parts: list[_Part]) -> Fold:
    first = parts[0]
    return Fold(
        first.what,
        _title([part.title for part in parts]),
        tuple(dict.fromkeys(part.order for part in parts)),
        tuple(_field([part.fields[n] for part in parts]) for n in range(len(first.fields))),
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


def _parts(order: OrderPlan) -> Iterator[_Part]:
    if order.plan is None:
        yield _Part(order.order, "unknown", nameless(order, order.why_not))
        return
    yield from _resources(order)
    for what, found in (("field", order.plan.fields), ("status", order.plan.status)):
        for each in found:
            old, new = (nameless(order, shown(value)) for value in (each.old, each.new))
            field = FoldedField(nameless(order, each.path), old, new)
            yield _Part(order.order, what, field.path, (field,))
    for fault in order.new_faults:
        told = f"{fault.where}: {fault.message}" if fault.where else fault.message
        yield _Part(order.order, "fault", nameless(order, told), path=nameless(order, fault.path))
    for danger in order.plan.dangers:
        told, path = nameless(order, danger.message), nameless(order, danger.path)
        yield _Part(order.order, "danger", told, code=str(danger.code), path=path)
    for text in order.plan.unknowns:
        yield _Part(order.order, "unknown", nameless(order, text))


def _resources(order: OrderPlan) -> Iterator[_Part]:
    assert order.plan is not None  # noqa: S101 - the caller has looked
    for change in order.plan.changes:
        kind, path = Kind.of(change.manifest), nameless(order, change.path)
        fields = tuple(
            FoldedField(
                nameless(order, each.path),
                nameless(order, shown(each.old)),
                nameless(order, shown(each.new)),
            )
            for each in change.fields
        )
        title = f"{kind.kind} {path}"
        yield _Part(
            order.order, "resource", title, fields, change.action, path=path, kind=str(kind)
        )


def nameless(order: OrderPlan, text: str) -> str:
    """Return a text without the order's own names."""
    names = {order.order, str(metadata(order.stored).get("name") or "")}
    for name in sorted(filter(None, names), key=len, reverse=True):
        if name in text:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", OWN, text)
    return text


def only(found: Iterable[Fold], *what: str) -> tuple[Fold, ...]:
    """Return the folds of some sorts."""
    return tuple(fold for fold in found if fold.what in what)
