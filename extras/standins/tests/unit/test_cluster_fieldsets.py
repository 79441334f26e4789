"""Field sets, and documents seen through their schema."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orderkit_standins.cluster import typed_documents
from orderkit_standins.cluster.typed_documents import (
    FieldSet,
    difference,
    intersection,
    paths,
    union,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "object", "additionalProperties": {"type": "string"}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "properties": {"type": {}, "x": {}, "y": {}}},
        },
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
        "plain": {"type": "array", "items": {"type": "integer"}},
    },
}
NAMES = st.sampled_from("xyz")


def type_of(item: Any) -> str:
    return str(item["type"])


DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.dictionaries(NAMES, NAMES, max_size=3),
        "tags": st.lists(NAMES, unique=True, max_size=3),
        "items": st.lists(
            st.fixed_dictionaries(
                {"type": NAMES}, optional={"x": st.integers(0, 2), "y": st.integers(0, 2)}
            ),
            unique_by=type_of,
            max_size=3,
        ),
        "whole": st.dictionaries(NAMES, NAMES, max_size=2),
        "plain": st.lists(st.integers(0, 2), max_size=2),
    },
)
FIELDS = DOCUMENTS.map(lambda document: typed_documents.fields_of(document, SCHEMA))


def members(fields: FieldSet) -> set[str]:
    return set(paths(fields))


@given(FIELDS, FIELDS)
def test_set_operations_are_those_of_sets_of_paths(left: FieldSet, right: FieldSet) -> None:
    assert members(union(left, right)) == members(left) | members(right)
    assert members(difference(left, right)) == members(left) - members(right)
    assert members(intersection(left, right)) == members(left) & members(right)


def test_paths_are_printed_as_the_server_does() -> None:
    fields = {
        "f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}}}},
        "f:metadata": {"f:finalizers": {'v:"x"': {}}},
    }
    assert list(paths(fields)) == [
        '.metadata.finalizers[="x"]',
        '.status.conditions[type="Ready"]',
        '.status.conditions[type="Ready"].status',
    ]


@given(DOCUMENTS)
def test_a_document_does_not_differ_from_itself(document: dict[str, Any]) -> None:
    assert typed_documents.compare(document, document, SCHEMA) == ({}, {})


@given(DOCUMENTS, DOCUMENTS)
def test_after_a_merge_every_claimed_field_has_the_wanted_value(
    live: dict[str, Any], config: dict[str, Any]
) -> None:
    merged = typed_documents.merge(live, config, SCHEMA)
    differs = typed_documents.compare(merged, typed_documents.merge(merged, config, SCHEMA), SCHEMA)

    assert differs == ({}, {})
    whole = typed_documents.fields_of(merged, SCHEMA)
    filled = {name: value for name, value in config.items() if value}
    assert members(typed_documents.fields_of(filled, SCHEMA)) <= members(whole)


@given(DOCUMENTS, DOCUMENTS)
def test_what_was_given_up_and_nobody_keeps_is_gone(
    live: dict[str, Any], kept: dict[str, Any]
) -> None:
    merged = typed_documents.merge(live, kept, SCHEMA)
    keeps = typed_documents.fields_of(kept, SCHEMA)
    left = typed_documents.prune(merged, typed_documents.fields_of(merged, SCHEMA), keeps, SCHEMA)

    assert _filled(left) == _filled(kept)


def _filled(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out empty containers and the order of sets and list-maps."""
    unordered: dict[str, Any] = {"tags": str, "items": type_of}
    return {
        name: sorted(value, key=unordered[name]) if name in unordered else value
        for name, value in document.items()
        if value
    }


def test_true_and_one_are_different_values() -> None:
    assert members(typed_documents.compare({"b": 1}, {"b": True}, None).touched) == {".b"}
