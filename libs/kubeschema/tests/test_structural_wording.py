"""Structural schemas: what is wrong with a value, in the API server's words."""

from __future__ import annotations

from typing import Any

import pytest

from kubeschema.structural import problems, type_problems
from kubeschema.structural.api_messages import go_number

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def spec(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object whose ``spec`` has `schema`."""
    return obj(spec=schema)


def told(schema: dict[str, Any], value: object) -> list[str]:
    """Return the problems of a spec as text."""
    return [str(problem) for problem in problems(spec(schema), {"spec": value})]


LINES = [
    ("valid", TEXT, "x", []),
    ("missing", {**obj(a=TEXT), "required": ["a"]}, {}, ["spec.a: Required value"]),
    (
        "enum",
        {**TEXT, "enum": ["a", "b"]},
        "c",
        ['spec: Unsupported value: "c": supported values: "a", "b"'],
    ),
    (
        "enum of numbers",
        {"type": "integer", "enum": [1, 2]},
        3,
        ['spec: Unsupported value: 3: supported values: "1", "2"'],
    ),
    ("too long", {**TEXT, "maxLength": 1}, "ab", ["spec: Too long: may not be more than 1 byte"]),
    (
        "bounds of a number",
        {"type": "number", "maximum": 1.5},
        2.25,
        ["spec: Invalid value: 2.25: spec in body should be less than or equal to 1.5"],
    ),
    (
        "exclusive bound",
        {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
        5,
        ["spec: Invalid value: 5: spec in body should be less than 5"],
    ),
    (
        "multiple",
        {"type": "integer", "multipleOf": 5},
        7,
        ["spec: Invalid value: 7: spec in body should be a multiple of 5"],
    ),
    (
        "too many items",
        {"type": "array", "items": TEXT, "maxItems": 1},
        ["a", "b"],
        ["spec: Too many: 2: must have at most 1 item"],
    ),
    (
        "too few items",
        {"type": "array", "items": TEXT, "minItems": 1},
        [],
        ["spec: Invalid value: 0: spec in body should have at least 1 items"],
    ),
    (
        "too few properties",
        {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
        {},
        ["spec: Invalid value: 0: spec in body should have at least 1 properties"],
    ),
    (
        "null",
        TEXT,
        None,
        ['spec: Invalid value: "null": spec in body must be of type string: "null"'],
    ),
    ("nullable null", {**TEXT, "nullable": True, "minLength": 2}, None, []),
    ("integer for a number", {"type": "number"}, 3, []),
    ("3.0 for an integer", {"type": "integer"}, 3.0, []),
    (
        "true for an integer",
        {"type": "integer"},
        True,
        ['spec: Invalid value: "boolean": spec in body must be of type integer: "boolean"'],
    ),
    (
        "beyond int32",
        {"type": "integer", "format": "int32"},
        2**31,
        [
            (
                '<nil>: Invalid value: "": Checked value must be of type integer with format int32 '
                "in spec"
            )
        ],
    ),
    ("unknown format", {**TEXT, "format": "colour"}, "x", []),
    (
        "format",
        {**TEXT, "format": "ipv4"},
        "1.2.3",
        ['spec: Invalid value: "1.2.3": spec in body must be of type ipv4: "1.2.3"'],
    ),
    (
        "any of",
        {**obj(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [
            '<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)',
            "spec.a: Required value",
        ],
    ),
    (
        "one of, none",
        {**obj(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}]},
        {},
        [
            (
                '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). '
                "Found none valid"
            ),
            "spec.a: Required value",
        ],
    ),
    (
        "one of, two",
        {**obj(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": "x", "b": "y"},
        [
            (
                '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). '
                "Found 2 valid alternatives"
            )
        ],
    ),
    (
        "not",
        {**obj(a=TEXT), "not": {"required": ["a"]}},
        {"a": "x"},
        ['<nil>: Invalid value: "": "spec" must not validate the schema (not)'],
    ),
    (
        "all of",
        {**TEXT, "allOf": [{"maxLength": 1}]},
        "ab",
        ["spec: Too long: may not be more than 1 byte"],
    ),
    (
        "embedded resource",
        {"type": "object", EMBEDDED: True, PRESERVE: True},
        {"kind": "K"},
        ["spec.apiVersion: Required value"],
    ),
    (
        "closed map",
        {"type": "object", "additionalProperties": False},
        {"b": 1},
        ['spec: Invalid value: "b": spec.b in body is a forbidden property'],
    ),
]


@pytest.mark.parametrize(
    ("schema", "value", "lines"), [pytest.param(s, v, e, id=r) for r, s, v, e in LINES]
)
def test_problems_read_as_the_servers(
    schema: dict[str, Any], value: object, lines: list[str]
) -> None:
    assert told(schema, value) == lines


def test_problems_carry_the_cause_of_a_status() -> None:
    schema = spec({**obj(a={**TEXT, "enum": ["x"]}, b=TEXT), "required": ["b"]})
    found = problems(schema, {"spec": {"a": "y"}})

    assert [(p.path, p.reason) for p in found] == [
        ("spec.a", "FieldValueNotSupported"),
        ("spec.b", "FieldValueRequired"),
    ]


TYPES = [
    ("null passes", TEXT, None, []),
    ("fraction for an integer passes", {"type": "integer"}, 1.5, []),
    (
        "number for text",
        TEXT,
        5,
        [".spec: expected string, got &value.valueUnstructured{Value:5}"],
    ),
    (
        "map for text",
        TEXT,
        {"b": "x", "a": [1]},
        [
            (
                ".spec: expected string, got &value.valueUnstructured{Value:map[string]interface {}"
                '{"a":[]interface {}{1}, "b":"x"}}'
            )
        ],
    ),
    (
        "true for a number",
        {"type": "number"},
        True,
        [".spec: expected numeric (int or float), got bool"],
    ),
    ("text for a map", obj(), "x", [".spec: expected map, got &{x}"]),
    ("map for a list", LIST, {}, [".spec: expected list, got &{map[]}"]),
    ("unknown field", obj(a=TEXT), {"b": 1}, [".spec.b: field not declared in schema"]),
    ("open map", {"type": "object", "additionalProperties": TEXT}, {"b": "x"}, []),
    ("anything", {"type": "object", PRESERVE: True}, {"b": {"c": 1}}, []),
    ("int-or-string takes any scalar", {INT_OR_STRING: True}, True, []),
    (
        "two faults",
        obj(a=TEXT, b=TEXT),
        {"a": 1, "c": 1},
        [
            ".spec.a: expected string, got &value.valueUnstructured{Value:1}",
            ".spec.c: field not declared in schema",
        ],
    ),
]


@pytest.mark.parametrize(
    ("schema", "value", "lines"), [pytest.param(s, v, e, id=r) for r, s, v, e in TYPES]
)
def test_type_problems_read_as_server_side_applys(
    schema: dict[str, Any], value: object, lines: list[str]
) -> None:
    whole = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "spec": value}
    assert [str(problem) for problem in type_problems(spec(schema), whole)] == lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.0, "5"),
        (0.5, "0.5"),
        (1e6, "1e+06"),
        (999999.0, "999999"),
        (1e-5, "1e-05"),
        (1234567.5, "1.2345675e+06"),
        (0.0, "0"),
        (-2.5, "-2.5"),
    ],
)
def test_numbers_are_written_as_go_does(value: float, text: str) -> None:
    assert go_number(value) == text


FORMAT_CASES = [
    ("date-time", ["2026-11-21T06:00:00Z", "2026-11-21t06:00:00.5+01:00"], ["2026-11-21", "noon"]),
    ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9"]),
    ("duration", ["1h30m", "22 ns", "0", "-1.5s"], ["1", "h", ""]),
    ("uri", ["https://x.example/y", "/path"], ["x", "a b:/"]),
    ("email", ["a@b.example", "A <a@b.example>"], ["a", "@b"]),
    ("hostname", ["a.example", "a-b.example", "a-bc"], ["-a", "a_b", "x" * 64, "ab-c"]),
    ("ipv4", ["1.2.3.4"], ["1.2.3", "::1"]),
    ("ipv6", ["::1"], ["1.2.3.4", ":"]),
    ("cidr", ["10.0.0.0/8", "10.0.0.1/8"], ["10.0.0.0", "10.0.0.0/33"]),
    ("mac", ["00:11:22:aa:bb:cc"], ["00:11"]),
    ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["x"]),
    ("uuid4", ["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]),
    ("byte", ["aGk="], ["aGk", "?"]),
    ("k8s-short-name", ["a-b"], ["A", "a.b", "x" * 64]),
    ("k8s-long-name", ["a.b"], ["a..b", "-a"]),
]


@pytest.mark.parametrize(
    ("name", "good", "bad"), FORMAT_CASES, ids=[case[0] for case in FORMAT_CASES]
)
def test_formats_are_judged(name: str, good: list[str], bad: list[str]) -> None:
    schema = {**TEXT, "format": name}
    assert [text for text in good if told(schema, text)] == []
    assert [text for text in bad if not told(schema, text)] == []
