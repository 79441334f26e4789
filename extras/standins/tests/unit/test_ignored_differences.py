"""Fields that an Application names in ignoreDifferences are taken as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest, ObjectKey
from orderkit_standins.argocd.spec import as_it_is, read_rules


def manifest(**parts: Any) -> Manifest:
    meta = {"name": "a", "namespace": "ns"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, **parts}


@dataclass(frozen=True)
class Case:
    reason: str
    pointer: str
    target: dict[str, Any]
    live: dict[str, Any]
    wanted: dict[str, Any]


CASES = [
    Case("a value", "/spec/n", {"spec": {"n": 1}}, {"spec": {"n": 2}}, {"spec": {"n": 2}}),
    Case("one that Git lacks", "/spec/n", {"spec": {}}, {"spec": {"n": 2}}, {"spec": {"n": 2}}),
    Case("one that is gone", "/spec/n", {"spec": {"n": 1}}, {"spec": {}}, {"spec": {}}),
    Case("a parent that Git lacks", "/spec/n", {"data": {}}, {"spec": {"n": 2}}, {"data": {}}),
    Case("an item", "/l/1", {"l": [1, 2]}, {"l": [3, 4]}, {"l": [1, 4]}),
    Case("an item that is gone", "/l/1", {"l": [1, 2]}, {"l": [3]}, {"l": [1, 2]}),
    Case("a slash in a key", "/d/a~1b", {"d": {"a/b": 1}}, {"d": {"a/b": 2}}, {"d": {"a/b": 2}}),
    Case("a tilde in a key", "/d/a~0b", {"d": {"a~b": 1}}, {"d": {"a~b": 2}}, {"d": {"a~b": 2}}),
    Case("a step into text", "/d/x/y", {"d": {"x": "t"}}, {"d": {"x": "u"}}, {"d": {"x": "t"}}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_ignored_fields_are_as_they_are(case: Case) -> None:
    target, live = manifest(**case.target), manifest(**case.live)
    rules = read_rules([{"group": "apps", "kind": "Deployment", "jsonPointers": [case.pointer]}])

    found = as_it_is(target, live, rules, ObjectKey.of(target))

    assert found == manifest(**case.wanted)
    assert target == manifest(**case.target), "the target itself stays"


@pytest.mark.parametrize(
    ("reason", "rule", "concerned"),
    [
        ("any group and kind", {"group": "*", "kind": "*"}, True),
        ("another kind", {"group": "apps", "kind": "StatefulSet"}, False),
        ("no group is the core's", {"kind": "Deployment"}, False),
        ("its name", {"group": "apps", "kind": "Deployment", "name": "a"}, True),
        ("another name", {"group": "apps", "kind": "Deployment", "name": "b"}, False),
        ("another namespace", {"group": "apps", "kind": "Deployment", "namespace": "x"}, False),
    ],
)
def test_rules_choose_objects(reason: str, rule: dict[str, Any], *, concerned: bool) -> None:
    (found,) = read_rules([rule])

    assert found.concerns(ObjectKey.of(manifest())) is concerned, reason


@pytest.mark.parametrize("field", ["jqPathExpressions", "managedFieldsManagers"])
def test_what_is_not_done_is_refused(field: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"{field}: .* is not supported here"):
        read_rules([{"kind": "Deployment", field: ["x"]}])
