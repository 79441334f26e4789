"""
The monthly cost of an order before and after a change, as far as a price table covers it.

Each line shows its calculation: count, amount, unit and price. Kinds without a price are listed,
never counted as free; so are amounts that cannot be read. Decimals are exact and rounded only for
output. Limits ("up to") are summed separately from what is certainly paid.

`values_at` and `number_of` read the amounts that are paid for from a resource: exactly, or not at
all.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, ClassVar

from msgspec.structs import asdict

from ground.errors import shorten
from ground.objects.kube_objects import Kind, Manifest
from ground.objects.values import same
from ground.shapes import Answer, exact
from ground.visible_text import visible
from orderkit.core.order.order_cost import DIGITS, OrderCost, add_up, money
from orderkit.core.plan.assembly import Assembly, identities, key_text
from orderkit.core.plan.price_table import UNITS, Price, PriceTable, steps_of


class UnreadableAmountError(Exception):
    """An amount cannot be read; the message says why."""


def number_of(value: Any, path: str) -> Decimal:
    """
    Read a number or a Kubernetes quantity exactly.

    Raises:
        UnreadableAmountError: It is not a number or quantity, or negative.
    """
    from ground.objects.quantities import NoQuantity, Unsure, parse

    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnreadableAmountError(f"{path} is not an amount")
    try:
        # repr: the shortest text that reads as the same number
        number = parse(repr(value) if isinstance(value, float) else str(value))
    except (NoQuantity, Unsure) as error:
        raise UnreadableAmountError(f"{path}: {error}") from error
    if number < 0:
        raise UnreadableAmountError(f"{path} is negative: {number}")
    return number


def values_at(manifest: Manifest, path: str) -> list[Any]:
    """Return the values at a path; several if it goes through the items of a list."""
    nodes: list[Any] = [manifest]
    for step in steps_of(path):
        nodes = [child for value in nodes for child in _stepped(value, step)]
    return [node for node in nodes if node is not None]


def _stepped(value: Any, step: str | int | None) -> Sequence[Any]:
    if step is None:
        return value if isinstance(value, list) else ()
    if isinstance(step, int):
        return value[step : step + 1] if isinstance(value, list) else ()
    return (value[step],) if isinstance(value, Mapping) and step in value else ()


_SENTENCE_MAX = 500
"""Characters: a value of whoever pushed may stand in it."""
_TIMES = " × "  # noqa: RUF001 - as people write it


class CostLine(Answer, frozen=True):
    """One resource at one price."""

    path: str
    """Empty for the order's own XR."""
    resource: str
    title: str
    reckoned: str
    """The calculation, in a form that can be checked by hand."""
    monthly: Decimal
    up_to: bool = False
    assumes: str = ""


class LimitStep(Answer, frozen=True):
    """A monthly sum before and after."""

    before: Decimal
    after: Decimal


class CostStep(LimitStep, frozen=True):
    """A monthly sum before and after, and what it grows by."""

    difference: Decimal


class SumsAnswer(Answer, frozen=True, kw_only=True):
    """Monthly sums and the price table used, as they are answered."""

    currency: str
    table: str
    source: str
    date: str
    stale: tuple[str, ...]
    monthly: CostStep
    up_to: LimitStep


class CostsAnswer(SumsAnswer, frozen=True, kw_only=True):
    """The cost of a change, as it is answered."""

    component: ClassVar[str] = "Costs"
    before: tuple[CostLine, ...]
    after: tuple[CostLine, ...]
    not_priced: tuple[str, ...]
    not_reckoned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bill:
    """The monthly cost of one side of a change."""

    lines: tuple[CostLine, ...]
    without: Mapping[str, int]
    """Kinds without a price, with their number."""
    unread: tuple[str, ...] = ()
    """Amounts that cannot be read, as sentences."""

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Return the kinds without a price, with their number, as texts."""
        return tuple(f"{kind} ({n})" if n > 1 else kind for kind, n in self.without.items())

    @property
    def total(self) -> Decimal:
        """What is certainly paid."""
        return add_up(line.monthly for line in self.lines if not line.up_to)

    @property
    def limit(self) -> Decimal:
        """The maximum that may be paid in addition."""
        return add_up(line.monthly for line in self.lines if line.up_to)


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a change, and the price table used."""

    table: PriceTable
    before: Bill
    after: Bill

    @property
    def short(self) -> str:
        """Return the difference in a few words."""
        limit = self.after.limit - self.before.limit
        difference = self.sums.difference
        sums = [signed(difference)] if difference else []
        sums += [f"up to {signed(limit)}"] if limit else []
        return f"{', '.join(sums)} {self.table.currency} a month" if sums else "same costs"

    @property
    def sums(self) -> Sums:
        """The sums of both sides."""
        before, after = self.before, self.after
        return Sums(self.table, (before.total, after.total), (before.limit, after.limit))


