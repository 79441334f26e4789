"""Errors of one request: what one says, and what several say together."""

from __future__ import annotations

import pytest

from ground.errors import (
    PROBLEMS_MAX,
    InvalidInputError,
    MovedError,
    OrderkitError,
    RefusedError,
    RemoteError,
    SeveralProblemsError,
    TooFastError,
    every,
    raise_problems,
    with_article,
)


@pytest.mark.parametrize(
    ("value", "rule", "told"),
    [
        ("x", "is no number", "size: 'x' is no number"),
        (None, "is no number", "size: None is no number"),
        (None, "is missing", "size is missing"),
        (None, "is not valid YAML: x", "size is not valid YAML: x"),
        ("", "is missing", "size: '' is missing"),
        ("x" * 300, "is long", "size: 'xxx"),
    ],
)
def test_a_field_is_named_with_its_value_and_the_rule(value: object, rule: str, told: str) -> None:
    assert str(InvalidInputError("size", value, rule)).startswith(told)
    assert len(str(InvalidInputError("size", value, rule))) < 220


FIRST = RefusedError("no", hint="ask", form_hint="press the button")
SECOND = InvalidInputError("size", "x", "is bad")


def test_several_problems_are_listed_with_their_hints() -> None:
    several = SeveralProblemsError([FIRST, SECOND])

    assert str(several) == "2 problems:\n- no (ask)\n- size: 'x' is bad"
    assert several.form_message == "2 problems:\n- no (press the button)\n- size: 'x' is bad"
    assert (several.exit_code, several.http_status) == (FIRST.exit_code, FIRST.http_status)
    assert several.problems == (FIRST, SECOND)
    assert FIRST.problems == (FIRST,)


@pytest.mark.parametrize("more", [0, 1])
def test_not_more_problems_are_listed_than_a_person_reads(more: int) -> None:
    several = SeveralProblemsError([SECOND] * (PROBLEMS_MAX + more))

    head = f"{PROBLEMS_MAX + more} problems{', the first of which are' * more}:"
    assert str(several).splitlines() == [head, *["- size: 'x' is bad"] * PROBLEMS_MAX]
    assert len(several.problems) == PROBLEMS_MAX


def test_one_problem_is_raised_as_it_is_and_none_raises_nothing() -> None:
    with pytest.raises(RefusedError) as alone:
        raise_problems([FIRST])
    assert alone.value is FIRST
    with pytest.raises(SeveralProblemsError):
        raise_problems([FIRST, SECOND])
    raise_problems([])


def test_every_check_is_made_and_other_failures_come_at_once() -> None:
    def refuse() -> int:
        raise FIRST

    def fail() -> int:
        raise RemoteError("gone")

    assert every([lambda: 1, lambda: 2]) == [1, 2]
    with pytest.raises(SeveralProblemsError) as several:
        every([refuse, lambda: 1, refuse], [SECOND])
    assert several.value.problems == (SECOND, FIRST, FIRST)
    with pytest.raises(RemoteError):
        every([fail, refuse])


def test_errors_keep_what_the_other_side_told() -> None:
    moved, fast = MovedError("moved", place="a/b"), TooFastError("slow down", hint="h", seconds=3)

    assert (str(moved), moved.place) == ("moved", "a/b")
    assert (str(fast), fast.hint, fast.seconds) == ("slow down", "h", 3)
    assert isinstance(moved, OrderkitError)


@pytest.mark.parametrize(
    ("noun", "told"), [("integer", "an integer"), ("Object", "an Object"), ("string", "a string")]
)
def test_a_noun_has_its_article(noun: str, told: str) -> None:
    assert with_article(noun) == told
