"""docs/scale.md says what is computed from measured costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import scale

COSTS = scale.Costs.read()


def test_the_page_has_the_tables_that_are_computed() -> None:
    page = scale.PAGE.read_text()
    assert scale.with_tables(page, COSTS) == page, "python -m bench.scale --write"


def test_a_forge_that_limits_changes_bounds_the_time() -> None:
    """GitHub.com takes 500 changes an hour: 1,000 orders take two hours, however fast we are."""
    direct, proposed, *_ = scale.WAYS
    assert direct.hours(COSTS, 1_000) == pytest.approx(2.0)
    assert proposed.hours(COSTS, 1_000) == pytest.approx(8.0)
    assert direct.hours(replace(COSTS, requests=100), 1_000) == pytest.approx(20.0)


def test_the_costs_are_those_of_the_bench() -> None:
    figures = Path(scale.__file__).with_name("campaign.py").read_text()
    for name in ("campaign.requests-an-order", "campaign.drift", "campaign.ledger.entry"):
        assert name in figures
