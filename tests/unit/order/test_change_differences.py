"""What differs between two specs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.objects.values import with_value
from orderkit.core.order.change import ABSENT, differences, same


@pytest.mark.parametrize(
    ("reason", "old", "new", "told"),
    [
        ("nothing", {"a": 1}, {"a": 1}, []),
        ("1 and 1.0 are one number", {"a": 1}, {"a": 1.0}, []),
        ("1 and true are not", {"a": 1}, {"a": True}, ["a 1 → true"]),
        ("a null is a value", {"a": None}, {}, ["a null → (not set)"]),
        ("nested", {"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, ["a.b 1 → 3"]),
        ("lists are whole", {"a": [1, 2]}, {"a": [1]}, ["a [1, 2] → [1]"]),
        ("a map comes field by field", {}, {"a": {"b": 1}}, ["a.b (not set) → 1"]),
        ("an empty map comes too", {}, {"a": {}}, ["a (not set) → {}"]),
        ("new fields last", {"z": 1}, {"a": 1, "z": 2}, ["z 1 → 2", "a (not set) → 1"]),
        ("another kind", {"a": {"b": 1}}, {"a": "x"}, ['a {"b": 1} → x']),
        ("a key with dots", {"a": {}}, {"a": {"b.c": 1}}, ["a[b.c] (not set) → 1"]),
    ],
)
def test_differences_are_told_field_by_field(
    reason: str, old: Any, new: Any, told: list[str]
) -> None:
    assert [str(found) for found in differences(old, new)] == told, reason


def test_a_whole_map_can_be_told_as_one() -> None:
    (found,) = differences({}, {"a": {"b": 1}}, maps_whole=True)

    assert (found.path, found.old, found.new) == ("a", ABSENT, {"b": 1})
    assert found.answer.to_json() == {"field": "a", "from": None, "to": {"b": 1}}


_spec = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.lists(st.integers(0, 2))),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


@given(_spec, _spec)
def test_applying_every_difference_gives_the_other_spec(old: Any, new: Any) -> None:
    made = old
    for found in differences(old, new, maps_whole=True):
        made = with_value(made, found.steps, found.new)

    assert same(made, new)
    assert bool(differences(old, new)) is not same(old, new)
