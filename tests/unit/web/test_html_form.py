"""Plain HTML asks for what the portal's form asks for, and what is entered is read as entered."""

from __future__ import annotations

from typing import Any

import pytest

from ground.errors import InvalidInputError
from orderkit.web.console.html_form import PREFIX, FormPage

STAGE = {"type": "string", "enum": ["small", "large"]}
DISK = {"type": "integer"}
BRANCHES = {
    "type": "object",
    "properties": {"stage": STAGE},
    "dependencies": {
        "stage": {
            "oneOf": [
                {"properties": {"stage": {"enum": ["small"]}}},
                {"properties": {"stage": {"enum": ["large"]}, "disk": DISK}, "required": ["disk"]},
            ]
        }
    },
}
CONDITION = {
    "type": "object",
    "properties": {"stage": STAGE},
    "allOf": [
        {
            "if": {"properties": {"stage": {"const": "large"}}},
            "then": {"properties": {"disk": DISK}, "required": ["disk"]},
        }
    ],
}


def sent(**values: str | list[str]) -> dict[str, list[str]]:
    """Return what a browser sends for these inputs."""
    return {
        f"{PREFIX}{name}": value if isinstance(value, list) else [value]
        for name, value in values.items()
    }


@pytest.mark.parametrize("schema", [BRANCHES, CONDITION], ids=["dependencies", "if and then"])
def test_a_field_that_depends_on_an_answer_counts_only_with_it(schema: dict[str, Any]) -> None:
    page = FormPage(schema, {})

    _, disk = page.fields({})

    assert (disk["name"], disk["required"]) == (f"{PREFIX}disk", True)
    assert disk["when"] == {"field": "stage", "values": ["large"]}
    assert page.read(sent(stage="large", disk="7")) == {"stage": "large", "disk": 7}
    assert page.read(sent(stage="small", disk="7")) == {"stage": "small"}


@pytest.mark.parametrize("schema", [BRANCHES, CONDITION], ids=["dependencies", "if and then"])
def test_an_answer_that_is_known_decides_at_once(schema: dict[str, Any]) -> None:
    large, small = (FormPage(schema, {"stage": stage}) for stage in ("large", "small"))

    assert [field["path"] for field in large.fields({})] == ["disk"]
    assert large.fields({})[0]["when"] is None
    assert large.read(sent(disk="7")) == {"disk": 7}
    assert small.fields({}) == []
    assert small.read(sent(disk="7")) == {}


def test_a_field_of_every_answer_is_asked_for_once_as_the_page_itself_has_it() -> None:
    branch = {"properties": {"stage": {"enum": ["small"]}, "name": {"type": "integer"}}}
    schema = {
        "properties": {"stage": STAGE, "name": {"type": "string"}},
        "dependencies": {"stage": {"oneOf": [branch]}},
    }

    for known in ({}, {"stage": "small"}):
        assert FormPage(schema, known).read(sent(name="7"))["name"] == "7"


KINDS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "a text": ({"type": "string"}, "text", "a: b"),
    "a long text": ({"type": "string", "maxLength": 500}, "long", "one\ntwo"),
    "a whole number": ({"type": "integer"}, "number", -3),
    "a number": ({"type": "number"}, "number", 1.5),
    "a number of a few": ({"type": "integer", "enum": [1, 2]}, "choice", 2),
    "no": ({"type": "boolean"}, "choice", False),
    "yes": ({"type": "boolean"}, "choice", True),
    "lines of numbers": ({"type": "array", "items": {"type": "integer"}}, "lines", [1, 2]),
    "a map": (
        {"type": "object", "additionalProperties": {"type": "string"}},
        "yaml",
        {"on": "yes", "b": "1"},
    ),
    "a list of objects": (
        {"type": "array", "items": {"type": "object"}},
        "yaml",
        [{"name": "a", "size": 1}, {"name": "b"}],
    ),
    "an empty map": ({"type": "object", "additionalProperties": {"type": "string"}}, "yaml", {}),
    "an empty list": ({"type": "array", "items": {"type": "object"}}, "yaml", []),
}


