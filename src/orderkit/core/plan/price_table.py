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
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError
from yamlfiles import yaml11
from yamlfiles.documents import document

PRICES = PurePosixPath("gitops", "prices.yaml")
"""Where a pack keeps what things cost."""
_DECIMAL = r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,18})?$"
_PRICE_HINT = "a number that is not negative, as a text: '3.20'"
_AMOUNT: dict[str, Any] = {
    "type": ["string", "integer"],
    "pattern": _DECIMAL,
    "minimum": 0,
    "maximum": 10**12,
    "description": _PRICE_HINT,
}
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
_PATH = {
    "type": "string",
    "pattern": r"^[^.\[\]]+(\.[^.\[\]]+|\[(\*|[0-9]+|\"[^\"]+\")\])*$",
    "maxLength": 300,
    "description": 'a field, as spec.replicas, spec.list[*].size, metadata.labels["a.b/c"]',
}
_TEXT = {"type": "string", "minLength": 1, "maxLength": 300}
_DATE = {
    "type": "string",
    "pattern": r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
    "description": "when they held, as 2026-08-01",
}
PRICE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "price"],
    "description": "each entry has a kind and a price",
    "properties": {
        "kind": {**_TEXT, "description": "the kind of the resource, as it is written in it"},
        "group": {"type": "string", "description": "its API group; absent: whatever group"},
        "title": {**_TEXT, "description": "what is paid for, in a word"},
        "when": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": _PATH,
            "additionalProperties": {"type": ["string", "integer", "boolean"]},
            "description": "values that fields must have for this price",
        },
        "count": {**_PATH, "description": "a field that says how many there are; absent: one"},
        "per": {**_PATH, "description": "a field with the amount that is paid for; [*] adds up"},
        "unit": {"enum": [*UNITS], "description": "of that amount, for one price"},
        "absent": {**_AMOUNT, "description": "the amount where the field is not set"},
        "price": _AMOUNT,
        "every": {"enum": ["month", "hour"], "description": "absent: month"},
        "upTo": {"type": "boolean", "description": "at most this: a limit, no sure expense"},
        "assumes": {**_TEXT, "description": "what has to hold for this price, told with it"},
        "currency": {"type": "string", "description": "the table's; another one is refused"},
        "source": {**_TEXT, "description": "where this price comes from; absent: the table's"},
        "date": {**_DATE, "description": "when this price held; absent: the table's"},
    },
}
PRICES_SCHEMA = document(
    "PriceTable",
    {
        "currency": {"enum": sorted(CURRENCIES), "description": "a code such as EUR or USD"},
        "source": {**_TEXT, "description": "where the prices come from: an address, a contract"},
        "date": _DATE,
        "staleAfterDays": {
            "type": "integer",
            "minimum": 1,
            "maximum": 3660,
            "description": "from when on a price is reported as old; absent: 90",
        },
        "hoursPerMonth": {
            "type": "integer",
            "minimum": 1,
            "maximum": 744,
            "description": "for prices of an hour; absent: 730",
        },
        "prices": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": PRICE_SCHEMA,
            "description": "at least one price",
        },
    },
    required=["currency", "source", "date", "prices"],
)
_HOURS, _STALE_DAYS = 730, 90
Path = tuple[str | int | None, ...]
"""Keys, list indices, and None for all items of a list."""
_TITLES = 3
"""Prices that a sentence names."""
_STEP = re.compile(r"\[\*\]|\[(?P<index>\d+)\]|\[\"(?P<quoted>[^\"]+)\"\]|\.?(?P<key>[^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one kind of resource."""

    kind: str
    price: Decimal
    """For one unit, per month or hour."""
    group: str | None = None
    title: str = ""
    when: Mapping[str, object] = field(default_factory=dict)
    """Required field values, by path as written."""
    count: str = ""
    per: str = ""
    unit: str = "one"
    absent: Decimal | None = None
    hourly: bool = False
    up_to: bool = False
    assumes: str = ""
    date: str = ""
    """Of this price, if it is not the table's."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """All prices with their currency, source and date."""

    name: str
    currency: str
    source: str
    date: str
    prices: tuple[Price, ...]
    hours_per_month: int = _HOURS
    stale_after_days: int = _STALE_DAYS
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
    table = yaml11.load(data, name=name, schema=PRICES_SCHEMA)
    spec = table["spec"]
    prices = []
    for number, entry in enumerate(spec["prices"]):
        location = yaml11.field_location(name, data, ("spec", "prices", number))
        _check(entry, location, spec["currency"])
        _check_day(entry.get("date", spec["date"]), location)
        prices.append(_price(entry))
    hours = spec.get("hoursPerMonth", _HOURS)
    title = table["metadata"]["name"]
    stale_after_days = spec.get("staleAfterDays", _STALE_DAYS)
    return PriceTable(
        title, spec["currency"], spec["source"], spec["date"], tuple(prices), hours,
        stale_after_days, today,
    )  # fmt: skip


def _check_day(text: str, location: str) -> None:
    try:
        _day(text)
    except ValueError as error:
        raise InvalidInputError(f"{location}.date", text, "is not a day of the calendar") from error


def _check(entry: Mapping[str, Any], location: str, currency: str) -> None:
    if entry.get("currency", currency) != currency:
        raise InvalidInputError(
            f"{location}.currency",
            entry["currency"],
            f"is not the table's {currency}",
            hint="convert it: no exchange rate is known here; or keep a table for each currency",
        )
    for key in ("unit", "absent"):
        if key in entry and "per" not in entry:
            raise InvalidInputError(
                f"{location}.{key}", entry[key], "goes with 'per'", hint="name the field it is for"
            )


def _price(entry: Mapping[str, Any]) -> Price:
    return Price(
        entry["kind"],
        Decimal(entry["price"]),
        entry.get("group"),
        entry.get("title", ""),
        entry.get("when", {}),
        entry.get("count", ""),
        entry.get("per", ""),
        entry.get("unit", "one"),
        Decimal(entry["absent"]) if "absent" in entry else None,
        hourly=entry.get("every") == "hour",
        up_to=entry.get("upTo", False),
        assumes=entry.get("assumes", ""),
        date=entry.get("date", ""),
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
