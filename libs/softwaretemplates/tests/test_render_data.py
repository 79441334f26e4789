"""Step inputs keep types, drop what is undefined, and fail loudly."""

from __future__ import annotations

import math

import pytest

from softwaretemplates.render import UNDEFINED, RenderError, render_data

CONTEXT = {
    "parameters": {"n": 3, "flag": False, "list": [1, {"a": 2}], "five": "5", "raw": "${{ 1 }}"},
    "steps": {"fetch-base": {"output": {"code": 200}}},
    "user": {"ref": "user:default/me"},
}


@pytest.mark.parametrize(
    ("source", "value", "reason"),
    [
        ("${{ parameters.n }}", 3, "one expression keeps its type"),
        ("${{- parameters.list -}}", [1, {"a": 2}], "dashes and lists too"),
        ("${{ parameters.flag }}", False, "booleans"),
        ("${{ parameters.five }}", "5", "text stays text"),
        (" ${{ parameters.n }}", " 3", "any other character makes text"),
        ("${{ parameters.n }}${{ parameters.n }}", "33", "two expressions make text"),
        ("{% if true %}5{% endif %}", 5, "a block of JSON is its value"),
        ("${{ parameters.raw }}", "${{ 1 }}", "values are not rendered again"),
        ("${{ steps['fetch-base'].output.code }}", 200, "quoted ids"),
        ("plain", "plain", "no template"),
        ({"if": "${{ '' | safe }}"}, {"if": ""}, "safe text is text, and an empty one is false"),
        ({"a": ""}, {}, "an empty text drops the key"),
        ("${{ parameters.q }}${{ parameters.q }}", UNDEFINED, "so does a text that becomes empty"),
        ({"a": math.inf}, {"a": None}, "JSON has no infinite number"),
        ({"a": "${{ parameters.q }}", "b": 1}, {"b": 1}, "undefined drops the key"),
        (["${{ parameters.q }}"], [None], "undefined in a list is null"),
        ({"${{ 1 }}": "x"}, {"${{ 1 }}": "x"}, "keys are no templates"),
    ],
)
def test_rendering_of_step_data(source: object, value: object, reason: str) -> None:
    assert render_data(source, CONTEXT, name="input") == value, reason


def test_undefined_alone_is_undefined() -> None:
    assert render_data("${{ parameters.q }}", CONTEXT, name="if") == UNDEFINED


def test_an_error_names_the_path_of_its_text() -> None:
    with pytest.raises(RenderError, match=r"steps\.a\.input\.body\[1\]:1:9: .*nope"):
        render_data({"body": ["x", "${{ 1 | nope }}"]}, CONTEXT, name="steps.a.input")


def test_results_are_copies() -> None:
    found = render_data("${{ parameters.list }}", CONTEXT, name="input")
    found.append(9)

    assert render_data("${{ parameters.list | length }}", CONTEXT, name="input") == 2