@dataclass(frozen=True, slots=True)
class Sums:
    """Monthly sums, each before and after."""

    table: PriceTable
    totals: tuple[Decimal, Decimal]
    """What is certainly paid."""
    limits: tuple[Decimal, Decimal]
    """The maximum that may be paid in addition."""

    @property
    def difference(self) -> Decimal:
        """The increase of what is certainly paid; negative if less."""
        with localcontext(prec=DIGITS):
            return self.totals[1] - self.totals[0]

    def __str__(self) -> str:
        change = f" ({signed(self.difference)})" if self.difference else ""
        limits = f", and up to {_steps(self.limits)}" if any(self.limits) else ""
        return f"{_steps(self.totals)} {self.table.currency} a month{change}{limits}"


def costs_of(before: Assembly, after: Assembly, table: PriceTable) -> Costs:
    """Return the cost of an order on both sides of a change."""
    return Costs(table, _bill(before, table), _bill(after, table))


def summed(bills: Sequence[Costs]) -> Sums | None:
    """Return the total cost of several orders, all by one table; None if there are none."""
    if not bills:
        return None
    return Sums(
        bills[0].table,
        (add_up(bill.before.total for bill in bills), add_up(bill.after.total for bill in bills)),
        (add_up(bill.before.limit for bill in bills), add_up(bill.after.limit for bill in bills)),
    )


def order_cost(assembly: Assembly, table: PriceTable) -> OrderCost:
    """Return what an order costs; an outcome that would be refused has no cost."""
    if assembly.faults:
        fault = assembly.faults[0]
        text = f"it would be refused: {fault.where}{': ' * bool(fault.where)}{fault.message}"
        return OrderCost(table.currency, None, unknown=(_sentence(text),))
    bill = _bill(assembly, table)
    unknown = [f"no price: {kind}" for kind in bill.unpriced] + list(bill.unread)
    if assembly.is_opaque or assembly.missing:
        unknown += assembly.unknowns
    is_known = bool(bill.lines) or not unknown
    return OrderCost(
        table.currency,
        bill.total if is_known else None,
        bill.limit,
        tuple(map(_sentence, unknown)),
        table.stale,
    )


def _sentence(text: str) -> str:
    return shorten(visible(" ".join(text[: 2 * _SENTENCE_MAX].split())), limit=_SENTENCE_MAX)


def _steps(amounts: tuple[Decimal, Decimal]) -> str:
    return " → ".join(dict.fromkeys(map(money, amounts)))


def signed(amount: Decimal) -> str:
    """Write a difference with its sign."""
    return f"+{money(amount)}" if amount > 0 else money(amount)


def _bill(assembly: Assembly, table: PriceTable) -> Bill:
    lines: list[CostLine] = []
    without: Counter[str] = Counter()
    unread: list[str] = []
    for path, manifest in {"": assembly.xr, **assembly.resources}.items():
        priced = _priced_object(manifest, table)
        if priced is None:
            without[Kind.of(manifest).kind] += bool(path)
            continue
        prices = list(_matching_prices(priced, table))
        if not prices:
            unread.append(f"{key_text(priced)}: no price's conditions hold")
        for price in prices:
            try:
                lines.append(_line(path, priced, price, table))
            except UnreadableAmountError as error:
                unread.append(f"{key_text(priced)}: {error}")
    kinds = {kind: number for kind, number in sorted(without.items()) if number}
    return Bill(tuple(lines), kinds, tuple(dict.fromkeys(unread)))


