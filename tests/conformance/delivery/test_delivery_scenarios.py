"""Every scenario, by the embedded Argo CD and the real Argo CD, against what is recorded."""

from __future__ import annotations

import os

import pytest
from tests.conformance.delivery import (
    scenarios_children,
    scenarios_ending,
    scenarios_healing,
    scenarios_operating,
    scenarios_options,
    scenarios_ordering,
    scenarios_pruning,
    scenarios_refusing,
    scenarios_sources,
)
from tests.conformance.delivery.account import Facts
from tests.conformance.delivery.differences import DIFFERENCES
from tests.conformance.delivery.judging import (
    RECORD_VARIABLE,
    RECORDED,
    compared,
    listed,
    record,
    recorded,
    told,
)
from tests.conformance.delivery.playing import SCENARIOS, Outcome

PLAYED_S = 1800
"""How long playing all scenarios may take; the first test of a platform waits for it."""
PLAYS = (
    scenarios_children,
    scenarios_ending,
    scenarios_healing,
    scenarios_operating,
    scenarios_options,
    scenarios_ordering,
    scenarios_pruning,
    scenarios_refusing,
    scenarios_sources,
)
"""Importing them registers what they hold."""
SAMPLED_EVERY = 3
ON_REAL_SYSTEMS = [
    pytest.param(name, marks=[] if number % SAMPLED_EVERY == 0 else [pytest.mark.soak])
    for number, name in enumerate(SCENARIOS)
]
"""Every third, and all of them in a soak: what Argo CD did is recorded of all."""


@pytest.mark.timeout(PLAYED_S)
@pytest.mark.parametrize("platform", ["embedded"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_embedded_delivery_does_as_recorded(
    on_embedded: dict[str, Outcome], platform: str, name: str
) -> None:
    assert platform == "embedded"
    differs_as_listed(name, succeeded(on_embedded[name]))


@pytest.mark.timeout(PLAYED_S)
@pytest.mark.parametrize(
    "platform", [pytest.param("embedded-kube", marks=pytest.mark.soak), "argocd"]
)
@pytest.mark.parametrize("name", SCENARIOS if os.environ.get(RECORD_VARIABLE) else ON_REAL_SYSTEMS)
def test_on_a_real_api_server(request: pytest.FixtureRequest, platform: str, name: str) -> None:
    """Argo CD does what was recorded of it, the embedded Argo CD what is listed."""
    if not request.config.getoption("--e2e"):
        pytest.skip("a real API server and a real Argo CD: needs --e2e")
    outcomes: dict[str, dict[str, Outcome]] = request.getfixturevalue("on_real_systems")
    facts = succeeded(outcomes[platform][name])
    if platform == "embedded-kube":
        differs_as_listed(name, facts)
    elif os.environ.get(RECORD_VARIABLE):
        record(name, facts)
    else:
        found = compared(recorded(name), facts)
        assert not found, f"Argo CD does otherwise than was recorded:\n{told(found)}"


def test_accounts_and_differences_are_of_scenarios_that_exist() -> None:
    assert {path.stem for path in RECORDED.glob("*.txt")} == set(SCENARIOS)
    assert {one.scenario for one in DIFFERENCES} <= set(SCENARIOS)


def succeeded(outcome: Outcome) -> Facts:
    """Return what was seen of a scenario that went through."""
    if outcome.failure:
        pytest.fail(outcome.failure, pytrace=False)
    return outcome.facts


def differs_as_listed(name: str, facts: Facts) -> None:
    """Hold the embedded Argo CD against the real one: no other differences, none less."""
    found, known = compared(recorded(name), facts), listed(name)
    new = {place: pair for place, pair in found.items() if known.get(place) != pair}
    assert not new, f"not listed in differences.py:\n{told(new)}"
    over = {place: pair for place, pair in known.items() if place not in found}
    assert not over, f"no longer so, but listed in differences.py:\n{told(over)}"
