"""Structural schemas: what defaulting fills in and pruning drops."""

from __future__ import annotations

from typing import Any

import pytest

from kubeschema.pruning import default, prune

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"

TEXT = {"type": "string"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


DEFAULTS = [
    ("fills a missing field", obj(a={**TEXT, "default": "x"}), {}, {"a": "x"}),
    ("keeps a given value", obj(a={**TEXT, "default": "x"}), {"a": "y"}, {"a": "y"}),
    ("keeps an empty text", obj(a={**TEXT, "default": "x"}), {"a": ""}, {"a": ""}),
    ("keeps false", obj(a={"type": "boolean", "default": True}), {"a": False}, {"a": False}),
    ("does not make objects", obj(o=obj(a={**TEXT, "default": "x"})), {}, {}),
    (
        "fills existing objects",
        obj(o=obj(a={**TEXT, "default": "x"})),
        {"o": {}},
        {"o": {"a": "x"}},
    ),
    (
        "fills a default object",
        obj(o={**obj(a={**TEXT, "default": "x"}), "default": {}}),
        {},
        {"o": {"a": "x"}},
    ),
    ("replaces a null", obj(a={**TEXT, "default": "x"}), {"a": None}, {"a": "x"}),
    ("drops a null without default", obj(a=TEXT), {"a": None}, {}),
    ("keeps a nullable null", obj(a={**TEXT, "nullable": True}), {"a": None}, {"a": None}),
    (
        "keeps a nullable null in spite of a default",
        obj(a={**TEXT, "nullable": True, "default": "x"}),
        {"a": None},
        {"a": None},
    ),
    (
        "fills every item",
        obj(l={"type": "array", "items": obj(a={**TEXT, "default": "x"})}),
        {"l": [{}, {"a": "y"}]},
        {"l": [{"a": "x"}, {"a": "y"}]},
    ),
    (
        "fills every value of an open map",
        obj(m={"type": "object", "additionalProperties": obj(a={**TEXT, "default": "x"})}),
        {"m": {"k": {}}},
        {"m": {"k": {"a": "x"}}},
    ),
    ("leaves unknown fields alone", obj(a=TEXT), {"b": None}, {"b": None}),
]


@pytest.mark.parametrize(
    ("schema", "value", "expected"), [pytest.param(s, v, e, id=r) for r, s, v, e in DEFAULTS]
)
def test_defaulting(schema: dict[str, Any], value: object, expected: object) -> None:
    before = repr(value)
    assert default(schema, value) == expected
    assert repr(value) == before


def test_a_default_is_copied_for_every_object() -> None:
    schema = obj(o={**obj(l={"type": "array", "items": TEXT}), "default": {"l": []}})
    first = default(schema, {})
    first["o"]["l"].append("x")

    assert default(schema, {}) == {"o": {"l": []}}


PRUNED = [
    ("drops an unknown field", obj(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
    ("names the whole path", obj(o=obj(a=TEXT)), {"o": {"b": 1}}, {"o": {}}, ["o.b"]),
    (
        "counts items",
        obj(l={"type": "array", "items": obj()}),
        {"l": [{}, {"b": 1}]},
        {"l": [{}, {}]},
        ["l[1].b"],
    ),
    (
        "keeps what every object has",
        obj(),
        {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x", "any": 1}},
        {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x", "any": 1}},
        [],
    ),
    (
        "drops metadata further down",
        obj(o=obj()),
        {"o": {"metadata": {}}},
        {"o": {}},
        ["o.metadata"],
    ),
    (
        "keeps metadata of embedded resources",
        obj(o={**obj(spec=obj()), EMBEDDED: True}),
        {"o": {"kind": "K", "metadata": {"x": 1}, "spec": {"y": 1}}},
        {"o": {"kind": "K", "metadata": {"x": 1}, "spec": {}}},
        ["o.spec.y"],
    ),
    (
        "keeps everything where told to",
        obj(o={"type": "object", PRESERVE: True}),
        {"o": {"a": {"b": [1]}}},
        {"o": {"a": {"b": [1]}}},
        [],
    ),
    (
        "prunes declared fields below open objects",
        obj(o={**obj(a=obj()), PRESERVE: True}),
        {"o": {"a": {"b": 1}, "c": {"d": 1}}},
        {"o": {"a": {}, "c": {"d": 1}}},
        ["o.a.b"],
    ),
    (
        "keeps values of open maps and prunes inside",
        obj(m={"type": "object", "additionalProperties": obj(a=TEXT)}),
        {"m": {"k": {"a": "x", "b": 1}}},
        {"m": {"k": {"a": "x"}}},
        ["m.k.b"],
    ),
    (
        "leaves int-or-string alone",
        obj(p={INT_OR_STRING: True}),
        {"p": 80},
        {"p": 80},
        [],
    ),
    ("sorts the paths", obj(), {"b": 1, "a": 2}, {}, ["a", "b"]),
]


@pytest.mark.parametrize(
    ("schema", "value", "kept", "dropped"),
    [pytest.param(s, v, k, d, id=r) for r, s, v, k, d in PRUNED],
)
def test_pruning(
    schema: dict[str, Any], value: dict[str, Any], kept: object, dropped: list[str]
) -> None:
    before = repr(value)
    assert prune(schema, value) == (kept, dropped)
    assert repr(value) == before
