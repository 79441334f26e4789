"""What an object comes to when two sides changed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderkit.core.order.change import same
from orderkit.core.order.change.differences import merged

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.text("ab", max_size=2))
TREES = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        LEAVES,
        lambda below: st.one_of(
            st.lists(below, max_size=2), st.dictionaries(st.sampled_from("abc"), below, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=3,
)


@given(TREES, TREES)
def test_what_only_one_side_changed_is_that_side(
    base: dict[str, Any], side: dict[str, Any]
) -> None:
    for ours, theirs in ((base, side), (side, base), (side, side)):
        found, conflicts = merged(base, ours, theirs)

        assert same(found, side)
        assert not conflicts


@given(TREES, TREES, TREES)
def test_it_ends_and_changes_nothing_in_place(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    before = repr((base, ours, theirs))

    merged(base, ours, theirs)

    assert repr((base, ours, theirs)) == before


Tree = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Three sides; what comes of them, and what is told."""

    reason: str
    sides: tuple[Tree, Tree, Tree]
    wanted: Tree
    told: str = ""


ONE, TWO = {"a": 1}, {"a": 2}
CASES = [
    Case("other fields", ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}), {"a": 2, "b": 2}),
    Case("the same value", (ONE, TWO, TWO), TWO),
    Case("one field twice", (ONE, TWO, {"a": 3}), {"a": 3}, "a: main has 2 now"),
    Case("set here, gone there", (ONE, TWO, {}), {}, "this branch (not set)"),
    Case("gone here, set there", (ONE, {}, TWO), TWO, "main has (not set)"),
    Case("both make a map", ({}, {"m": ONE}, {"m": {"b": 1}}), {"m": {"a": 1, "b": 1}}),
    Case("both make it, one field twice", ({}, {"m": ONE}, {"m": TWO}), {"m": TWO}, "m.a: main"),
    Case("no map there", ({"m": ONE}, {"m": 7}, {"m": TWO}), {"m": 7}, "m.a: main"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_cases(case: Case) -> None:
    found, conflicts = merged(*case.sides)

    assert found == case.wanted
    assert case.told in "; ".join(map(str, conflicts))
    assert bool(conflicts) is bool(case.told)


def test_a_value_below_a_map_that_ours_replaced_is_a_conflict() -> None:
    base, ours, theirs = {"a": {"x": 1}}, {"a": 5}, {"a": {"x": 1, "y": 2}}

    found, (conflict,) = merged(base, ours, theirs)

    assert found == ours
    assert (conflict.steps, conflict.theirs) == (("a", "y"), 2)