def _priced_object(manifest: Manifest, table: PriceTable) -> Manifest | None:
    """Return the priced object: the resource, or the object that a provider's wrapper creates."""
    for identity in identities(manifest):
        if any(_applies(identity, price) for price in table.prices):
            return identity
    return None


def _applies(manifest: Manifest, price: Price) -> bool:
    kind = Kind.of(manifest)
    return kind.kind == price.kind and price.group in (None, kind.group)


def _matching_prices(manifest: Manifest, table: PriceTable) -> Iterator[Price]:
    """Yield the prices that apply to a resource and whose conditions are met."""
    for price in table.prices:
        if _applies(manifest, price) and all(
            [same(value, expected) for value in values_at(manifest, path)] == [True]
            for path, expected in price.when.items()
        ):
            yield price


def _line(path: str, manifest: Manifest, price: Price, table: PriceTable) -> CostLine:
    with localcontext(prec=DIGITS):
        factors: list[tuple[Decimal, str]] = []
        if price.count:
            factors.append(_factor(manifest, price.count, "one", Decimal(1)))
        if price.per:
            factors.append(_factor(manifest, price.per, price.unit, price.absent))
        factors.append((price.price, f"{exact(price.price)} {table.currency}"))
        if price.every == "hour":
            hours = Decimal(table.hours_per_month)
            factors.append((hours, f"{hours} h"))
        monthly = Decimal(1)
        for number, _ in factors:
            monthly *= number
    return CostLine(
        path,
        key_text(manifest),
        price.title or price.kind,
        _TIMES.join(label for _, label in factors),
        monthly,
        price.up_to,
        price.assumes,
    )


def _factor(
    manifest: Manifest, path: str, unit: str, absent: Decimal | None
) -> tuple[Decimal, str]:
    """Return an amount in its unit, and its text."""
    values = values_at(manifest, path)
    if not values:
        if absent is None:
            raise UnreadableAmountError(f"{path} is not set")
        return absent, _amount_text(absent, unit, "assumed")
    amount = sum((number_of(value, path) for value in values), Decimal(0)) / UNITS[unit]
    return amount, _amount_text(amount, unit, path.rpartition(".")[2])


def _amount_text(amount: Decimal, unit: str, of: str) -> str:
    rounded = amount.quantize(Decimal("0.000001")).normalize() if unit != "one" else amount
    number = exact(rounded)
    number = f"{'' if rounded == amount else 'about '}{number}"
    return f"{number} {unit} {of}" if unit != "one" else f"{number} {of}"


def costs_answer(costs: Costs) -> CostsAnswer:
    """Return what is said of costs."""
    return CostsAnswer(
        **asdict(sums_answer(costs.sums)),
        before=costs.before.lines,
        after=costs.after.lines,
        not_priced=costs.after.unpriced,
        not_reckoned=costs.after.unread,
    )


def sums_answer(sums: Sums) -> SumsAnswer:
    """Return what is said of sums and the price table used."""
    table = sums.table
    return SumsAnswer(
        currency=table.currency,
        table=table.name,
        source=table.source,
        date=table.date,
        stale=table.stale,
        monthly=CostStep(*sums.totals, sums.difference),
        up_to=LimitStep(*sums.limits),
    )


def changed_lines(costs: Costs) -> Iterator[tuple[CostLine | None, CostLine | None]]:
    """Yield lines whose cost changes: before and after, either may be missing."""
    old = _by_key(costs.before.lines)
    new = _by_key(costs.after.lines)
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            yield old.get(key), new.get(key)


def _by_key(lines: Sequence[CostLine]) -> dict[tuple[str, str, int], CostLine]:
    lines_by_key: dict[tuple[str, str, int], CostLine] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for line in lines:
        key = (line.path, line.title)
        lines_by_key[*key, counts[key]] = line
        counts[key] += 1
    return lines_by_key
