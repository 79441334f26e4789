"""Schemas of forms: which are refused and where, what a format accepts, and what is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from ground.errors import InvalidInputError
from softwaretemplates.form_answers import shown_pages
from softwaretemplates.form_schema import FORMATS, SchemaError, check, first_problem, problems

TWICE = "is not a list of different values"
FORMAT = "is refused: form and backend read this format differently"
BESIDE = "stands beside $ref, which the form reads and the backend ignores"


@pytest.mark.parametrize(
    ("schema", "path", "value", "problem"),
    [
        ({"type": "strin"}, "type", "strin", "is not JSON Schema: "),
        ({"properties": {"a": {"type": 5}}}, "properties.a.type", 5, "is not JSON Schema: "),
        ({"format": "ipv6"}, "format", "ipv6", FORMAT),
        ({"items": {"format": "url"}}, "items.format", "url", FORMAT),
        ({"items": [{}, {"format": "url"}]}, "items[1].format", "url", FORMAT),
        ({"allOf": [{"not": {"format": "url"}}]}, "allOf[0].not.format", "url", FORMAT),
        (
            {"dependencies": {"a": {"then": {"format": "url"}}}},
            "dependencies.a.then.format",
            "url",
            FORMAT,
        ),
        ({"enum": []}, "enum", [], TWICE),
        ({"enum": [1, 1.0]}, "enum", [1, 1.0], TWICE),
        ({"enum": "a"}, "enum", "a", TWICE),
        ({"$ref": "#/a", "type": "string"}, "", ["type"], BESIDE),
        (
            {"properties": {"x": {"$ref": "#/a", "minLength": 1, "enum": ["a"]}}},
            "properties.x",
            ["enum", "minLength"],
            BESIDE,
        ),
        ({"pattern": "(?i)a"}, "pattern", "(?i)a", "is refused as a pattern: "),
        (
            {"patternProperties": {"(?i)a": {}}},
            "patternProperties",
            "(?i)a",
            "is refused as a pattern: ",
        ),
    ],
)
def test_a_schema_that_form_and_backend_read_differently_is_refused_at_its_place(
    schema: dict[str, Any], path: str, value: object, problem: str
) -> None:
    with pytest.raises(SchemaError) as refused:
        check(schema)

    assert (refused.value.path, refused.value.value) == (path, value)
    assert refused.value.problem.startswith(problem)


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [1, True, "1"]},
        {"$ref": "#/a", "title": "t", "description": "d", "default": 1},
        {"enum": [{"format": "url"}], "default": {"enum": []}},
        {"format": "own-format"},
        {"type": "string"},
        {"dependencies": {"a": ["b"]}},
        {"properties": {"format": {"type": "string"}}},
    ],
)
def test_a_schema_that_both_read_alike_is_accepted(schema: dict[str, Any]) -> None:
    check(schema)


ACCEPTED = {
    "data-url": ["data:text/plain;base64,YQ==", "data:;name=a b;base64,", "data:;base64,x"],
    "date": ["2024-02-29", "0000-02-29", "2026-12-31"],
    "date-time": ["2026-11-21T10:00:00Z", "2026-11-21 23:59:60+01:00", "2026-11-21t10:00:00.5z"],
    "email": ["a@b.c", "a.b+c@d-e.example"],
    "hostname": ["a", "a.b.", "a-b.c", "x" * 63],
    "ipv4": ["1.2.3.4", "255.255.255.255", "01.2.3.4"],
    "time": ["10:00:00", "23:59:60"],
    "uri": ["http://a/b?c#d", "mailto:a@b", "a:b", "http://u:p@h:80/"],
    "uuid": ["01234567-89ab-cdef-0123-456789ABCDEF"],
}
REFUSED = {
    "data-url": ["data:base64,x", "text", "data:text/plain,x", "data:;base64,a\nb"],
    "date": ["2023-02-29", "2026-00-01", "2026-13-01", "2026-01-00", "2026-01-32", "2026-1-01"],
    "date-time": [
        *("2026-11-21", "2026-11-21T10:00:00", "2023-02-29T10:00:00Z", "2026-11-21x10:00:00Z"),
        *("2026-11-21T24:00:00Z", "2026-11-21T10:00:00Zx", "x2026-11-21T10:00:00Z"),
    ],
    "email": ["a", "a@b", "a@.b", ".a@b.c", "a b@c.d", "a@b.c."],
    "hostname": ["", "-a", "a-", "a..b", "x" * 64, ".".join(["x" * 60] * 5), "a_b"],
    "ipv4": ["1.2.3", "256.1.1.1", "1.2.3.4.5", "1.2.3.4 "],
    "time": ["24:00:00", "10:00", "10:00:61", "10:00:00Z"],
    "uri": ["a", "//a", "http://a b", "1a:b", "http://[::1]/"],
    "uuid": ["0123", "01234567-89ab-cdef-0123-456789ABCDEG", "01234567"],
}


def test_every_format_has_texts_that_it_accepts_and_texts_that_it_refuses() -> None:
    assert FORMATS.keys() == ACCEPTED.keys() == REFUSED.keys()


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_text_has_a_format_if_form_and_backend_say_so(name: str) -> None:
    schema = {"type": "string", "format": name}

    assert [text for text in ACCEPTED[name] if first_problem(schema, text)] == []
    assert [text for text in REFUSED[name] if not first_problem(schema, text)] == []


def test_a_reference_that_leads_back_to_itself_is_an_error_of_the_schema() -> None:
    schema = {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}

    with pytest.raises(InvalidInputError, match=r"\$ref: '#/definitions/a' leads back to itself"):
        list(problems(schema, 1))


A, B = {"type": "string"}, {"type": "integer"}


def kept(hidden: dict[str, Any], values: dict[str, Any], *, visible: Any = None) -> dict[str, Any]:
    """Return which values are left if a page is hidden."""
    pages = [visible or {"properties": {"own": A}}, {"when": False, **hidden}]
    shown, found = shown_pages(pages, values)
    assert shown == [True, False]
    return found


@pytest.mark.parametrize(
    ("hidden", "reason"),
    [
        ({"properties": {"a": A}}, "its own properties"),
        ({"allOf": [{"properties": {"a": A}}]}, "those of its branches"),
        ({"if": {}, "then": {"properties": {"a": A}}}, "those of a condition"),
        ({"if": {}, "else": {"properties": {"a": A}}}, "and of its other side"),
        ({"dependencies": {"x": {"properties": {"a": A}}}}, "those of a dependency"),
        ({"$ref": "#/d", "d": {"properties": {"a": A}}}, "those that it refers to"),
        ({"$ref": "#/d/e~1f", "d": {"e/f": {"properties": {"a": A}}}}, "with an escaped slash"),
        ({"$ref": "#/d/e~0f", "d": {"e~f": {"properties": {"a": A}}}}, "with an escaped tilde"),
        ({"$ref": "#/d/1", "d": [{}, {"properties": {"a": A}}]}, "in a list"),
        ({"$ref": "#/d%20e", "d e": {"properties": {"a": A}}}, "in an address"),
    ],
)
def test_what_a_hidden_page_names_is_removed(hidden: dict[str, Any], reason: str) -> None:
    assert kept(hidden, {"a": "x", "own": "y", "b": 1}) == {"own": "y", "b": 1}, reason


@pytest.mark.parametrize(
    "reference", ["#/nowhere", "other.json#/a", "#a", "#/d/0", "#/%ff", "#/a~2", "#"]
)
def test_a_page_whose_reference_cannot_be_followed_hides_nothing(reference: str) -> None:
    """The browser fails on such a page, and drops none of the answers."""
    hidden = {"$ref": reference, "d": [1], "properties": {"a": A}}

    assert kept(hidden, {"a": "x", "own": "y"}) == {"a": "x", "own": "y"}


def test_what_a_visible_page_names_too_stays() -> None:
    visible = {"properties": {"own": A, "a": A}}

    assert kept({"properties": {"a": A}}, {"a": "x", "own": "y"}, visible=visible) == {
        "a": "x",
        "own": "y",
    }


def test_members_of_maps_and_lists_are_hidden_one_by_one() -> None:
    visible = {
        "properties": {
            "map": {"properties": {"a": A}},
            "list": {"items": {"properties": {"a": A}}},
            "pair": {"items": [A], "additionalItems": {"properties": {"a": A}}},
        }
    }
    hidden = {
        "properties": {
            "map": {"properties": {"b": A}},
            "list": {"items": {"properties": {"b": A}}},
            "pair": {"items": [A], "additionalItems": {"properties": {"b": A}}},
        }
    }
    entry = {"a": "x", "b": "y"}

    found = kept(hidden, {"map": entry, "list": [entry], "pair": ["x", entry]}, visible=visible)

    assert found == {"map": {"a": "x"}, "list": [{"a": "x"}], "pair": ["x", {"a": "x"}]}


def test_a_visible_page_with_open_properties_hides_nothing() -> None:
    visible = {"additionalProperties": True, "properties": {"own": A}}

    assert kept({"properties": {"a": A}}, {"a": "x"}, visible=visible) == {"a": "x"}
