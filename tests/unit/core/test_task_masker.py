"""A task's secrets are hidden in every form in which a message may contain them."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from ground import secrets
from ground.errors import InvalidInputError
from orderkit.flows.template.scaffolder.task_check import MASK, Masker

SECRET = 'pä"ss\\word  one\ntwo'


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_forms", secrets._forms)  # noqa: SLF001 - of this process


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        f"  {SECRET}  ".strip(),
        " ".join(SECRET.split()),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        repr(SECRET)[1:-1],
        repr(repr(SECRET))[2:-2],
        quote(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_secret_is_hidden_whole_however_it_is_written(form: str) -> None:
    assert Masker([SECRET]).text(f"<{form}> and <{form}>") == f"<{MASK}> and <{MASK}>"


@pytest.mark.parametrize(
    ("hidden", "text", "shown"),
    [
        (["abcdef"], "abcdef", MASK),
        (["abcdef"], "xabcdefx", f"x{MASK}x"),
        (["abcdef"], "abcdefabcdef", f"{MASK}{MASK}"),
        (["abcdef", "defghi"], "abcdefghi", MASK),
        (["abcdef", "cdefgh"], "abcdefgh and cdefgh", f"{MASK} and {MASK}"),
        (["abcdef", "abcdefgh"], "abcdefgh", MASK),
        (["abcdef", "bcde"], "abcdef", MASK),
        (["abcdefgh"], "abcdef…", f"{MASK}…"),
        (["abcdefgh"], "abc… abcdefg…", f"abc… {MASK}…"),
        (["abcdefgh"], "abcdef", "abcdef"),
        ([], "abcdef…", "abcdef…"),
    ],
)
def test_forms_that_overlap_become_one_mask(hidden: list[str], text: str, shown: str) -> None:
    assert Masker(hidden).text(text) == shown


def test_values_are_masked_at_any_depth_with_their_keys() -> None:
    value = {"abcdef": ["abcdef", 7, {"a": "xabcdef"}], "b": None}

    assert Masker(["abcdef"]).value(value) == {MASK: [MASK, 7, {"a": f"x{MASK}"}], "b": None}


def test_an_error_is_masked_with_what_it_carries() -> None:
    error = InvalidInputError("abcdef", "abcdef", "is abcdef", hint="not abcdef")

    masked = Masker(["abcdef"]).error(error)

    assert masked is error
    assert (str(error), error.hint) == (f"{MASK}: '{MASK}' is {MASK}", f"not {MASK}")
    assert (error.field, error.value, error.rule) == (MASK, MASK, f"is {MASK}")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("abcdef", "out"),
        ("abcde", None),
        ({"a": 1, "b": ["x", "xabcdefx"]}, "out.b"),
        ({"abcdef": 1}, f"out.{MASK}"),
        ([{"c": "abcdef"}], "out.c"),
        ({"a": [1, None]}, None),
    ],
)
def test_a_leak_is_named_by_its_place(value: Any, path: str | None) -> None:
    assert Masker(["abcdef"]).leak(value, "out") == path


@pytest.mark.parametrize(
    ("rendered", "without", "text", "shown", "leaks"),
    [
        ("derived-12", "derived", "derived-12", MASK, True),
        ("derived", "derived", "derived", "derived", False),
        ("truely1", "x", "truely1", MASK, False),
        ("abc", "x", "abc", "abc", False),
        ({"a": "derived-12"}, {"a": ""}, "derived-12", MASK, True),
        ({"a": "derived-12"}, "other", "derived-12", MASK, True),
        ({"a": "derived-12"}, {"a": "derived-12"}, "derived-12", "derived-12", False),
        (["x", "derived-12"], ["x"], "derived-12", MASK, True),
        (["derived-12"], ["derived-12"], "derived-12", "derived-12", False),
        (["derived-12"], "other", "derived-12", MASK, True),
    ],
)
def test_texts_made_with_a_secret_are_hidden_and_long_ones_are_leaks(
    rendered: Any, without: Any, *, text: str, shown: str, leaks: object
) -> None:
    masker, blind = Masker(["abcdef"]), Masker([])
    for each in (masker, blind):
        each.learn(rendered, without)

    assert masker.text(text) == shown
    assert (masker.leak(text, "out") == "out") is leaks
    assert blind.text(text) == text