@pytest.mark.parametrize("case", KINDS)
def test_what_a_field_shows_is_read_as_the_same_value(case: str) -> None:
    schema, kind, value = KINDS[case]
    page = FormPage({"type": "object", "properties": {"x": schema}}, {})

    (field,) = page.fields({"x": value}, {"x": None})

    assert field["kind"] == kind
    assert page.read(sent(x=field["value"])) == {"x": value}
    assert page.read(sent(x=" ")) == {}


def test_what_is_neither_yes_nor_no_stays_text_for_the_schema_to_refuse() -> None:
    page = FormPage({"properties": {"x": {"type": "boolean"}}}, {})

    assert page.read(sent(x="maybe")) == {"x": "maybe"}


@pytest.mark.parametrize("start", ["", "---\n", "---\r\n", "--- \n"])
def test_a_map_may_begin_as_a_document_does(start: str) -> None:
    page = FormPage({"properties": {"x": KINDS["a map"][0]}}, {})

    assert page.read(sent(x=f"{start}b: 'yes'")) == {"x": {"b": "yes"}}


def test_boxes_are_read_as_what_is_ticked() -> None:
    items = {"type": "string", "enum": ["a", "b"], "enumNames": ["first"]}
    switch = {"type": "boolean", "default": True}
    properties = {"some": {"type": "array", "items": items}, "on": switch}
    page = FormPage({"type": "object", "properties": properties}, {})

    some, on = page.fields({"some": ["b"]})
    asked = {f"{PREFIX}{name}.asked": ["1"] for name in properties}

    assert some["choices"] == [
        {"value": "a", "title": "first"},
        {"value": "b", "title": "b"},
    ]
    assert (some["value"], on["kind"], on["value"]) == (["b"], "flag", "true")
    assert page.read({**asked, **sent(some=["a", "b"], on="true")}) == {
        "some": ["a", "b"],
        "on": True,
    }
    assert page.read(asked) == {"some": [], "on": False}
    assert page.read({}) == {}


def test_the_fields_of_an_object_stand_together_and_show_what_changed() -> None:
    inner = {"size": {"type": "integer"}, "secret": {"type": "string", "ui:widget": "hidden"}}
    pit = {"type": "object", "properties": inner, "required": ["size"]}
    page = FormPage({"properties": {"pit": pit, "a": STAGE}, "ui:order": ["a", "pit", "*"]}, {})

    first, group = page.fields({"pit": {"size": 4}}, {"pit": {"size": 3}})
    (size,) = group["fields"]

    assert (first["path"], group["kind"]) == ("a", "group")
    assert (size["name"], size["required"]) == (f"{PREFIX}pit.size", True)
    assert (size["value"], size["current"], size["changed"]) == ("4", "3", True)
    assert page.read(sent(**{"pit.size": "5"})) == {"pit": {"size": 5}}
    assert page.read(sent(**{"pit.size": ""})) == {}


@pytest.mark.parametrize(
    ("schema", "text", "rule"),
    [
        ({"type": "integer"}, "many", "is not a number"),
        ({"type": "number"}, "NaN", "is not a number of JSON"),
        ({"type": "number"}, "inf", "is not a number of JSON"),
        ({"type": "object"}, "a: [", "is not YAML"),
    ],
)
def test_what_is_no_value_is_refused_with_its_field(
    schema: dict[str, Any], text: str, rule: str
) -> None:
    page = FormPage({"properties": {"pit": {"type": "object", "properties": {"x": schema}}}}, {})

    with pytest.raises(InvalidInputError, match=rule) as raised:
        page.read(sent(**{"pit.x": text}))

    assert raised.value.field == "pit.x"


def test_branches_within_branches_end() -> None:
    endless: dict[str, Any] = {"properties": {"stage": STAGE}}
    endless["dependencies"] = {
        "stage": {"oneOf": [{**endless, "properties": {"stage": {"const": "small"}}}]}
    }
    endless["dependencies"]["stage"]["oneOf"][0]["dependencies"] = endless["dependencies"]

    assert [field["path"] for field in FormPage(endless, {}).fields({})] == ["stage"]
