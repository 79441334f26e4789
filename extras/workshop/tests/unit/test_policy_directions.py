"""What a commit by hand may do is what `orderkit change` may do: one meaning of directions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ground.errors import RefusedError, SeveralProblemsError
from kubeschema.admission import BINDING, POLICY, Policy, Review, judge
from orderkit.core.kit.kit_file import Direction, KitChange
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import kit_of
from orderkit.core.order.change import differences, judge_rules
from orderkit_workshop.generate.admission_policy import manifests

FIELDS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "integer": ({"type": "integer"}, [1, 2, 3, 7]),
    "integer in steps": ({"type": "integer", "multipleOf": 5}, [5, 10, 20]),
    "number": ({"type": "number"}, [0.5, 1.5, 2.75]),
    "switch": ({"type": "boolean"}, [False, True]),
    "words": ({"type": "string", "enum": ["s", "m", "l"]}, ["s", "m", "l"]),
    "numbers": ({"type": "integer", "enum": [4, 2, 8]}, [4, 2, 8]),
    "text": ({"type": "string"}, ["a", "b"]),
    "list": ({"type": "array", "items": {"type": "string"}}, [["a"], ["b", "a"], ["b"], []]),
    "map": (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        [{"a": 1}, {"a": 2, "b": 1}, {"b": 1}],
    ),
    "object": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        },
        [{"a": 1}, {"a": 2, "b": True}, {"a": 1, "b": False}],
    ),
}
NOTHING = object()


def kit(schema: dict[str, Any], direction: Direction) -> Kit:
    xrd = {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "spec": {
            "scope": "Cluster",
            "group": "lab.example.org",
            "names": {"kind": "XLab", "plural": "xlabs"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {
                        "openAPIV3Schema": {"properties": {"spec": {"properties": {"x": schema}}}}
                    },
                }
            ],
        },
    }
    change = {"name": "c", "fields": ["x"], "direction": direction.value}
    return kit_of("lab", {"changes": [change]}, xrd)


def pairs(values: list[Any]) -> Iterator[tuple[Any, Any]]:
    yield from itertools.permutations([*values, NOTHING], 2)


@pytest.mark.parametrize("direction", [Direction.GROW, Direction.STEP, Direction.NEVER])
@pytest.mark.parametrize("name", FIELDS)
def test_the_policy_and_the_change_agree(name: str, direction: Direction) -> None:
    schema, values = FIELDS[name]
    tried = kit(schema, direction)
    policies = {m["metadata"]["name"]: Policy(m) for m in manifests(tried) if is_a(m, POLICY.kind)}
    bindings = [m for m in manifests(tried) if is_a(m, BINDING.kind)]

    for was, now in pairs(values):
        review = Review("UPDATE", tried.kind, "xlabs", "lab-a", xr(now), xr(was))
        denials = judge(policies, bindings, review, lambda _kind, _namespace: ()).denials
        told = denials[0].message if denials else ""
        assert bool(denials) == refused(tried, was, now), (was, now, told)
        assert not denials or told.startswith("spec.x: changes"), told


def is_a(manifest: dict[str, Any], kind: str) -> bool:
    return bool(manifest["kind"] == kind)


def spec(value: Any) -> dict[str, Any]:
    return {} if value is NOTHING else {"x": value}


def xr(value: Any) -> dict[str, Any]:
    noted = {"argocd.argoproj.io/tracking-id": "lab-a:lab.example.org/XLab:default/lab-a"}
    return {"metadata": {"name": "lab-a", "annotations": noted}, "spec": spec(value)}


def refused(tried: Kit, was: Any, now: Any) -> bool:
    assert isinstance(tried.changes[0], KitChange)
    try:
        judge_rules(tried, differences(spec(was), spec(now)))
    except (RefusedError, SeveralProblemsError):
        return True
    return False
