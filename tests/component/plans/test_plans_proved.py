"""
What a plan foretells is what the embedded cluster then holds; and whoever compares is not blind.

Bugs sown into the runner each turn the comparison red. One agent lives through three steps: each
is planned rightly, which must differ in nothing, and once more with each bug, which must differ in
what that bug spoils. Then the side that applies gets bugs of its own, beside true plans.

The same on a real API server, with more orders: ``tests/e2e/test_plan_applied.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chances import Chances
from planproof.bugs import APPLIED, BUGS, CHANGED, Bug
from planproof.grounds import Ground, embedded
from planproof.lives import STEPS, Life, wrongly_applied, wrongly_planned
from planproof.orders import orders
from planproof.proving import prove


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with embedded(tmp_path_factory.mktemp("bugs")) as found:
        yield found


@pytest.fixture(scope="module")
def planned(ground: Ground) -> Life:
    return wrongly_planned(ground, "bug-one")


@pytest.fixture(scope="module")
def applied(ground: Ground) -> Life:
    return wrongly_applied(ground, "bug-two", APPLIED)


def test_what_is_planned_comes_true(ground: Ground, chances: Chances) -> None:
    chosen = [
        order
        for kit, short in {"garage": 2, "agentbudget": 0, "datasetagent": 0}.items()
        for order in orders(ground.kits[kit], chances.count(short, 50), chance=chances.seed)
    ]

    account = prove(ground, chosen)

    assert account.plans > len(chosen)
    assert not account.differences, str(account)


@pytest.mark.parametrize("step", STEPS)
def test_without_a_bug_nothing_differs(planned: Life, step: str) -> None:
    assert not planned.true[step]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_of_the_plan_shows(planned: Life, bug: Bug) -> None:
    assert planned.shows(bug), [str(each) for each in planned.broken[bug]]


@pytest.mark.parametrize("bug", APPLIED, ids=lambda bug: bug.name)
def test_a_bug_of_the_side_that_applies_shows(applied: Life, bug: Bug) -> None:
    assert applied.shows(bug), [str(each) for each in applied.broken[bug]]


def test_once_those_are_gone_nothing_differs(applied: Life) -> None:
    assert not applied.true[CHANGED]
