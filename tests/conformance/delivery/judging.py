"""
Compare what a platform did with what was recorded of the real Argo CD.

Accounts of the real one lie in ``recorded/``, one file per scenario, so that every run is compared
with it; with ``--e2e`` the real one is played again and has to do the same. To record again after
a change of scenarios:

    ORDERKIT_RECORD_DELIVERY=1 scripts/test.sh --e2e tests/conformance/delivery -k argocd
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.conformance.delivery.account import Facts, read, written
from tests.conformance.delivery.differences import DIFFERENCES
from tests.conformance.delivery.playing import Outcome

RECORDED = Path(__file__).parent / "recorded"
RECORD_VARIABLE = "ORDERKIT_RECORD_DELIVERY"
_NOTHING = "(nothing)"
Pair = tuple[str, str]
"""What the real one did, and what was seen now."""


def file_of(scenario: str) -> Path:
    return RECORDED / f"{scenario}.txt"


def recorded(scenario: str) -> Facts:
    """Return what the real Argo CD did."""
    path = file_of(scenario)
    assert path.exists(), f"{scenario} is not recorded; {Path(__file__).name} says how"
    return read(path.read_text())


def record(scenario: str, facts: Facts) -> None:
    """Keep what the real Argo CD did."""
    RECORDED.mkdir(exist_ok=True)
    file_of(scenario).write_text(written(facts))


def compared(real: Facts, seen: Facts) -> dict[tuple[str, str], Pair]:
    """Return where two accounts differ, by step and subject."""
    found: dict[tuple[str, str], Pair] = {}
    for step in [*real, *(step for step in seen if step not in real)]:
        theirs, ours = real.get(step, {}), seen.get(step, {})
        for subject in {**theirs, **ours}:
            pair = theirs.get(subject, _NOTHING), ours.get(subject, _NOTHING)
            if pair[0] != pair[1]:
                found[step, subject] = pair
    return found


def as_recorded(scenario: str, outcome: Outcome) -> bool:
    """Say whether a play went through as the real Argo CD's did; if nobody recorded it, at all."""
    return not otherwise(scenario, outcome)


def otherwise(scenario: str, outcome: Outcome) -> str:
    """Tell why a play does not count, or nothing if it went as recorded."""
    if outcome.failure:
        return outcome.failure
    if os.environ.get(RECORD_VARIABLE) or not file_of(scenario).exists():
        return ""
    return told(compared(recorded(scenario), outcome.facts))


def listed(scenario: str) -> dict[tuple[str, str], Pair]:
    """Return the known differences of a scenario."""
    return {
        (one.step, one.subject): (one.real, one.ours)
        for one in DIFFERENCES
        if one.scenario == scenario
    }


def told(found: dict[tuple[str, str], Pair]) -> str:
    """Write differences so that a person sees them."""
    return "\n".join(
        f"{step} / {subject}\n  real: {pair[0]}\n  seen: {pair[1]}"
        for (step, subject), pair in found.items()
    )
