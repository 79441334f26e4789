"""
Make a price table from the public price list of a cloud.

    aws   an offer file: index.json (``products``, ``terms.OnDemand``) or index.csv
    gcp   the SKUs of a service, as the Cloud Billing Catalog answers (``skus``, ``pricingInfo``)

A list has prices by attributes and a table by kinds, so a map says which is which:

    kind: PriceMap
    spec:
      prices:
        - select: {instanceType: m5.large, location: EU (Frankfurt), operatingSystem: Linux}
          kind: Instance
          when: {spec.forProvider.instanceType: m5.large}

Each `select` must name exactly one on-demand price. Prices are exact decimals. A price that is not
the same for every amount is refused: a table has no tiers. Pure; called by ``orderkit prices``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta

from ground.errors import InvalidInputError, shorten
from ground.objects.kube_objects import dig
from ground.shapes import StrictShape, exact
from orderkit.core.documents import DocumentName, document_schema
from orderkit.core.order.order_cost import DIGITS
from orderkit.core.plan.price_table import CURRENCIES, PricedKind, read_prices
from yamlfiles import yaml11
from yamlfiles.format_versions import API_VERSION

_CHOSEN = ("kind", "group", "title", "when", "count", "per", "unit", "absent", "upTo", "assumes")


class MapEntry(PricedKind, frozen=True, kw_only=True):
    """Which price of a list is that of a kind."""

    select: Annotated[
        Mapping[str, str | int],
        Meta(min_length=1, description="attributes that exactly one price of the list has"),
    ]


class PriceMap(StrictShape, frozen=True):
    """``metadata.name`` and ``spec`` of a map."""

    name: DocumentName
    prices: Annotated[
        tuple[Annotated[MapEntry, Meta(description="each entry has a select and a kind")], ...],
        Meta(min_length=1, max_length=1000),
    ]


_UNITS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("hrs", "hours", "hour", "h"), ("hour", "")),
    **dict.fromkeys(("mo", "month", "months"), ("month", "")),
    "gb-mo": ("month", "GB"),
    "gby.mo": ("month", "GB"),
    "giby.mo": ("month", "GiB"),
    "tiby.mo": ("month", "TiB"),
    "gb-hours": ("hour", "GB"),
    "gby.h": ("hour", "GB"),
    "giby.h": ("hour", "GiB"),
    "vcpu-hours": ("hour", "core"),
}
"""By the list's unit: what it is paid for, and the amount that ``per`` has to name."""
_NAMED = 4
_NANOS = 9
"""Digits of `nanos`, the part of Google's prices after the point."""


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """One price of a list. `tiers`: from which amount on it is what."""

    sku: str
    attributes: Mapping[str, tuple[str, ...]]
    """By a name in small letters without spaces: one value, or several."""
    unit: str
    tiers: tuple[tuple[str, Decimal], ...]
    date: str


@dataclass(frozen=True, slots=True)
class _PriceList:
    source: str
    prices: Callable[[], Iterator[ListedPrice]]


def imported_table(
    provider: str, file: tuple[str, bytes], map_file: tuple[str, bytes], *, currency: str
) -> dict[str, Any]:
    """
    Return a price table as its file has it.

    Args:
        provider: ``aws`` or ``gcp``.
        file: Name and bytes of the list.
        map_file: Name and bytes of the map.
        currency: Of the prices that are taken; there is no conversion.

    Raises:
        InvalidInputError: A file is not readable; an entry of the map selects no price or several;
            or a price is tiered, in another currency, or for a unit that a table does not have.
    """
    if currency not in CURRENCIES:
        raise InvalidInputError(
            "--currency", currency, "is not a known currency", hint="--currency EUR"
        )
    map_name, map_data = map_file
    schema = document_schema(PriceMap, ("PriceMap",), "name")
    price_map = yaml11.load(map_data, name=map_name, schema=schema)
    price_list = _aws(*file, currency) if provider == "aws" else _gcp(*file, currency)
    entries = price_map["spec"]["prices"]
    matches: list[list[ListedPrice]] = [[] for _ in entries]
    selectors = [_selector(entry["select"]) for entry in entries]
    for price in price_list.prices():
        for chosen, selector in zip(matches, selectors, strict=True):
            if all(value in price.attributes.get(name, ()) for name, value in selector.items()):
                chosen.append(price)
    rows = []
    for number, (entry, chosen) in enumerate(zip(entries, matches, strict=True)):
        location = yaml11.field_location(map_name, map_data, ("spec", "prices", number))
        rows.append(_row(entry, _only(location, entry, chosen), location))
    spec = {
        "currency": currency,
        "source": price_list.source,
        "date": min(row["date"] for row in rows),
        "prices": rows,
    }
    meta = {"name": price_map["metadata"]["name"]}
    table = {"apiVersion": API_VERSION, "kind": "PriceTable", "metadata": meta, "spec": spec}
    read_prices(yaml11.dump(table), name=file[0])
    return table


