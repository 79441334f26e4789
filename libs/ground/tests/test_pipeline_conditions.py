"""Conditions are replaced only if they say something else."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import (
    AVAILABLE,
    Condition,
    first_and_more,
    merged,
    reconcile_error,
)

PRESENT: list[dict[str, Any]] = [
    {
        "type": "Ready",
        "status": "True",
        "reason": "Available",
        "lastTransitionTime": "then",
        "observedGeneration": 1,
    }
]


def test_an_equal_condition_keeps_its_time() -> None:
    assert merged(PRESENT, AVAILABLE, generation=1, now="now") == PRESENT


@pytest.mark.parametrize(
    ("condition", "generation"),
    [
        (AVAILABLE, 2),
        (Condition("Ready", "True", "Available", "words"), 1),
        (Condition("Ready", "False", "Available"), 1),
        (Condition("Ready", "True", "Other"), 1),
    ],
    ids=["generation", "message", "status", "reason"],
)
def test_any_difference_but_time_replaces_the_condition(
    condition: Condition, generation: int
) -> None:
    entry = merged(PRESENT, condition, generation=generation, now="now")[0]

    assert entry["lastTransitionTime"] == "now"
    assert entry["observedGeneration"] == generation


def test_known_types_keep_their_place_and_new_ones_are_appended() -> None:
    result = merged(PRESENT, reconcile_error("no"), AVAILABLE, generation=3, now="now")

    assert [entry["type"] for entry in result] == ["Ready", "Synced"]
    assert PRESENT[0]["observedGeneration"] == 1, "the caller's list stays as it is"


def test_an_empty_message_is_left_out() -> None:
    assert "message" not in merged([], AVAILABLE, generation=1, now="now")[0]


def test_names_are_joined_as_crossplane_joins_them() -> None:
    assert first_and_more([]) == ""
    assert first_and_more(["e", "d", "c", "b", "a"]) == "a, b, c, and 2 more"


def test_what_a_function_says_is_of_no_generation() -> None:
    said = Condition("Tuned", "True", "Tuned", dated=False)

    (entry,) = merged([], said, generation=3, now="now")

    assert "observedGeneration" not in entry
    assert merged([entry], said, generation=4, now="later") == [entry]
