"""
Who had what for how long, and what that cost: exact to the second.

A price of a month is paid for a month's hours (``hoursPerMonth``, 730), so an interval costs
price * seconds / (hours * 3600). Amounts are kept as exact fractions of decimals and rounded once,
where they are written: the parts of a period cost what the whole costs. What is not known has
seconds and a reason, and no amount.

Pure; ``flows.plan.cost_statements`` reads Git.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

from msgspec.structs import asdict

from ground.errors import InvalidInputError
from ground.shapes import Answer, Known, exact
from orderkit.core.order.order_cost import DIGITS, OrderCost

HOURS = 730
"""Of a month: a twelfth of 365 days."""
_PLACES = Decimal("0.000001")
_HOUR_S = 3_600
_SENTENCES_MAX = 5
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Span(Generic[State]):
    """Something that was so from one moment up to another."""

    begin: datetime
    end: datetime
    state: State


def spans(
    changes: Iterable[tuple[datetime, State]], begin: datetime, end: datetime
) -> Iterator[Span[State]]:
    """
    Yield what was when within a period, without gaps from the first change on.

    Args:
        changes: Since when each state holds, oldest first. One that claims an earlier time than
            the one before it holds from that one's time on.
        begin: In UTC.
        end: In UTC; excluded.
    """
    current: tuple[datetime, State] | None = None
    for since, state in changes:
        if current is not None:
            since = max(since, current[0])  # noqa: PLW2901 - a clock that went back
            yield from _within(Span(current[0], since, current[1]), begin, end)
        current = (since, state)
    if current is not None:
        yield from _within(Span(current[0], max(end, current[0]), current[1]), begin, end)


def _within(span: Span[State], begin: datetime, end: datetime) -> Iterator[Span[State]]:
    cut = replace(span, begin=max(span.begin, begin), end=min(span.end, end))
    if cut.begin < cut.end:
        yield cut


class IntervalAnswer(OrderCost, frozen=True, kw_only=True):
    """One order at one price, as command and service answer it; amounts are texts."""

    team: str
    kit: str
    order: str
    begin: str
    end: str
    """Excluded."""
    seconds: int
    hours_per_month: int
    amount: str | None
    """What was paid; None: it is not known."""
    amount_up_to: str
    claimed_time: bool


class SumAnswer(Answer, frozen=True, kw_only=True):
    """What a team paid for one kit, as command and service answer it; amounts are texts."""

    team: str
    kit: str
    currency: Known
    orders: int
    seconds: int
    amount: str
    amount_up_to: str
    not_known_seconds: int
    partly_known_seconds: int
    claimed_seconds: int
    not_known: tuple[str, ...]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CostInterval:
    """One order at one price."""

    team: str
    kit: str
    order: str
    begin: datetime
    end: datetime
    cost: OrderCost
    hours_per_month: int = HOURS
    claimed: bool = False
    """Nothing proves when it began: somebody pushed past Orderkit."""

    @property
    def seconds(self) -> int:
        return round((self.end - self.begin).total_seconds())

    @property
    def amount(self) -> Fraction | None:
        """What was paid; None: it is not known."""
        monthly = self.cost.monthly
        return None if monthly is None else self._part(monthly)

    @property
    def up_to(self) -> Fraction:
        """What may have been paid in addition."""
        return self._part(self.cost.up_to)

    def _part(self, monthly: Decimal) -> Fraction:
        return Fraction(monthly) * self.seconds / (self.hours_per_month * _HOUR_S)

    @property
    def answer(self) -> IntervalAnswer:
        """What is said of it."""
        cost, amount = self.cost, self.amount
        return IntervalAnswer(
            **asdict(cost),
            team=self.team,
            kit=self.kit,
            order=self.order,
            begin=moment(self.begin),
            end=moment(self.end),
            seconds=self.seconds,
            hours_per_month=self.hours_per_month,
            amount=None if amount is None else rounded(amount),
            amount_up_to=rounded(self.up_to),
            claimed_time=self.claimed,
        )


@dataclass(slots=True)
class StatementSum:
    """What a team paid for one kit, in one currency."""

    team: str
    kit: str
    currency: str
    amount: Fraction = Fraction(0)
    up_to: Fraction = Fraction(0)
    seconds: int = 0
    unknown_s: int = 0
    """Seconds of which nothing is known."""
    partly_s: int = 0
    """Seconds of which a part is not known."""
    claimed_s: int = 0
    orders: set[str] = field(default_factory=set)
    reasons: dict[str, None] = field(default_factory=dict)
    stale: dict[str, None] = field(default_factory=dict)

    def add(self, interval: CostInterval) -> None:
        """Count an interval."""
        seconds, amount = interval.seconds, interval.amount
        self.orders.add(interval.order)
        self.seconds += seconds
        self.claimed_s += seconds * interval.claimed
        if amount is None:
            self.unknown_s += seconds
        else:
            self.amount += amount
            self.up_to += interval.up_to
            self.partly_s += seconds * bool(interval.cost.unknown)
        self.reasons.update(dict.fromkeys(interval.cost.unknown))
        self.stale.update(dict.fromkeys(interval.cost.stale))

    @property
    def answer(self) -> SumAnswer:
        """What is said of it."""
        return SumAnswer(
            team=self.team,
            kit=self.kit,
            currency=self.currency,
            orders=len(self.orders),
            seconds=self.seconds,
            amount=rounded(self.amount),
            amount_up_to=rounded(self.up_to),
            not_known_seconds=self.unknown_s,
            partly_known_seconds=self.partly_s,
            claimed_seconds=self.claimed_s,
            not_known=tuple(self.reasons)[:_SENTENCES_MAX],
            stale=tuple(self.stale)[:_SENTENCES_MAX],
        )


class Measured(Answer, frozen=True):
    """What an order has really spent, as its kit measures it now: not of the period alone."""

    team: str
    kit: str
    order: str
    title: str
    value: str


class StatementAnswer(Answer, frozen=True):
    """What orders cost in a period, as command and service answer it."""

    component: ClassVar[str] = "Statement"
    since: str
    until: str
    sums: tuple[SumAnswer, ...]
    intervals: tuple[IntervalAnswer, ...]
    measured: tuple[Measured, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """What orders cost in a period."""

    begin: datetime
    end: datetime
    """Excluded; not after now."""
    intervals: tuple[CostInterval, ...]
    """By team, kit, order and time; neighbours of equal cost are one."""
    measured: tuple[Measured, ...] = ()

    @property
    def sums(self) -> Sequence[StatementSum]:
        """The sums by team, kit and currency."""
        return sums_of(self.intervals)

    @property
    def answer(self) -> StatementAnswer:
        """What command and service say of it."""
        return StatementAnswer(
            moment(self.begin),
            moment(self.end),
            tuple(line.answer for line in self.sums),
            tuple(interval.answer for interval in self.intervals),
            self.measured,
        )


def sums_of(intervals: Iterable[CostInterval]) -> Sequence[StatementSum]:
    """Return sums by team, kit and currency; what is not known is with the only currency."""
    listed = list(intervals)
    currencies: dict[tuple[str, str], set[str]] = {}
    for interval in listed:
        currencies.setdefault((interval.team, interval.kit), set()).add(interval.cost.currency)
    sums: dict[tuple[str, str, str], StatementSum] = {}
    for interval in listed:
        known = currencies[interval.team, interval.kit] - {""}
        currency = interval.cost.currency or ("".join(known) if len(known) == 1 else "")
        key = (interval.team, interval.kit, currency)
        sums.setdefault(key, StatementSum(*key)).add(interval)
    return [sums[key] for key in sorted(sums)]


def joined(intervals: Iterable[CostInterval]) -> tuple[CostInterval, ...]:
    """Sort intervals, and make one of neighbours of equal cost."""
    result: list[CostInterval] = []
    for interval in sorted(intervals, key=lambda i: (i.team, i.kit, i.order, i.begin)):
        last = result[-1] if result else None
        if (
            last
            and last.end == interval.begin
            and last == replace(interval, begin=last.begin, end=last.end)
        ):
            result[-1] = replace(last, end=interval.end)
        else:
            result.append(interval)
    return tuple(result)


def rounded(amount: Fraction) -> str:
    """Write an amount with six decimals, trailing zeros left out."""
    with localcontext(prec=DIGITS):
        number = Decimal(amount.numerator) / Decimal(amount.denominator)
        return exact(number.quantize(_PLACES, ROUND_HALF_EVEN))


def cents(amount: Fraction) -> str:
    """Write an amount with two decimals."""
    with localcontext(prec=DIGITS):
        number = Decimal(amount.numerator) / Decimal(amount.denominator)
        return f"{number.quantize(Decimal('0.01'), ROUND_HALF_EVEN):,f}"


def moment(time: datetime) -> str:
    """Write a time in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def period_of(since: str, until: str, now: datetime) -> tuple[datetime, datetime]:
    """
    Read a period: days or times in UTC. Default: from the first of the month up to now.

    Raises:
        InvalidInputError: One is not a time.
    """
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (
        _read_time("since", since) if since else first,
        _read_time("until", until) if until else now.astimezone(UTC),
    )


