"""
Group the effects on many orders: effects that are equal except for names are reported once.

An order's own names (its id, its XR's name) are replaced in paths, values and messages before
comparing, so that ``garage-a-sheet`` and ``garage-b-sheet`` fold. Fields with the same path and
different values fold too. So do dangers, faults and unknowns that differ only in names and numbers,
each with one example.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ground.objects.kube_objects import Kind, metadata
from orderkit.core.order.change import shown
from orderkit.core.plan.comparison import Action
from orderkit.core.plan.fleet_plan import FleetPlan, OrderPlan

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
