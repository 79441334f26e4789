"""Price tables from the public lists of clouds; the excerpts are our own, in their formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError
from orderkit.core.plan.price_lists import imported_table
from orderkit.core.plan.price_table import PriceTable, read_prices
from yamlfiles import yaml11

FRANKFURT = {"location": "EU (Frankfurt)", "instanceType": "m9.large", "operatingSystem": "Linux"}


def dimension(price: str, unit: str = "Hrs", begin: str = "0", end: str = "Inf") -> dict[str, Any]:
    return {
        "rateCode": f"X.{begin}",
        "description": "an excerpt of our own",
        "beginRange": begin,
        "endRange": end,
        "unit": unit,
        "pricePerUnit": {"USD": price},
        "appliesTo": [],
    }


def offer(*products: tuple[Mapping[str, str], list[dict[str, Any]]]) -> bytes:
    """Return an offer file as AWS publishes one for each service."""
    skus = [f"SKU{n}" for n in range(len(products))]
    content = {
        "formatVersion": "v1.0",
        "disclaimer": "invented",
        "offerCode": "AmazonEC2",
        "version": "20260801000000",
        "publicationDate": "2026-08-01T12:00:00Z",
        "products": {
            sku: {"sku": sku, "productFamily": "Compute Instance", "attributes": dict(attributes)}
            for sku, (attributes, _) in zip(skus, products, strict=True)
        },
        "terms": {
            "OnDemand": {
                sku: {f"{sku}.T": {"sku": sku, "priceDimensions": dict(enumerate(dimensions))}}
                for sku, (_, dimensions) in zip(skus, products, strict=True)
            },
            "Reserved": {},
        },
    }
    return json.dumps(content).encode()


CSV = """\
"FormatVersion","v1.0"
"Disclaimer","invented"
"Publication Date","2026-08-01T12:00:00Z"
"Version","20260801000000"
"OfferCode","AmazonEC2"
SKU,OfferTermCode,TermType,StartingRange,Unit,PricePerUnit,Currency,\
Location,Instance Type,Operating System
"SKU0","T","OnDemand","0","Hrs","0.1150000000","USD","EU (Frankfurt)","m9.large","Linux"
"SKU0","T","Reserved","0","Hrs","0.0150000000","USD","EU (Frankfurt)","m9.large","Linux"
"SKU1","T","OnDemand","0","Hrs","0.9","USD","EU (Frankfurt)","m9.huge","Linux"
"""


def sku(name: str, *rates: tuple[int, str, int], unit: str = "h", **more: Any) -> dict[str, Any]:
    """Return a SKU as the Cloud Billing Catalog answers it."""
    return {
        "name": f"services/X/skus/{name}",
        "skuId": name,
        "description": f"{name} running in Frankfurt",
        "category": {"resourceFamily": "Compute", "usageType": "OnDemand", **more},
        "serviceRegions": ["europe-west3"],
        "pricingInfo": [
            {
                "effectiveTime": "2026-09-01T00:00:00Z",
                "pricingExpression": {
                    "usageUnit": unit,
                    "tieredRates": [
                        {
                            "startUsageAmount": begin,
                            "unitPrice": {"currencyCode": "USD", "units": units, "nanos": nanos},
                        }
                        for begin, units, nanos in rates
                    ],
                },
            }
        ],
    }


def table(
    provider: str, data: bytes, *entries: dict[str, Any], currency: str = "USD"
) -> PriceTable:
    price_map = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "PriceMap",
        "metadata": {"name": "frankfurt"},
        "spec": {"prices": list(entries)},
    }
    map_file = ("map.yaml", yaml.safe_dump(price_map).encode())
    written = yaml11.dump(imported_table(provider, ("list", data), map_file, currency=currency))
    return read_prices(written, name="prices.yaml")


MACHINE = {"select": FRANKFURT, "kind": "Instance", "title": "machine"}


@pytest.mark.parametrize(
    "data", [offer((FRANKFURT, [dimension("0.1150000000")])), CSV.encode()], ids=["json", "csv"]
)
def test_both_formats_of_aws_give_the_same_table(data: bytes) -> None:
    read = table("aws", data, MACHINE)

    assert (read.name, read.currency, read.date) == ("frankfurt", "USD", "2026-08-01")
    assert read.source == "AWS price list, AmazonEC2 20260801000000"
    (price,) = read.prices
    assert (price.kind, price.price, price.every) == ("Instance", Decimal("0.115"), "hour")


def test_units_and_nanos_of_gcp_are_one_exact_number() -> None:
    skus = [sku("core", (0, "1", 40_800_001)), sku("spot", (0, "0", 1), usageType="Preemptible")]
    entry = {"select": {"skuId": "core", "serviceRegions": "europe-west3"}, "kind": "Vm"}

    (price,) = table("gcp", json.dumps({"skus": skus}).encode(), entry).prices

    assert (price.price, price.every, price.date) == (Decimal("1.040800001"), "hour", "2026-09-01")


def test_a_price_of_an_amount_names_the_field_that_has_it() -> None:
    disk = offer(({"volumeType": "Fast"}, [dimension("0.0952", "GB-Mo")]))
    entry = {"select": {"volumeType": "Fast"}, "kind": "Disk"}

    (price,) = table("aws", disk, {**entry, "per": "spec.size"}).prices

    assert (price.per, price.unit, price.every) == ("spec.size", "GB", "month")
    with pytest.raises(InvalidInputError, match="is paid for each GB") as refused:
        table("aws", disk, entry)
    assert "'per'" in refused.value.hint


TIERED = offer((FRANKFURT, [dimension("0.1", end="10"), dimension("0.05", begin="10")]))
TWO = offer((FRANKFURT, [dimension("1")]), ({**FRANKFURT, "tenancy": "Host"}, [dimension("2")]))
FREE = json.dumps({"skus": [sku("core", (0, "0", 0), (5, "0", 7))]}).encode()
REFUSED = [
    ("a tiered price of AWS", "aws", TIERED, FRANKFURT, "has 2 tiers (from 0: 0.1, from 10: 0.05)"),
    ("a free tier of Google", "gcp", FREE, {"skuId": "core"}, "has 2 tiers"),
    ("nothing selected", "aws", TWO, {"location": "Mars"}, "selects no on-demand price"),
    ("several selected", "aws", TWO, FRANKFURT, "selects 2 prices: SKU0, SKU1"),
    ("another unit", "aws", offer((FRANKFURT, [dimension("1", "Requests")])), FRANKFURT,
     "for the unit 'Requests'"),
    ("a price that is none", "aws", offer((FRANKFURT, [dimension("NaN")])), FRANKFURT,
     "is not a price"),
    ("a negative price", "aws", offer((FRANKFURT, [dimension("-1")])), FRANKFURT, "is not a price"),
    ("not JSON", "gcp", b"{", {"a": "b"}, "is not JSON"),
    ("another file", "gcp", b"{}", {"a": "b"}, "is not a list of SKUs"),
    ("no offer", "aws", b"{}", {"a": "b"}, "is not an offer file"),
    ("no columns", "aws", b"a,b\n", {"a": "b"}, "lacks the columns"),
    ("no text", "aws", b"\xff\xfe", {"a": "b"}, "is not an offer file: 'utf-8' codec"),
    ("no pairs at its head", "aws", b"a,b\nc\n", {"a": "b"}, "is not an offer file: dictionary"),
    ("an open quote", "aws", CSV.encode() + b'"SKU2,', {"a": "b"}, "is not an offer file: unexp"),
    ("a price in words", "aws", offer((FRANKFURT, [dimension("much")])), FRANKFURT,
     "SKU0: 'much' is not a price"),
    ("an endless price", "aws", offer((FRANKFURT, [dimension("Infinity")])), FRANKFURT,
     "SKU0: 'Infinity' is not a price"),
    ("a list", "gcp", b"[]", {"a": "b"}, "list: '' is not a JSON object"),
    ("no terms", "aws", b'{"products": {}, "terms": {}}', {"a": "b"}, "is not an offer file"),
    ("terms alone", "aws", b'{"terms": {"OnDemand": {}}}', {"a": "b"}, "is not an offer file"),
    ("no price at all", "gcp", json.dumps({"skus": [sku("core")]}).encode(), {"skuId": "core"},
     "selects no on-demand price"),
    ("odd parts", "aws", b'{"products": {"a": 1}, "terms": {"OnDemand": {"a": [1]}}}', {"a": "b"},
     "selects no on-demand price"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "data", "select", "words"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_what_is_not_one_flat_price_is_refused(
    provider: str, data: bytes, select: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        table(provider, data, {"select": select, "kind": "Instance"})

    assert f" {words}" in f" {refused.value}"


def test_a_price_in_another_currency_is_not_taken() -> None:
    with pytest.raises(InvalidInputError, match="selects no on-demand price"):
        table("aws", offer((FRANKFURT, [dimension("1")])), MACHINE, currency="EUR")


def test_a_currency_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="--currency: 'XXQ' is not a known currency"):
        table("aws", TWO, MACHINE, currency="XXQ")


def test_several_prices_are_told_with_the_attributes_in_which_they_differ() -> None:
    five = offer(*(({**FRANKFURT, "tenancy": str(n)}, [dimension("1")]) for n in range(5)))
    same = offer((FRANKFURT, [dimension("1")]), (FRANKFURT, [dimension("1")]))

    with pytest.raises(
        InvalidInputError, match=r"selects 5 prices: SKU0, SKU1, SKU2, SKU3$"
    ) as told:
        table("aws", five, MACHINE)
    assert told.value.hint.endswith("in which they differ: sku, tenancy")
    with pytest.raises(InvalidInputError) as told:
        table("aws", same, {"select": {"location": "EU (Frankfurt)"}, "kind": "Instance"})
    assert told.value.hint.endswith("in which they differ: sku")


def test_the_newest_price_of_a_sku_and_any_of_its_regions_count() -> None:
    core = sku("core", (0, "1", 0))
    core["serviceRegions"] = ["europe-west1", "europe-west3"]
    core["pricingInfo"] = [sku("core", (0, "9", 0))["pricingInfo"][0], *core["pricingInfo"]]
    core["pricingInfo"][0]["effectiveTime"] = "2020-01-01T00:00:00Z"
    spot = sku("spot", (0, "2", 0), usageType="Preemptible")
    data = json.dumps({"skus": [spot, core]}).encode()

    (price,) = table(
        "gcp", data, {"select": {"serviceRegions": "europe-west1"}, "kind": "Vm"}
    ).prices

    assert (price.price, price.date) == (Decimal(1), "2026-09-01")


def test_a_row_keeps_what_the_map_says_and_the_table_has_the_oldest_date() -> None:
    disk = {"volumeType": "Fast"}
    data = offer((FRANKFURT, [dimension("1")]), (disk, [dimension("0.1", "GB-Mo")]))
    entry = {"select": disk, "kind": "Disk", "title": "disk", "per": "spec.size", "unit": "GiB"}

    read = table("aws", data, MACHINE, entry)

    assert [(price.kind, price.title, price.unit) for price in read.prices] == [
        ("Instance", "machine", "one"),
        ("Disk", "disk", "GiB"),
    ]
    later, earlier = sku("a", (0, "1", 0)), sku("b", (0, "1", 0))
    earlier["pricingInfo"][0]["effectiveTime"] = "2026-08-02T00:00:00Z"
    skus = json.dumps({"skus": [later, earlier]}).encode()
    both = table("gcp", skus, *({"select": {"skuId": name}, "kind": name} for name in "ab"))
    assert both.date == "2026-08-02"


@given(st.integers(0, 10**6), st.integers(0, 10**9 - 1))
def test_no_digit_is_lost(units: int, nanos: int) -> None:
    data = json.dumps({"skus": [sku("core", (0, str(units), nanos))]}).encode()

    (price,) = table("gcp", data, {"select": {"skuId": "core"}, "kind": "Vm"}).prices

    assert price.price * 10**9 == units * 10**9 + nanos
