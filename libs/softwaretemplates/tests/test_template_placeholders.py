"""Placeholders of a template bring in files beside it, as Backstage's catalog reads them."""

from __future__ import annotations

from typing import Any

import pytest

from ground.errors import InvalidInputError
from softwaretemplates.placeholders import resolve_placeholders
from softwaretemplates.template import parse_template

FILES = {
    "./page.yaml": b"title: Where\nproperties: {team: {type: string}}\n",
    "./step.json": b'{"id": "log", "action": "debug:log", "input": {"message": {"$text": "./a"}}}',
    "../notes.md": b"# Notes\n",
    "two.yaml": b"a: 1\n---\nb: 2\n",
    "none.yaml": b"# nothing\n",
    "bad.json": b"{",
    "nan.json": b"[NaN]",
    "large": b"x" * ((1 << 20) + 1),
    "half": b"x" * (1 << 20),
}


def read(path: str) -> bytes:
    if path not in FILES:
        raise InvalidInputError("url", path, "is not a file", hint="check its name")
    return FILES[path]


@pytest.mark.parametrize(
    ("entity", "expected", "reason"),
    [
        ({"a": [{"$text": "../notes.md"}]}, {"a": ["# Notes\n"]}, "text, in a list"),
        ({"$yaml": "./page.yaml"}, {"title": "Where", "properties": {"team": {"type": "string"}}},
         "the whole entity"),
        ({"a": {"$json": "./step.json"}}, {"a": {"id": "log", "action": "debug:log", "input": {
            "message": {"$text": "./a"}}}}, "what a file brings is not looked at again"),
        ({"a": {"$yaml": "./page.yaml", "b": 1}}, {"a": {"$yaml": "./page.yaml", "b": 1}},
         "a map with more keys stays as it is"),
        ({"a": {"$ref": "#/b"}}, {"a": {"$ref": "#/b"}}, "another name stays as it is"),
        ({"a": {"$other": {"$text": "../notes.md"}}}, {"a": {"$other": {"$text": "../notes.md"}}},
         "and so does what is in it"),
    ],
)  # fmt: skip
def test_a_placeholder_becomes_the_content_of_its_file(
    entity: Any, expected: Any, reason: str
) -> None:
    assert resolve_placeholders(entity, read, name="t.yaml") == expected, reason


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ({"a": [{"$yaml": "gone.yaml"}]}, "t.yaml: a[0].$yaml: 'gone.yaml' is not a file"),
        ({"a": {"$text": 3}}, "t.yaml: a.$text: 3 is not a path in the template's own repository"),
        ({"a": {"$text": "https://example.org/a"}}, "is not a path in the template's own"),
        ({"a": {"$yaml": "two.yaml"}}, "is not YAML: 2 documents; one is expected"),
        ({"a": {"$yaml": "none.yaml"}}, "is not YAML: 0 documents; one is expected"),
        ({"a": {"$json": "bad.json"}}, "is not JSON"),
        ({"a": {"$json": "nan.json"}}, "NaN is no number of JSON"),
        ({"a": {"$text": "large"}}, "at most 1048576 bytes in a file"),
        (
            {"a": [{"$text": "half"}] * 5},
            "4194304 in all and 100 files",
        ),
        ({"a": [{"$text": "../notes.md"}] * 101}, "is file 101 of 808 bytes"),
    ],
)
def test_a_placeholder_that_cannot_be_resolved_is_named(entity: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        resolve_placeholders(entity, read, name="t.yaml")

    assert f" {message}" in f" {refused.value}"


def test_a_template_is_put_together_of_files() -> None:
    text = b"""
apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata: {name: garage}
spec:
  type: service
  parameters: [{$yaml: ./page.yaml}]
  steps: [{$json: ./step.json}]
"""
    template = parse_template(text, name="template.yaml", read=read)

    assert list(template.properties) == ["team"]
    assert [step.action for step in template.steps] == ["debug:log"]
