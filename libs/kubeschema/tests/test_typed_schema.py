"""A schema of an XRD as Kubernetes' type holds it: what is kept, dropped, renamed or refused."""

from __future__ import annotations

from typing import Any

import pytest

from kubeschema.xrd import BrokenXrdError
from kubeschema.xrd.definition import claim_kind, connection_secret_keys, xr_kind
from kubeschema.xrd.typed_schema import SchemaWalk, typed

X = {"type": "x"}
RULES = "x-kubernetes-validations"
PRESERVE = "x-kubernetes-preserve-unknown-fields"


@pytest.mark.parametrize(
    ("author", "read"),
    [
        (None, {}),
        (X, X),
        ({"type": ""}, {}),
        ({"nullable": False}, {}),
        ({"nullable": True}, {"nullable": True}),
        ({PRESERVE: False}, {PRESERVE: False}),
        ({PRESERVE: None}, {}),
        ({"minLength": 1.0}, {"minLength": 1}),
        ({"minLength": 0}, {"minLength": 0}),
        ({"minimum": 1.5}, {"minimum": 1.5}),
        ({"enum": []}, {}),
        ({"enum": [None]}, {"enum": [None]}),
        ({"required": ["a", None]}, {"required": ["a", ""]}),
        ({"not": None}, {}),
        ({"not": X}, {"not": X}),
        ({"allOf": [X]}, {"allOf": [X]}),
        ({"allOf": []}, {}),
        ({"properties": {}}, {}),
        ({"properties": {"a": X}}, {"properties": {"a": X}}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"additionalProperties": None}, {}),
        ({"additionalProperties": X}, {"additionalProperties": X}),
        ({"items": X}, {"items": X}),
        ({"items": [X]}, {"items": [X]}),
        ({"dependencies": {"a": ["b"], "c": X}}, {"dependencies": {"a": ["b"], "c": X}}),
        ({"dependencies": {}}, {}),
        ({"externalDocs": {"url": "u"}}, {"externalDocs": {"url": "u"}}),
        ({"externalDocs": None}, {}),
        (
            {RULES: [{"rule": "r", "reason": "", "optionalOldSelf": False, "message": ""}, {}]},
            {RULES: [{"rule": "r", "reason": "", "optionalOldSelf": False}, {"rule": ""}]},
        ),
        ({"default": None}, {}),
        ({"example": [1]}, {"example": [1]}),
    ],
)
def test_a_schema_is_read_without_what_says_nothing(author: Any, read: dict[str, Any]) -> None:
    walk = SchemaWalk()

    assert typed(author, (), walk) == read
    assert (walk.unknown, walk.recased) == ([], [])


def test_what_kubernetes_does_not_know_is_dropped_and_other_cases_are_renamed() -> None:
    author = {
        "odd": 1,
        "Properties": {"a": {"TYPE": "x", "strange": 1}},
        "externalDocs": {"Url": "u", "none": 1},
        RULES: [{"rule": "r", "bad": 1}],
    }
    walk = SchemaWalk()

    read = typed(author, ("s",), walk)

    assert read == {
        "properties": {"a": X},
        "externalDocs": {"url": "u"},
        RULES: [{"rule": "r"}],
    }
    assert sorted(walk.unknown) == [
        ("s", "Properties", "a", "strange"),
        ("s", "externalDocs", "none"),
        ("s", "odd"),
        ("s", RULES, "0", "bad"),
    ]
    assert sorted(walk.recased) == [
        (("s", "Properties"), "properties"),
        (("s", "Properties", "a", "TYPE"), "type"),
    ]


@pytest.mark.parametrize(
    ("author", "steps", "expected"),
    [
        (5, (), "a schema"),
        ({"type": 5}, ("type",), "a text"),
        ({"nullable": "x"}, ("nullable",), "true or false"),
        ({PRESERVE: 1}, (PRESERVE,), "true or false"),
        ({"minLength": 1.5}, ("minLength",), "a whole number"),
        ({"minLength": True}, ("minLength",), "a number"),
        ({"minimum": "1"}, ("minimum",), "a number"),
        ({"enum": "x"}, ("enum",), "a list"),
        ({"required": [5]}, ("required", "0"), "a text"),
        ({"required": "a"}, ("required",), "a list"),
        ({"not": 5}, ("not",), "a schema"),
        ({"allOf": 5}, ("allOf",), "a list"),
        ({"allOf": [{}, 5]}, ("allOf", "1"), "a schema"),
        ({"properties": []}, ("properties",), "a map"),
        ({"properties": {"a": 5}}, ("properties", "a"), "a schema"),
        ({"additionalProperties": 5}, ("additionalProperties",), "true, false or a schema"),
        ({"additionalProperties": []}, ("additionalProperties",), "true, false or a schema"),
        ({"items": 5}, ("items",), "a schema"),
        ({"dependencies": []}, ("dependencies",), "a map"),
        ({"dependencies": {"a": [5]}}, ("dependencies", "a", "0"), "a text"),
        ({"externalDocs": 5}, ("externalDocs",), "a map"),
        ({RULES: {}}, (RULES,), "a list"),
        ({RULES: [5]}, (RULES, "0"), "a map"),
        ({RULES: [{"rule": 5}]}, (RULES, "0", "rule"), "a text"),
        ({RULES: [{"optionalOldSelf": "x"}]}, (RULES, "0", "optionalOldSelf"), "true or false"),
    ],
)
def test_a_part_of_another_type_is_refused_at_its_place(
    author: Any, steps: tuple[str, ...], expected: str
) -> None:
    with pytest.raises(BrokenXrdError) as refused:
        typed(author, ())

    assert refused.value.steps == steps
    name = steps[-1] if steps else "openAPIV3Schema"
    assert str(refused.value) == f"cannot parse validation schema: {name} is not {expected}"
    assert refused.value.hint == f"write {expected} there"


def xrd(marks: str = "", **spec: Any) -> dict[str, Any]:
    """Return an XRD with a version for each mark; ``+`` is referenceable."""
    versions = [{"name": f"v{n}", "referenceable": mark == "+"} for n, mark in enumerate(marks)]
    names = {"kind": "XDisk"}
    return {
        "metadata": {"name": "xdisks.x.io"},
        "spec": {"group": "x.io", "names": names, "versions": versions, **spec},
    }


@pytest.mark.parametrize(
    ("definition", "names"),
    [(xrd(), "none"), (xrd("-"), "none"), (xrd("+-+"), "v0, v2")],
)
def test_exactly_one_version_is_stored(definition: dict[str, Any], names: str) -> None:
    with pytest.raises(BrokenXrdError) as refused:
        xr_kind(definition)

    assert str(refused.value) == (
        "xdisks.x.io: must have exactly one version marked as storage version;"
        f" referenceable: {names}"
    )
    assert refused.value.steps == ("spec", "versions")


def test_kinds_are_those_of_the_stored_version() -> None:
    found = xrd("-+", claimNames={"kind": "Disk"}, connectionSecretKeys=["a"])

    assert str(xr_kind(found)) == "XDisk.x.io"
    assert xr_kind(found).version == "v1"
    claim = claim_kind(found)
    assert claim is not None
    assert (claim.api_version, claim.kind) == ("x.io/v1", "Disk")
    assert connection_secret_keys(found) == ("a",)
    assert claim_kind(xrd("+")) is None
    assert connection_secret_keys(xrd("+")) == ()
