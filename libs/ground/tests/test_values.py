"""JSON-like values: found at a place, put there, compared, and shown to a person."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ground.objects.values import (
    ABSENT,
    NotPlainError,
    Steps,
    copied,
    overlaid,
    path_text,
    same,
    shown,
    shown_pair,
    to_json,
    value_at,
    whole,
    with_value,
)

TREE: dict[str, Any] = {"a": [1, None], "b": {"c": 2}, "t": "text", "n": None}


@pytest.mark.parametrize(
    ("steps", "found", "reason"),
    [
        ((), TREE, "no step leads nowhere else"),
        (("a", 0), 1, "an entry of a list"),
        (("a", 1), None, "a null is a value"),
        (("a", 2), ABSENT, "a list has no entry at its length"),
        (("b", "c"), 2, "an entry of a map"),
        (("b", "d"), ABSENT, "a map has no such key"),
        (("b", 0), ABSENT, "a map has no positions"),
        (("a", "0"), ABSENT, "a list has no keys"),
        (("t", 0), ABSENT, "the letters of a text are no entries"),
        (("t", "te"), ABSENT, "nor are its parts"),
        (("n", "x"), ABSENT, "a null has no entries"),
    ],
)
def test_a_value_is_where_the_steps_lead(steps: Steps, found: Any, reason: str) -> None:
    assert value_at(TREE, steps) == found, reason


@pytest.mark.parametrize(
    ("steps", "new", "after", "reason"),
    [
        ((), 1, 1, "the whole is replaced"),
        (("b", "c"), 3, {**TREE, "b": {"c": 3}}, "a value is replaced"),
        (("b", "d"), 3, {**TREE, "b": {"c": 2, "d": 3}}, "a value is added"),
        (("x", "y"), 3, {**TREE, "x": {"y": 3}}, "maps on the way are made"),
        (("n", "y"), 3, {**TREE, "n": {"y": 3}}, "also where a null is"),
        (("a", 0), 3, {**TREE, "a": [3, None]}, "the first entry of a list is replaced"),
        (("a", 1), 3, {**TREE, "a": [1, 3]}, "the last one too"),
        (("a", 0), ABSENT, {**TREE, "a": [None]}, "an entry is taken out of a list"),
        (("b", "c"), ABSENT, {**TREE, "b": {}}, "a map that loses its last entry stays"),
        (("x",), ABSENT, TREE, "what is not there is not removed"),
    ],
)
def test_a_value_is_put_where_the_steps_lead(
    steps: Steps, new: Any, after: Any, reason: str
) -> None:
    before = copy.deepcopy(TREE)

    assert with_value(before, steps, new) == after, reason
    assert before == TREE, "the given value stays as it is"


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (("a", 2), "a list does not grow"),
        (("a", "x"), "a list has no keys"),
        (("b", 0), "a map has no positions"),
        (("t", "x"), "a text holds nothing"),
        (("x", 0), "a list is not made"),
    ],
)
def test_a_way_through_something_else_is_refused(steps: Steps, reason: str) -> None:
    with pytest.raises(KeyError):
        pytest.fail(f"{reason}: {with_value(TREE, steps, 1)}")


@pytest.mark.parametrize(
    ("value", "other", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (True, True, True),
        (True, False, False),
        ("1", 1, False),
        ("a", "b", False),
        (None, False, False),
        (None, None, True),
        ({}, [], False),
        ([], None, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ([1, 2], [1.0, 2.0], True),
        ([1, 2], [1, True], False),
        ([1], [1, 2], False),
    ],
)
def test_values_are_the_same_as_kubernetes_compares_them(
    value: Any, other: Any, *, expected: bool
) -> None:
    assert same(value, other) is expected
    assert same(other, value) is expected


@pytest.mark.parametrize(
    ("base", "over", "result"),
    [
        ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}}, {"a": {"b": 9, "c": 2}, "d": 3}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
        ({"a": {"b": 2}}, {"a": 1}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        (None, {"a": 1}, {"a": 1}),
    ],
)
def test_only_maps_merge(base: Any, over: Any, result: Any) -> None:
    assert overlaid(base, over) == result


@pytest.mark.parametrize("exact", [2**53, -(2**53), 2.0**53, -(2.0**53)])
def test_integers_are_carried_up_to_what_a_double_holds(exact: float) -> None:
    assert copied([exact]) == [int(exact)]
    assert type(copied(exact)) is int


def test_numbers_beyond_are_refused_as_integers_and_stay_floats() -> None:
    with pytest.raises(NotPlainError, match=r"\.a\[1\] is -9007199254740993, beyond 2\^53"):
        copied({"a": [1, -(2**53) - 1]})
    with pytest.raises(NotPlainError, match="the value is -inf, which JSON cannot write"):
        copied(float("-inf"))
    assert type(copied(2.0**54)) is float
    assert copied(1.5) == 1.5


@pytest.mark.parametrize(
    ("value", "text", "reason"),
    [
        (ABSENT, "(not set)", "nothing"),
        ("", '""', "an empty text is seen"),
        ("é 1", "é 1", "a text stands alone"),
        ("a\nb", '"a\\nb"', "one with a line break is JSON"),
        ("a\u202eb", '"a\\u202eb"', "one that turns its direction is seen to"),
        ({"b": 1, "a": "é"}, '{"a": "é", "b": 1}', "keys are in order"),
        (True, "true", "as JSON has it"),
    ],
)
def test_a_value_is_one_line_for_a_person(value: Any, text: str, reason: str) -> None:
    assert whole(value) == text, reason
    assert shown(value) == text, reason


def test_a_long_value_is_cut() -> None:
    assert shown("x" * 80) == "x" * 80
    assert shown("x" * 81) == "x" * 79 + "…"


@pytest.mark.parametrize(
    ("old", "new", "shown_", "reason"),
    [
        ("a" * 20, "a" * 19, ("a" * 20, "a" * 19), "what fits is whole"),
        (
            "a" * 10 + "x" * 20,
            "a" * 10 + "y",
            ("a" * 10 + "x" * 9 + "…", "a" * 10 + "y"),
            "an early difference is seen from the beginning",
        ),
        (
            "a" * 11 + "x" * 20,
            "a" * 11 + "y",
            ("…aaaaa" + "x" * 13 + "…", "…aaaaay"),
            "a late one with a little of what comes before",
        ),
    ],
)
def test_two_values_are_cut_where_they_differ(
    old: str, new: str, shown_: tuple[str, str], reason: str
) -> None:
    assert shown_pair(old, new, limit=20) == shown_, reason


def test_what_is_not_set_is_null_in_json() -> None:
    assert to_json(ABSENT) is None
    assert to_json(0) == 0


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (("ports", 0, "name"), "ports[0].name"),
        (("labels", "a.b"), "labels[a.b]"),
        (("labels", "a[0]"), "labels[a[0]]"),
        (("labels", ""), "labels[]"),
        ((0, "a"), "[0].a"),
    ],
)
def test_a_path_is_written_as_the_api_server_writes_it(steps: Steps, text: str) -> None:
    assert path_text(steps) == text
