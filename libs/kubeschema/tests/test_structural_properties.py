"""Structural schemas: what holds for every schema and every value."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubeschema.pruning import default, prune
from kubeschema.structural import check_schema, problems, type_problems

PRESERVE = "x-kubernetes-preserve-unknown-fields"
NAMES = ["a", "b", "c", "metadata"]

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.sampled_from("xyz")
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(["spec", "kind", "extra"]), values, max_size=3)


def leaf(kind: str, choices: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(kind)}, optional={"nullable": st.booleans(), "default": choices}
    )


leaves = (
    leaf("string", st.sampled_from("xyz"))
    | leaf("integer", st.integers(-5, 5))
    | leaf("boolean", st.booleans())
    | st.just({"x-kubernetes-int-or-string": True})
    | st.just({"type": "object", PRESERVE: True})
)


def composed(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.dictionaries(st.sampled_from(NAMES[:3]), inner, max_size=3)
    plain = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": fields},
        optional={PRESERVE: st.sampled_from([True]), "nullable": st.booleans()},
    )
    mapped = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    listed = st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    return plain | mapped | listed


schemas = st.recursive(leaves, composed, max_leaves=8).map(
    lambda inner: {"type": "object", "properties": {"spec": inner}}
)


@given(schemas)
def test_the_schemas_of_these_tests_are_structural(schema: dict[str, Any]) -> None:
    assert check_schema(schema) == []


@given(schemas, objects)
def test_defaulting_again_changes_nothing(schema: dict[str, Any], value: Any) -> None:
    once = default(schema, value)

    assert repr(default(schema, once)) == repr(once)


@given(schemas, objects)
def test_a_pruned_value_has_no_unknown_fields(schema: dict[str, Any], value: Any) -> None:
    kept, dropped = prune(schema, value)

    assert prune(schema, kept) == (kept, [])
    assert bool(dropped) == (kept != value)


@given(schemas, objects)
def test_a_default_is_never_pruned(schema: dict[str, Any], value: Any) -> None:
    filled = default(schema, prune(schema, value)[0])

    assert prune(schema, filled) == (filled, [])


@given(schemas, objects)
def test_a_good_value_stays_good(schema: dict[str, Any], value: Any) -> None:
    if not problems(schema, value):
        assert problems(schema, default(schema, prune(schema, value)[0])) == []


@given(schemas, objects)
def test_what_is_pruned_and_valid_has_no_wrong_type(schema: dict[str, Any], value: Any) -> None:
    shaped = default(schema, prune(schema, value)[0])
    if not problems(schema, shaped):
        assert type_problems(schema, shaped) == []


@given(schemas, objects)
def test_arguments_are_left_alone(schema: dict[str, Any], value: Any) -> None:
    before = repr((schema, value))
    prune(schema, value)
    default(schema, value)
    problems(schema, value)

    assert repr((schema, value)) == before
