"""How a newer schema may allow less than the one before, and what is no tightening."""

from __future__ import annotations

from typing import Any

import pytest

from orderkit_workshop.check.since_checks import tightened

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
GROUP: Schema = {"type": "object"}
RULES = "x-kubernetes-validations"
OPEN = "x-kubernetes-preserve-unknown-fields"


def told(old: Schema, new: Schema) -> list[tuple[str, str]]:
    """Return where and what, of a field `f` inside the spec."""
    before = {"type": "object", "properties": {"f": old}}
    after = {"type": "object", "properties": {"f": new}}
    return [
        (path.removeprefix("p.properties."), text)
        for _, path, text in tightened(before, after, "p")
    ]


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        (TEXT, {"type": "integer"}, "f.type", "f was string and is integer"),
        ({}, TEXT, "f.type", "f was anything and is string"),
        (
            {"x-kubernetes-int-or-string": True},
            {"type": "integer"},
            "f.type",
            "f was an integer or a string and is integer",
        ),
        (
            {**TEXT, "enum": ["a", "b", "c"]},
            {**TEXT, "enum": ["b"]},
            "f.enum",
            "f may no longer be a, c",
        ),
        (TEXT, {**TEXT, "enum": ["a"]}, "f.enum", "f took any value and is limited to an enum"),
        (TEXT, {**TEXT, "pattern": "a"}, "f.pattern", "pattern of f was None and is 'a'"),
        (
            {**TEXT, "format": "a"},
            {**TEXT, "format": "b"},
            "f.format",
            "format of f was 'a' and is 'b'",
        ),
        (TEXT, {**TEXT, "minLength": 1}, "f.minLength", "minLength of f was not set and is 1"),
        (
            {"type": "integer", "minimum": 1},
            {"type": "integer", "minimum": 2},
            "f.minimum",
            "minimum of f was 1 and is 2",
        ),
        (
            {"type": "integer", "maximum": 3},
            {"type": "integer", "maximum": 2},
            "f.maximum",
            "maximum of f was 3 and is 2",
        ),
        (
            {"type": "array"},
            {"type": "array", "uniqueItems": True},
            "f.uniqueItems",
            "uniqueItems of f is new",
        ),
        (
            {"type": "integer", "multipleOf": 3},
            {"type": "integer", "multipleOf": 2},
            "f.multipleOf",
            "f must be a multiple of 2 now",
        ),
        (
            {"type": "integer"},
            {"type": "integer", "multipleOf": 2},
            "f.multipleOf",
            "f must be a multiple of 2 now",
        ),
        ({**TEXT, "nullable": True}, TEXT, "f", "f no longer has nullable"),
        ({**GROUP, OPEN: True}, GROUP, "f", f"f no longer has {OPEN}"),
        (
            {**GROUP, "additionalProperties": TEXT},
            GROUP,
            "f",
            "f no longer takes additional keys",
        ),
        (GROUP, {**GROUP, "not": {"required": ["a"]}}, "f.not", "not of f is new or changed"),
        ({**GROUP, "anyOf": [{}]}, {**GROUP, "anyOf": [TEXT]}, "f.anyOf", "anyOf of f is new or"),
        (
            {"type": "array", "x-kubernetes-list-type": "set"},
            {"type": "array"},
            "f.x-kubernetes-list-type",
            "x-kubernetes-list-type of f changed",
        ),
        (GROUP, {**GROUP, RULES: [{"rule": "a"}]}, f"f.{RULES}[0]", "f: rule 'a'"),
        (
            {**GROUP, RULES: [{"rule": "a"}]},
            {**GROUP, RULES: [{"rule": "a"}, {"rule": "b"}]},
            f"f.{RULES}[1]",
            "f: rule 'b'",
        ),
        ({**GROUP, "properties": {"a": TEXT}}, GROUP, "f.properties", "f.a was removed"),
        (GROUP, {**GROUP, "required": ["a"]}, "f.required", "f.a is required now"),
        (
            {**TEXT, "default": "a"},
            {**TEXT, "default": "b"},
            "f.default",
            "the default of f was 'a' and is 'b'",
        ),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": {**TEXT, "pattern": "a"}},
            "f.items.pattern",
            "pattern of f[] was None and is 'a'",
        ),
        (
            {"type": "object", "additionalProperties": TEXT},
            {"type": "object", "additionalProperties": {**TEXT, "pattern": "a"}},
            "f.additionalProperties.pattern",
            "pattern of f[] was None and is 'a'",
        ),
    ],
)
def test_what_allows_less_is_told_with_its_place(
    old: Schema, new: Schema, path: str, message: str
) -> None:
    ((where, said),) = told(old, new)

    assert where.replace("p.properties", "") in (path, path.replace("f", "f"))
    assert said.startswith(message)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TEXT, TEXT),
        ({**TEXT, "enum": ["a"]}, {**TEXT, "enum": ["b", "a"]}),
        ({**TEXT, "enum": ["a"]}, TEXT),
        ({**TEXT, "pattern": "a"}, TEXT),
        ({**TEXT, "minLength": 1}, TEXT),
        ({"type": "integer", "minimum": 2}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "minimum": 2}, {"type": "integer", "minimum": 2}),
        ({"type": "integer", "maximum": 2}, {"type": "integer", "maximum": 3}),
        ({"type": "array", "uniqueItems": True}, {"type": "array", "uniqueItems": True}),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}),
        ({"type": "integer", "multipleOf": 4}, {"type": "integer", "multipleOf": 2}),
        ({"type": "integer", "multipleOf": 4}, {"type": "integer"}),
        (TEXT, {**TEXT, "nullable": True}),
        (GROUP, {**GROUP, OPEN: True}),
        ({**GROUP, "not": TEXT}, GROUP),
        ({**GROUP, "allOf": [TEXT]}, {**GROUP, "allOf": [TEXT]}),
        (GROUP, {**GROUP, RULES: [{"rule": "self == oldSelf"}]}),
        ({**GROUP, RULES: [{"rule": "a"}]}, {**GROUP, RULES: [{"rule": "a", "message": "m"}]}),
        ({**GROUP, "properties": {"a": TEXT}}, {**GROUP, "additionalProperties": TEXT}),
        ({**GROUP, "properties": {"a": TEXT}}, {**GROUP, OPEN: True}),
        ({**GROUP, "required": ["a"]}, {**GROUP, "required": ["a"]}),
        (
            GROUP,
            {**GROUP, "required": ["a"], "properties": {"a": {**TEXT, "default": "x"}}},
        ),
        ({**TEXT, "description": "a"}, {**TEXT, "description": "b"}),
        ({"type": "array", "items": TEXT}, {"type": "array"}),
    ],
)
def test_what_allows_as_much_is_not_told(old: Schema, new: Schema) -> None:
    assert told(old, new) == []


def test_the_spec_itself_is_called_so() -> None:
    found = tightened(GROUP, {**GROUP, "minProperties": 1}, "p")

    assert [text for *_, text in found] == ["minProperties of spec was not set and is 1"]
