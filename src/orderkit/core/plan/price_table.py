"""
Read and check a price table: what resources cost a month.

    apiVersion: orderkit.dev/v1alpha1
    kind: PriceTable
    metadata: {name: our-cloud}
    spec:
      currency: EUR
      source: https://cloud.example.org/prices
      date: 2026-08-01
      prices:
        - kind: Deployment
          title: memory
          count: spec.replicas
          per: spec.template.spec.containers[*].resources.requests.memory
          unit: GiB
          price: '3.20'

`date` and `source` stand at the table, and at a price that has others. A price is stale once its
date is more than `staleAfterDays` (90) days ago: plans, lists and statements say so.
Amounts are exact decimals. A price is a string or an integer, because a YAML number with a decimal
point is a binary fraction. One table has one currency; there is no conversion between currencies.
Pure; called by ``cost``, and by the flow that plans.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import asdict

from ground.errors import InvalidInputError
from ground.shapes import StrictShape
from orderkit.core.documents import DocumentName, read_document
from yamlfiles import yaml11

PRICES = PurePosixPath("gitops", "prices.yaml")
"""Where a pack keeps what things cost."""
_DECIMAL = r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,18})?$"
_PRICE_HINT = "a number that is not negative, as a text: '3.20'"
_Amount = Annotated[
    Decimal,
    Meta(
        description=_PRICE_HINT,
        extra_json_schema={
            "pattern": _DECIMAL,
            "minimum": 0,
            "maximum": 10**12,
        },
    ),
]
UNITS: Mapping[str, Decimal] = {
    "one": Decimal(1),
    "core": Decimal(1),
    "MB": Decimal(10) ** 6,
    "GB": Decimal(10) ** 9,
    "TB": Decimal(10) ** 12,
    "MiB": Decimal(2) ** 20,
    "GiB": Decimal(2) ** 30,
    "TiB": Decimal(2) ** 40,
}
"""Divisor of an amount before it is multiplied by the price."""
_CURRENCIES = (
    "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EUR GBP HKD HUF IDR ILS INR ISK JPY KES KRW "
    "MAD MXN MYR NGN NOK NZD PEN PHP PLN RON RSD SAR SEK SGD THB TRY TWD UAH USD VND ZAR"
)
CURRENCIES = frozenset(_CURRENCIES.split())
_PATH = r"^[^.\[\]]+(\.[^.\[\]]+|\[(\*|[0-9]+|\"[^\"]+\")\])*$"
_Path = Annotated[
    str,
    Meta(
        pattern=_PATH,
        max_length=300,
        description='a field, as spec.replicas, spec.list[*].size, metadata.labels["a.b/c"]',
    ),
]
_Text = Annotated[str, Meta(min_length=1, max_length=300)]
_Date = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
        description="when they held, as 2026-08-01",
    ),
]
KINDS = ("PriceTable",)
Path = tuple[str | int | None, ...]
"""Keys, list indices, and None for all items of a list."""
_TITLES = 3
"""Prices that a sentence names."""
_STEP = re.compile(r"\[\*\]|\[(?P<index>\d+)\]|\[\"(?P<quoted>[^\"]+)\"\]|\.?(?P<key>[^.\[\]]+)")


class PricedKind(StrictShape, frozen=True, kw_only=True):
    """What has a price: a kind of resource, and how much of it."""

    kind: Annotated[_Text, Meta(description="the kind of the resource, as it is written in it")]
    group: Annotated[str | None, Meta(description="its API group; absent: whatever group")] = None
    title: Annotated[_Text, Meta(description="what is paid for, in a word")] = ""
    when: Annotated[
        Mapping[str, str | int | bool],
        Meta(
            min_length=1,
            description="values that fields must have for this price",
            extra_json_schema={"propertyNames": {"pattern": _PATH, "maxLength": 300}},
        ),
    ] = {}
    count: Annotated[
        _Path, Meta(description="a field that says how many there are; absent: one")
    ] = ""
    per: Annotated[
        _Path, Meta(description="a field with the amount that is paid for; [*] adds up")
    ] = ""
    unit: Annotated[
        str,
        Meta(description="of that amount, for one price", extra_json_schema={"enum": [*UNITS]}),
    ] = "one"
    absent: Annotated[_Amount | None, Meta(description="the amount where the field is not set")] = (
        None
    )
    up_to: Annotated[bool, Meta(description="at most this: a limit, no sure expense")] = False
    assumes: Annotated[_Text, Meta(description="what has to hold for this price, told with it")] = (
        ""
    )


class Price(PricedKind, frozen=True, kw_only=True):
    """The price of one kind of resource, for one unit."""

    price: _Amount
    every: Annotated[Literal["month", "hour"], Meta(description="absent: month")] = "month"
    currency: Annotated[str, Meta(description="the table's; another one is refused")] = ""
    source: Annotated[
        _Text, Meta(description="where this price comes from; absent: the table's")
    ] = ""
    date: Annotated[_Date, Meta(description="when this price held; absent: the table's")] = ""


class PriceFile(StrictShape, frozen=True, kw_only=True):
    """``metadata.name`` and ``spec`` of a price table."""

    name: DocumentName
    currency: Annotated[
        str,
        Meta(
            description="a code such as EUR or USD",
            extra_json_schema={"enum": sorted(CURRENCIES)},
        ),
    ]
    source: Annotated[_Text, Meta(description="where the prices come from: an address, a contract")]
    date: _Date
    stale_after_days: Annotated[
        int,
        Meta(ge=1, le=3660, description="from when on a price is reported as old; absent: 90"),
    ] = 90
    hours_per_month: Annotated[
        int, Meta(ge=1, le=744, description="for prices of an hour; absent: 730")
    ] = 730
    prices: Annotated[
        tuple[Annotated[Price, Meta(description="each entry has a kind and a price")], ...],
        Meta(min_length=1, max_length=1000, description="at least one price"),
    ]


class PriceTable(PriceFile, frozen=True, kw_only=True):
    """All prices with their currency, source and date."""

    today: dt.date | None = None
    """The day on which the prices are used; None: their age is not judged."""

    @property
    def stale(self) -> tuple[str, ...]:
        """Return which prices are too old, as sentences."""
        titles: dict[str, list[str]] = {}
        for price in self.prices:
            titles.setdefault(price.date or self.date, []).append(price.title or price.kind)
        days = self.stale_after_days
        return tuple(
            f"prices of {day} are older than {days} days: {_few(names)}"
            for day, names in sorted(titles.items())
            if self.today is not None and (self.today - _day(day)).days > days
        )

    @property
    def origin(self) -> str:
        """Return where the prices come from, and whether they are old."""
        return "; ".join((f"{self.name}: {self.source}, {self.date}", *self.stale))


def _few(names: list[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _TITLES} more" if len(distinct) > _TITLES else ""
    return f"{', '.join(distinct[:_TITLES])}{more}"


def _day(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


def read_prices(data: str | bytes, *, name: str, today: dt.date | None = None) -> PriceTable:
    """
    Read a price table. `name` is the file's name in messages.

    Raises:
        InvalidInputError: It is not a readable table, or has an implausible price.
    """
    file = read_document(PriceFile, data, name=name, kinds=KINDS, named="name")
    for number, price in enumerate(file.prices):
        location = yaml11.field_location(name, data, ("spec", "prices", number))
        _check(price, location, file.currency)
        _check_day(price.date or file.date, location)
    return PriceTable(**asdict(file), today=today)


def _check_day(text: str, location: str) -> None:
    try:
        _day(text)
    except ValueError as error:
        raise InvalidInputError(
            f"{location}.date", text, "is not a day of the calendar", hint="write it as 2026-11-28"
        ) from error


def _check(price: Price, location: str, currency: str) -> None:
    if price.currency not in ("", currency):
        raise InvalidInputError(
            f"{location}.currency",
            price.currency,
            f"is not the table's {currency}",
            hint="convert it: no exchange rate is known here; or keep a table for each currency",
        )
    needless = {"unit": price.unit != "one", "absent": price.absent is not None}
    for key, is_set in needless.items():
        if is_set and not price.per:
            raise InvalidInputError(
                f"{location}.{key}",
                str(getattr(price, key)),
                "goes with 'per'",
                hint="name the field it is for",
            )


def steps_of(path: str) -> Path:
    """Return the steps of a field's path."""
    steps: list[str | int | None] = []
    for step in _STEP.finditer(path):
        if step["index"]:
            steps.append(int(step["index"]))
        else:
            steps.append(step["quoted"] or step["key"])
    return tuple(steps)
