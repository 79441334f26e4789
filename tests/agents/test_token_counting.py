"""The odometer: every token once, however samples come in, and nothing that was not scraped."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError, NotFoundError
from whisperops.counting import FORGET_S, Odometer, advance
from whisperops.prices import Prices, read_prices
from whisperops.prometheus import Series

BEGUN_S = 1_000.0
FRESH = Odometer("2026-11-21T12:00:00Z", BEGUN_S)
INPUT = "whisperops_tokens_input_total"
KEY = ("gemini-flash", "input")


def series(*samples: tuple[float, float], pod: str = "a", name: str = INPUT) -> Series:
    return Series({"__name__": name, "model": KEY[0], "pod": pod}, samples)


def counted(before: Odometer, *found: Series, to_s: float = 2_000.0) -> float:
    return advance(before, found, window_start_s=BEGUN_S, to_s=to_s).tokens.get(KEY, 0.0)


@pytest.mark.parametrize(
    ("samples", "tokens"),
    [
        pytest.param([(1_010, 5.0)], 5, id="a counter born in the window counts from 0"),
        pytest.param([(900, 100.0), (1_010, 130.0)], 30, id="what was before does not count"),
        pytest.param([(900, 100.0)], 0, id="nothing since"),
        pytest.param([(1_000, 100.0), (1_010, 130.0)], 30, id="a sample of the very moment"),
        pytest.param([(1_010, 5.0), (1_020, 2.0), (1_030, 9.0)], 14, id="a counter began anew"),
        pytest.param([(900, 50.0), (1_010, 3.0)], 3, id="it began anew as the window did"),
        pytest.param([], 0, id="no samples"),
    ],
)
def test_what_a_series_counts(samples: list[tuple[float, float]], tokens: float) -> None:
    assert counted(FRESH, series(*samples)) == tokens


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=25),
    st.lists(st.integers(0, 30), max_size=6),
    st.integers(0, 8),
)
def test_passes_count_the_same_however_they_cut_and_overlap(
    values: list[int], cuts: list[int], overlap: int
) -> None:
    samples = [(BEGUN_S + 10.0 * number, float(value)) for number, value in enumerate(values, 1)]
    odometer = FRESH
    ends = sorted({*cuts, len(samples)})
    for begin, end in pairwise([0, *ends]):
        part = tuple(samples[max(0, begin - overlap) : end])
        odometer = advance(
            odometer,
            [series(*part)] if part else [],
            window_start_s=BEGUN_S,
            to_s=BEGUN_S + 10.0 * end,
        )

    naive = sum(now - old if now >= old else now for old, now in pairwise([0, *values]))
    assert odometer.tokens.get(KEY, 0) == naive


@given(st.permutations(range(4)))
def test_series_count_for_themselves(order: list[int]) -> None:
    all_series = [series((1_010, 1.0), (1_020, 2.0 + pod), pod=str(pod)) for pod in range(4)]

    assert counted(FRESH, *(all_series[number] for number in order)) == 2 + 3 + 4 + 5


def test_what_a_prometheus_forgets_is_still_counted() -> None:
    once = advance(FRESH, [series((1_010, 40.0))], window_start_s=BEGUN_S, to_s=1_100)

    later = advance(once, [], window_start_s=BEGUN_S, to_s=9_999_999)

    assert later.tokens == {KEY: 40.0}
    assert later.last == {}, "a pod that was gone for a month"
    assert FORGET_S < 9_999_999 - 1_010


def test_other_series_count_nothing() -> None:
    assert counted(FRESH, series((1_010, 5.0), name="whisperops_tokens_dreamt_total")) == 0


def test_an_odometer_is_written_as_it_is_read() -> None:
    found = advance(
        FRESH,
        [series((1_010.0, 5.0)), series((1_020.0, 7.5), pod="b")],
        window_start_s=BEGUN_S,
        to_s=2e3,
    )

    again = Odometer.from_json(found.to_json())

    assert again == found
    assert again.to_json() == found.to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"windowStart":1}', "[" * 50_000])
def test_a_spoilt_odometer_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        Odometer.from_json(text)


PRICES = """\
models:
  gemini-flash: {input_per_million: "0.30", output_per_million: 2.50, cached_input_per_million: 0}
"""


def prices(text: str = PRICES) -> Prices:
    return read_prices({"prices.yaml": text}, name="ConfigMap whisperops/agent-prices")


def test_a_cost_is_in_whole_cents_and_never_a_cent_early() -> None:
    tokens = {("gemini-flash", "input"): 1_000_000.0, ("gemini-flash", "output"): 19_999.0}

    assert prices().cost(tokens) == Decimal("0.34")
    assert prices().cost({("gemini-flash", "cached_input"): 10.0**12}) == Decimal("0.00")
    assert prices().cost({}) == Decimal("0.00")


def test_a_model_without_a_price_is_named_and_never_free() -> None:
    with pytest.raises(NotFoundError, match="agent-prices has no price for model 'gemini-9'"):
        prices().cost({("gemini-9", "input"): 1.0})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param({}, "has no key prices.yaml", id="another ConfigMap"),
        pytest.param({"prices.yaml": "a: ["}, "prices.yaml", id="no YAML"),
        pytest.param({"prices.yaml": "models: {m: {}}"}, "input_per_million", id="no price"),
        pytest.param(
            {"prices.yaml": PRICES.replace("0.30", "cheap")}, "not an amount", id="a word"
        ),
        pytest.param({"prices.yaml": PRICES.replace("0.30", "-1")}, "not a price", id="below 0"),
        pytest.param({"prices.yaml": PRICES.replace("0.30", "1e400")}, "not a price", id="1e400"),
        pytest.param({"prices.yaml": PRICES.replace("2.50", ".nan")}, "not a price", id="NaN"),
        pytest.param({"prices.yaml": PRICES.replace("2.50", ".inf")}, "not a price", id="infinite"),
        pytest.param({"prices.yaml": PRICES.replace("2.50", "true")}, "true", id="a boolean"),
    ],
)
def test_a_table_that_is_none_is_refused(data: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInputError, match=r"(?i)" + why):
        read_prices(data, name="ConfigMap whisperops/agent-prices")


def test_any_price_a_person_writes_is_exact() -> None:
    tokens: dict[tuple[str, Any], float] = {("gemini-flash", "input"): 10.0**9}

    assert prices(PRICES.replace("0.30", "0.1")).cost(tokens) == Decimal("100.00")
