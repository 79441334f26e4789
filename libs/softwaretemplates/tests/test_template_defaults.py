"""
Defaults are filled in as the portal's form fills them in.

What ``template_defaults.json`` expects was observed: ``getDefaultFormState`` of @rjsf/utils
5.24.13 with the portal's ``allOf: populateDefaults``, repeated until nothing changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError
from softwaretemplates.form_answers import fill
from softwaretemplates.template import Template, parse_template

CASES = json.loads(Path(__file__).with_name("template_defaults.json").read_text())


def template(*pages: dict[str, Any], **spec: Any) -> Template:
    entity = {
        "apiVersion": "scaffolder.backstage.io/v1beta3",
        "kind": "Template",
        "metadata": {"name": "t"},
        "spec": {"type": "service", "parameters": list(pages), "steps": [], **spec},
    }
    return parse_template(yaml.safe_dump(entity).encode(), name="template.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["reason"])
def test_the_form_is_filled_as_observed(case: dict[str, Any]) -> None:
    def is_valid(schema: dict[str, Any], value: object) -> bool:
        import jsonschema

        return jsonschema.Draft7Validator(schema).is_valid(value)

    before = json.dumps(case["given"])

    assert fill(case["schema"], case["given"], is_valid) == case["form"]
    assert json.dumps(case["given"]) == before


QUESTION = {
    "properties": {"public": {"type": "boolean", "default": True}},
    "dependencies": {
        "public": {
            "oneOf": [
                {"properties": {"public": {"const": False}}},
                {
                    "properties": {
                        "public": {"const": True},
                        "host": {"type": "string", "pattern": "^[a-z.]+$", "default": "a.example"},
                    },
                    "required": ["host"],
                },
            ]
        }
    },
}


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({}, {"public": True, "host": "a.example"}),
        ({"host": "b.example"}, {"public": True, "host": "b.example"}),
        ({"public": False}, {"public": False}),
    ],
)
def test_a_default_inside_a_dependency_is_applied(given: Any, values: Any) -> None:
    assert template(QUESTION).validate(given) == values


def test_a_value_inside_a_dependency_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="host"):
        template(QUESTION).validate({"host": "B"})


def test_pages_are_answered_in_order_defaults_first() -> None:
    first = {"properties": {"name": {"type": "string"}, "tier": {"default": "silver"}}}
    second = {"properties": {"size": {"type": "integer"}, "zone": {"default": "a"}}}

    values = template(first, second).validate({"size": 3, "name": "x"})

    assert list(values.items()) == [("tier", "silver"), ("name", "x"), ("zone", "a"), ("size", 3)]


def test_an_answer_on_one_page_opens_a_field_on_the_next() -> None:
    second = {
        "properties": {},
        "if": {"properties": {"name": {"const": "x"}}, "required": ["name"]},
        "then": {"properties": {"more": {"type": "string", "default": "m"}}},
    }
    pages = template({"properties": {"name": {"type": "string"}}}, second)

    assert pages.validate({"name": "x"}) == {"name": "x", "more": "m"}
    assert pages.validate({"name": "y"}) == {"name": "y"}


def test_definitions_that_name_themselves_end() -> None:
    page = {
        "definitions": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/definitions/node"}}}
        },
        "properties": {"tree": {"$ref": "#/definitions/node"}},
    }

    assert template(page).validate({}) == {}


def test_a_template_keeps_its_namespace_and_the_schema_of_its_secrets() -> None:
    schema = {"type": "object", "required": ["token"]}
    entity = template(secrets={"schema": schema})

    assert entity.secrets == schema
    assert entity.entity["ref"] == "template:default/t"
