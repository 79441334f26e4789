"""When applying would change something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from orderkit_standins.argocd.compare import differs

OWNER = "argocd-controller"


def manifest(spec: Any, *, owned: Any = None, **metadata: Any) -> dict[str, Any]:
    """An object; `owned` are the fields of its spec that we applied."""
    found: dict[str, Any] = {"name": "a", **metadata}
    if owned is not None:
        entry = {"manager": OWNER, "operation": "Apply", "fieldsV1": {"f:spec": owned}}
        found["managedFields"] = [entry]
    return {"apiVersion": "g/v1", "kind": "A", "metadata": found, "spec": spec}


@dataclass(frozen=True)
class Case:
    reason: str
    target: Any
    live: Any
    owned: Any
    differs: bool


PORTS: dict[str, Any] = {'k:{"port":80,"protocol":"TCP"}': {"f:port": {}}}
CASES = [
    Case("equal", {"a": 1}, {"a": 1}, {"f:a": {}}, differs=False),
    Case("another value", {"a": 1}, {"a": 2}, {"f:a": {}}, differs=True),
    Case("a field that others added", {"a": 1}, {"a": 1, "b": 2}, {"f:a": {}}, differs=False),
    Case(
        "a field we no longer want",
        {"a": 1},
        {"a": 1, "b": 2},
        {"f:a": {}, "f:b": {}},
        differs=True,
    ),
    Case("true is not one", {"a": True}, {"a": 1}, None, differs=True),
    Case("one is one point zero", {"a": 1}, {"a": 1.0}, None, differs=False),
    Case("null is absent", {"a": None}, {}, None, differs=False),
    Case("null where something is", {"a": None}, {"a": 1}, None, differs=True),
    Case("a missing map", {"a": {"b": 1}}, {}, None, differs=True),
    Case("a list in another order", {"a": [1, 2]}, {"a": [2, 1]}, None, differs=True),
    Case("a longer list", {"a": [1]}, {"a": [1, 2]}, None, differs=True),
    Case(
        "defaults inside the items of a list",
        {"a": [{"b": 1}]},
        {"a": [{"b": 1, "c": 2}]},
        None,
        differs=False,
    ),
    Case(
        "a set to which others added",
        {"a": ["x"]},
        {"a": ["y", "x"]},
        {"f:a": {'v:"x"': {}}},
        differs=False,
    ),
    Case(
        "a set value we no longer want",
        {"a": ["x"]},
        {"a": ["y", "x"]},
        {"f:a": {'v:"x"': {}, 'v:"y"': {}}},
        differs=True,
    ),
    Case(
        "items by key, key defaulted, others' items",
        {"p": [{"port": 80}]},
        {"p": [{"port": 22}, {"port": 80, "protocol": "TCP"}]},
        {"f:p": PORTS},
        differs=False,
    ),
    Case(
        "an item we no longer want",
        {"p": []},
        {"p": [{"port": 80, "protocol": "TCP"}]},
        {"f:p": PORTS},
        differs=True,
    ),
    Case(
        "an item that changed",
        {"p": [{"port": 80, "name": "b"}]},
        {"p": [{"port": 80, "protocol": "TCP", "name": "a"}]},
        {"f:p": PORTS},
        differs=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_difference(case: Case) -> None:
    live = manifest(case.live, owned=case.owned)

    assert differs(manifest(case.target), live, owner=OWNER) is case.differs


def test_what_the_server_sets_and_status_do_not_count() -> None:
    target = manifest({}, finalizers=[], labels={}, creationTimestamp=None)
    target["status"] = {"from": "git"}

    assert not differs(target, manifest({}, uid="1", generation=3), owner=OWNER)


def test_fields_of_other_managers_are_not_ours() -> None:
    live = manifest({"a": 1})
    fields: dict[str, Any] = {"f:spec": {"f:a": {}}}
    live["metadata"]["managedFields"] = [
        {"manager": "kubectl", "operation": "Apply", "fieldsV1": fields},
        {"manager": OWNER, "operation": "Update", "fieldsV1": fields},
        {"manager": OWNER, "operation": "Apply", "subresource": "status", "fieldsV1": fields},
    ]

    assert not differs(manifest({}), live, owner=OWNER)