def month_of(text: str) -> tuple[datetime, datetime]:
    """
    Read a month such as ``2026-10``.

    Raises:
        InvalidInputError: It is not one.
    """
    try:
        begin = datetime.fromisoformat(f"{text}-01T00:00Z")
    except ValueError as error:
        rule = "is not a month from 01 to 12, as YYYY-MM"
        raise InvalidInputError("--month", text, rule, hint="--month 2026-10") from error
    return begin, (begin + timedelta(days=31)).replace(day=1)


def _read_time(name: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInputError(
            name,
            text,
            "is not a time",
            hint=f"--{name} 2026-10-01, or --{name} 2026-10-01T12:00:00Z",
            form_hint=f"{name}=2026-10-01, or {name}=2026-10-01T12:00:00Z",
        ) from error
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return time.astimezone(UTC).replace(microsecond=0)


CSV_HEAD = (
    "team", "kit", "order", "begin", "end", "seconds", "monthly", "upTo", "currency",
    "hoursPerMonth", "amount", "amountUpTo", "claimedTime", "notKnown", "stale",
)  # fmt: skip


def csv_row(interval: CostInterval) -> list[str]:
    """Return an interval as cells. No cell begins as a formula of a spreadsheet does."""
    content: Mapping[str, Any] = interval.answer.to_json()
    cells = []
    for name in CSV_HEAD:
        value = content[name]
        text = "; ".join(value) if isinstance(value, list) else "" if value is None else str(value)
        cells.append(f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text)
    return cells