def _selector(select: Mapping[str, object]) -> dict[str, str]:
    return {_folded(name): str(value) for name, value in select.items()}


def _folded(name: str) -> str:
    """Return an attribute's name as both of AWS's formats write it: ``Instance Type``."""
    return "".join(name.split()).lower()


def _only(location: str, entry: Mapping[str, Any], chosen: list[ListedPrice]) -> ListedPrice:
    select = json.dumps(entry["select"], ensure_ascii=False)
    if not chosen:
        raise InvalidInputError(
            f"{location}.select", select, "selects no on-demand price of the list"
        )
    if len(chosen) > 1:
        skus = ", ".join(price.sku for price in chosen[:_NAMED])
        raise InvalidInputError(
            f"{location}.select",
            select,
            f"selects {len(chosen)} prices: {shorten(skus)}",
            hint=f"add one of the attributes in which they differ: {_differing(chosen)}",
        )
    return chosen[0]


def _differing(chosen: list[ListedPrice]) -> str:
    first, second = chosen[0].attributes, chosen[1].attributes
    names = [name for name in first.keys() | second if first.get(name) != second.get(name)]
    return shorten(", ".join(sorted(names))) or "none, so write the price by hand"


def _row(entry: Mapping[str, Any], price: ListedPrice, location: str) -> dict[str, Any]:
    by_unit = _UNITS.get(price.unit.lower())
    if by_unit is None:
        raise InvalidInputError(
            f"{location}.select",
            price.sku,
            f"is a price for the unit '{shorten(price.unit)}', which a price table does not have",
            hint=f"units that can be read: {', '.join(_UNITS)}",
        )
    if len({amount for _, amount in price.tiers}) != 1:
        tiers = ", ".join(f"from {begin}: {exact(amount)}" for begin, amount in price.tiers)
        raise InvalidInputError(
            f"{location}.select",
            price.sku,
            f"has {len(price.tiers)} tiers ({shorten(tiers)}), and a price table has none",
            hint="write the price that holds for you into the table by hand",
        )
    every, amount_unit = by_unit
    if amount_unit and "per" not in entry:
        raise InvalidInputError(
            location,
            price.sku,
            f"is paid for each {amount_unit} ({price.unit})",
            hint="name the field that has the amount, with 'per'",
        )
    row = {name: entry[name] for name in _CHOSEN if name in entry}
    if amount_unit:
        row.setdefault("unit", amount_unit)
    if every == "hour":
        row["every"] = "hour"
    return {**row, "price": exact(price.tiers[0][1]), "date": price.date}


def _amount(text: object, name: str) -> Decimal:
    try:
        amount = Decimal(str(text))
    except InvalidOperation as error:
        raise InvalidInputError(name, shorten(str(text)), "is not a price") from error
    if not amount.is_finite() or amount < 0:
        raise InvalidInputError(name, shorten(str(text)), "is not a price")
    return amount


# --- Amazon Web Services


def _aws(name: str, data: bytes, currency: str) -> _PriceList:
    if data.lstrip()[:1] == b"{":
        return _aws_json(name, data, currency)
    return _aws_csv(name, data, currency)


def _aws_json(name: str, data: bytes, currency: str) -> _PriceList:
    offer = _json(name, data)
    products, terms = offer.get("products"), dig(offer, "terms", "OnDemand")
    day = str(offer.get("publicationDate"))[:10]
    if not isinstance(products, dict) or terms is None:
        hint = "an offer file of AWS's price list has products and terms.OnDemand"
        raise InvalidInputError(name, "", "is not an offer file", hint=hint)

    def prices() -> Iterator[ListedPrice]:
        for sku, product in products.items():
            attributes = {
                "sku": (str(sku),),
                "productfamily": (str(dig(product, "productFamily")),),
                **{
                    _folded(key): (str(value),)
                    for key, value in _map(dig(product, "attributes")).items()
                },
            }
            for term in _map(_map(terms).get(sku)).values():
                dimensions = list(map(_map, _map(dig(term, "priceDimensions")).values()))
                tiers = tuple(
                    (
                        str(d.get("beginRange")),
                        _amount(d["pricePerUnit"][currency], f"{name}: {sku}"),
                    )
                    for d in dimensions
                    if currency in _map(dig(d, "pricePerUnit"))
                )
                if tiers:
                    yield ListedPrice(
                        str(sku), attributes, str(dimensions[0].get("unit")), tiers, day
                    )

    version = f"{offer.get('offerCode')} {offer.get('version')}"
    return _PriceList(shorten(f"AWS price list, {version}"), prices)


