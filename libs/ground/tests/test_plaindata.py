"""Copies that prove what they copy: the fast way and the one that names a fault agree."""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.objects.values import NotPlainError, _copied, _plain, copied


class Colour(enum.StrEnum):
    RED = "red"


leaves = (
    st.none()
    | st.booleans()
    | st.text()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
trees = st.recursive(leaves, lambda t: st.lists(t) | st.dictionaries(st.text(), t), max_leaves=20)


@given(trees)
def test_both_ways_give_the_same_copy(value: Any) -> None:
    fast, slow = _plain_or_told(value), _copied(value, "")

    assert fast == slow
    assert _types(fast) == _types(slow)
    assert copied(value) == slow


def _plain_or_told(value: Any) -> Any:
    try:
        return _plain(value)
    except Exception:  # noqa: BLE001 - the fast way may give up, and then the other decides
        return _copied(value, "")


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(entry) for key, entry in value.items()}
    return [_types(entry) for entry in value] if isinstance(value, list) else type(value)


def test_a_copy_shares_nothing() -> None:
    value: dict[str, Any] = {"a": [{"b": 1}]}

    copied(value)["a"][0]["b"] = 2

    assert value == {"a": [{"b": 1}]}


def test_relatives_of_plain_types_are_copied_too() -> None:
    given_ = OrderedDict(a=(1, 2.0), b=Colour.RED)

    assert copied({"x": given_}) == {"x": {"a": [1, 2], "b": "red"}}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": [1, {2}]}, ".a[1] is a set"),
        ({"a": {1: 2}}, ".a has the key 1"),
        ([2**53 + 1], "[0] is 9007199254740993, beyond"),
        ({"a": float("nan")}, ".a is nan"),
        ({"a": float("inf")}, ".a is inf"),
        (b"x", "the value is a bytes"),
    ],
)
def test_what_cannot_be_carried_is_named(value: Any, told: str) -> None:
    with pytest.raises(NotPlainError) as caught:
        copied(value)

    assert told in str(caught.value)
