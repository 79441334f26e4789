# ruff: noqa: E501 - the sentences are as long as the server writes them
"""What a schema says of lists and maps as wholes, in the words of kube-apiserver 1.36.1."""

from __future__ import annotations

from typing import Any

import pytest

from kubeschema.structural import check_schema

TEXT = {"type": "string"}
LIST_TYPE, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
KEYS, PRESERVE = "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields"


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


KEYED = {**obj(k=TEXT), "required": ["k"]}

CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "only a list has a list type",
        {"type": "string", LIST_TYPE: "set"},
        ['.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified'],
    ),
    (
        "a list type needs a type",
        {LIST_TYPE: "set", PRESERVE: True},
        [".type: Required value: must be array if x-kubernetes-list-type is specified"],
    ),
    (
        "a list is atomic, a set or a map",
        {"type": "array", "items": TEXT, LIST_TYPE: "bag"},
        [
            '.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"'
        ],
    ),
    (
        "only an object has a map type",
        {"type": "array", "items": TEXT, MAP_TYPE: "atomic"},
        ['.type: Invalid value: "array": must be object if x-kubernetes-map-type is specified'],
    ),
    (
        "a map is atomic or granular",
        {"type": "object", "properties": {"b": TEXT}, MAP_TYPE: "x"},
        ['.x-kubernetes-map-type: Unsupported value: "x": supported values: "atomic", "granular"'],
    ),
    (
        "unknown fields are kept or nothing is said",
        {"type": "object", "properties": {"b": TEXT}, PRESERVE: False},
        [".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
    ),
    (
        "a list has items of one schema",
        {"type": "array", "items": [TEXT]},
        [".items: Forbidden: items must be a schema object and not an array"],
    ),
    (
        "objects of a set are atomic",
        {"type": "array", "items": obj(b=TEXT), LIST_TYPE: "set"},
        [
            ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set"
        ],
    ),
    (
        "atomic objects may be in a set",
        {
            "type": "array",
            "items": {"type": "object", "properties": {"b": TEXT}, MAP_TYPE: "atomic"},
            LIST_TYPE: "set",
        },
        [],
    ),
    (
        "lists of a set are atomic",
        {
            "type": "array",
            "items": {"type": "array", "items": TEXT, LIST_TYPE: "set"},
            LIST_TYPE: "set",
        },
        [
            '.items.x-kubernetes-list-type: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set'
        ],
    ),
    (
        "a set has no nulls",
        {"type": "array", "items": {"type": "string", "nullable": True}, LIST_TYPE: "set"},
        [".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
    ),
    (
        "keys need a keyed list",
        {"type": "array", "items": KEYED, KEYS: ["k"]},
        [
            ".x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"
        ],
    ),
    (
        "a set has no keys",
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"k": TEXT},
                "required": ["k"],
                MAP_TYPE: "atomic",
            },
            LIST_TYPE: "set",
            KEYS: ["k"],
        },
        [
            '.x-kubernetes-list-type: Invalid value: "set": must be map if x-kubernetes-list-map-keys is non-empty'
        ],
    ),
    (
        "a keyed list needs keys",
        {"type": "array", "items": KEYED, LIST_TYPE: "map"},
        [
            ".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"
        ],
    ),
    (
        "a keyed list has objects",
        {"type": "array", "items": TEXT, LIST_TYPE: "map", KEYS: ["k"]},
        [
            '.items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map'
        ],
    ),
    (
        "a key is a field",
        {"type": "array", "items": KEYED, LIST_TYPE: "map", KEYS: ["x"]},
        [
            '.x-kubernetes-list-map-keys: Invalid value: ["x"]: entries must all be names of item properties'
        ],
    ),
    (
        "a key is named once",
        {"type": "array", "items": KEYED, LIST_TYPE: "map", KEYS: ["k", "k"]},
        [
            '.x-kubernetes-list-map-keys: Invalid value: ["k","k"]: must not contain duplicate entries'
        ],
    ),
    (
        "a key is a scalar",
        {
            "type": "array",
            "items": {"type": "object", "properties": {"k": obj(b=TEXT)}, "required": ["k"]},
            LIST_TYPE: "map",
            KEYS: ["k"],
        },
        [
            '.items.properties[k].type: Invalid value: "object": must be a scalar type if parent array\'s x-kubernetes-list-type is map'
        ],
    ),
    (
        "a key is never null",
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"k": {"type": "string", "nullable": True}},
                "required": ["k"],
            },
            LIST_TYPE: "map",
            KEYS: ["k"],
        },
        [
            ".items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
        ],
    ),
    ("a keyed list", {"type": "array", "items": KEYED, LIST_TYPE: "map", KEYS: ["k"]}, []),
]


@pytest.mark.parametrize(
    ("schema", "lines"), [pytest.param(schema, lines, id=reason) for reason, schema, lines in CASES]
)
def test_lists_and_maps_are_what_the_server_takes(schema: dict[str, Any], lines: list[str]) -> None:
    lead = "properties[a]"

    assert check_schema(obj(a=schema)) == [f"{lead}{line}" for line in lines]
