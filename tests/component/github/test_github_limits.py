"""GitHub.com's limits on a clock that is moved by hand: the bench of them, small (bench limits)."""

from __future__ import annotations

import pytest
from bench.forge_limits import HOUR_S, Numbers, run


def test_people_use_what_an_hour_allows_and_are_never_refused() -> None:
    """4 orders of 2 requests and 12 of changes, where 10 an hour are allowed: 10 are used."""
    found = run(4, 12, Numbers(per_minute=4, per_hour=10), campaign=False)

    assert len(found.created_at) == 4 * 2 + 12
    assert found.used() == 1.0
    assert found.forge.github.limits.refused == 0
    assert HOUR_S < found.took_s < 2 * HOUR_S


def test_a_campaign_waits_for_no_limit_of_content() -> None:
    found = run(4, 40, Numbers(per_minute=8, per_hour=8), campaign=True)

    assert len(found.created_at) == 4 * 2
    assert found.forge.github.limits.refused == 0
    assert found.took_s < 60


@pytest.mark.parametrize("rival", [1, 3])
def test_beside_another_replica_no_request_is_refused_twice_in_a_row(rival: int) -> None:
    numbers = Numbers(per_minute=4, per_hour=100, rival_per_minute=rival)

    found = run(3, 12, numbers, campaign=False)

    assert len(found.created_at) == 3 * 2 + 12
    assert found.forge.github.limits.refused > 0
    assert found.forge.github.limits.refused_again == 0
