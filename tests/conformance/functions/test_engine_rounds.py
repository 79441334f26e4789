"""
The engine makes of a pipeline what Crossplane's own engine made of it, round by round.

The answers were recorded from ``crossplane internal render``; the release stands in the file.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from enginecases import EngineCase, engine_cases, our_round, recorded_rounds


@functools.cache
def real() -> dict[str, Any]:
    return recorded_rounds()


@pytest.mark.parametrize("case", engine_cases(), ids=lambda case: case.reason)
def test_a_round_is_crossplanes(case: EngineCase) -> None:
    ours, theirs = json.loads(json.dumps(our_round(case))), dict(real()[case.reason])
    left_out = {"calls"} if case.saves_calls else set()
    left_out |= {"deleted"} if case.keeps_uncontrolled else set()
    if ours["error"]:
        left_out |= {"references"}  # nothing is applied, and the XR keeps its own
    if not theirs["conditions"]:
        left_out |= {"conditions", "events"}  # the engine gave up and showed no XR

    for key in theirs.keys() - left_out:
        assert ours[key] == theirs[key], key


def test_where_we_follow_later_releases_is_known() -> None:
    for case in engine_cases():
        ours, theirs = our_round(case), real()[case.reason]
        if case.saves_calls:
            assert ours["calls"]["0"] < theirs["calls"]["0"]
        if case.keeps_uncontrolled:
            assert (ours["deleted"], theirs["deleted"]) == ([], ["a"])


def test_every_round_was_recorded() -> None:
    assert list(real()) == [case.reason for case in engine_cases()]
