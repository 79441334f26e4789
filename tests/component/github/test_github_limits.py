"""GitHub.com's limits on a clock that is moved by hand: the bench of them, small (bench limits)."""

from __future__ import annotations

import pytest
from bench.forge_limits import HOUR_S, Numbers, busy, run

from orderkit.adapters.forges.pacing import Clock
from orderkit.adapters.github.transport import Pacer
from orderkit.ports.urgency import background


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


def test_who_reads_all_the_time_uses_the_points_of_each_minute_and_is_never_refused() -> None:
    """GitHub's 900 points a minute (a read is 1, a write 5), here 60: four fifths are used."""
    numbers = Numbers(points={"core": 60, "graphql": 60}, deed_s=0.01)

    found = busy(200, 40, numbers)

    limits = found.forge.github.limits
    assert limits.points_spent["core"] > 200
    assert limits.refused == 0
    assert found.took_s > 180
    assert found.used_points() >= 0.8


def test_background_work_leaves_a_tenth_of_the_points_to_people() -> None:
    moment = [1_000.0]

    def sleep(seconds: float) -> None:
        moment[0] += seconds

    clock = Clock(lambda: moment[0], lambda: moment[0], sleep)
    pacer = Pacer(points={"core": 50}, clock=clock)

    def sent(count: int, *, creates: bool) -> float:
        begun = moment[0]
        for _ in range(count):
            with pacer.turn("core", creates=creates):
                pass
        return moment[0] - begun

    with background():
        first, more = sent(9, creates=True), sent(1, creates=False)
    moment[0] += 100
    with background():
        sent(45, creates=False)
    person, last = sent(5, creates=False), sent(1, creates=False)

    assert (first, more) == (0, 60), "45 points, then the next minute"
    assert (person, last) == (0, 60), "the five that are left, then the next minute"