def _aws_csv(name: str, data: bytes, currency: str) -> _PriceList:
    try:
        lines = iter(csv.reader(io.StringIO(data.decode("utf-8-sig")), strict=True))
        about = dict(line[:2] for line in islice(lines, 5))
        head = [_folded(cell) for cell in next(lines, [])]
    except (UnicodeDecodeError, ValueError, csv.Error) as error:
        raise InvalidInputError(name, "", f"is not an offer file: {error}") from error
    needed = {"sku", "offertermcode", "termtype", "unit", "priceperunit", "currency"}
    if not needed <= set(head):
        hint = "index.csv of AWS's price list has five lines about the file, then the columns"
        missing = ", ".join(sorted(needed - set(head)))
        raise InvalidInputError(name, "", f"lacks the columns {missing}", hint=hint)

    def prices() -> Iterator[ListedPrice]:
        by_term: dict[tuple[str, str], list[dict[str, str]]] = {}
        try:
            for line in lines:
                row = dict(zip(head, line, strict=False))
                if row.get("termtype") == "OnDemand" and row.get("currency") == currency:
                    by_term.setdefault((row["sku"], row["offertermcode"]), []).append(row)
        except csv.Error as error:
            raise InvalidInputError(name, "", f"is not an offer file: {error}") from error
        for (sku, _), rows in by_term.items():
            tiers = tuple(
                (row.get("startingrange", "0"), _amount(row["priceperunit"], f"{name}: {sku}"))
                for row in rows
            )
            attributes = {key: (value,) for key, value in rows[0].items()}
            yield ListedPrice(sku, attributes, rows[0]["unit"], tiers, day)

    day = about.get("Publication Date", "")[:10]
    version = f"{about.get('OfferCode')} {about.get('Version')}"
    return _PriceList(shorten(f"AWS price list, {version}"), prices)


# --- Google Cloud


def _gcp(name: str, data: bytes, currency: str) -> _PriceList:
    skus = _json(name, data).get("skus")
    if not isinstance(skus, list):
        hint = 'the Cloud Billing Catalog answers {"skus": [...]}'
        raise InvalidInputError(name, "", "is not a list of SKUs", hint=hint)

    def prices() -> Iterator[ListedPrice]:
        for sku in skus:
            info: Any = next(iter(_listed(dig(sku, "pricingInfo"))[-1:]), {})
            expression = _map(dig(info, "pricingExpression"))
            usage = dig(sku, "category", "usageType")
            tiers = tuple(_gcp_tiers(name, expression, currency))
            if usage != "OnDemand" or not tiers:
                continue
            attributes = {
                "skuid": (str(dig(sku, "skuId")),),
                "description": (str(dig(sku, "description")),),
                "serviceregions": tuple(map(str, _listed(dig(sku, "serviceRegions")))),
                **{
                    _folded(key): (str(value),) for key, value in _map(dig(sku, "category")).items()
                },
            }
            yield ListedPrice(
                str(dig(sku, "skuId")),
                attributes,
                str(expression.get("usageUnit")),
                tiers,
                str(info.get("effectiveTime"))[:10],
            )

    return _PriceList("Google Cloud Billing Catalog", prices)


def _gcp_tiers(
    name: str, expression: Mapping[str, Any], currency: str
) -> Iterator[tuple[str, Decimal]]:
    for rate in _listed(expression.get("tieredRates")):
        unit_price = _map(dig(rate, "unitPrice"))
        if unit_price.get("currencyCode") == currency:
            with localcontext(prec=DIGITS):
                units = _amount(unit_price.get("units") or 0, name)
                nanos = _amount(unit_price.get("nanos") or 0, name).scaleb(-_NANOS)
                yield str(rate.get("startUsageAmount") or 0), units + nanos


def _json(name: str, data: bytes) -> dict[str, Any]:
    try:
        content: Any = json.loads(data, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(name, "", f"is not JSON: {shorten(str(error))}") from error
    if not isinstance(content, dict):
        raise InvalidInputError(name, "", "is not a JSON object")
    return content


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
