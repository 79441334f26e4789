"""Selectors, JSONPath, ages and patches of the embedded cluster: table tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orderkit_standins.cluster.http.tables import JsonPathError, find, human_duration
from orderkit_standins.cluster.kinds import BUILT_IN
from orderkit_standins.cluster.patches import json_patch, merge_patch, strategic_merge
from orderkit_standins.cluster.refusals import BadRequest, PatchRefused
from orderkit_standins.cluster.selectors import field_selector, label_selector

OBJECT = {
    "metadata": {"name": "a", "annotations": {"x.dev/y": "z"}},
    "spec": {"ports": [{"n": 1}, {"n": 2}], "on": True},
    "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        pytest.param(".metadata.name", ["a"], id="a field"),
        pytest.param("{.metadata.name}", ["a"], id="in braces"),
        pytest.param("metadata.name", ["a"], id="without the first dot"),
        pytest.param(".status.conditions[?(@.type=='B')].status", ["True"], id="a filter"),
        pytest.param('.status.conditions[?(@.type=="B")].status', ["True"], id="double quotes"),
        pytest.param(".status.conditions[?(@.type!='B')].type", ["A"], id="a negative filter"),
        pytest.param(".spec.ports[?(@.n>1)].n", [2], id="a number"),
        pytest.param(".spec.ports[?(@.missing)].n", [], id="a filter by existence"),
        pytest.param(".spec.ports[0].n", [1], id="an index"),
        pytest.param(".spec.ports[-1].n", [2], id="from the end"),
        pytest.param(".spec.ports[9].n", [], id="past the end"),
        pytest.param(".spec.ports[*].n", [1, 2], id="every item"),
        pytest.param(r".metadata.annotations.x\.dev/y", ["z"], id="an escaped dot"),
        pytest.param(".metadata.annotations['x.dev/y']", ["z"], id="a quoted name"),
        pytest.param(".spec.nothing.here", [], id="nothing there"),
    ],
)
def test_jsonpath(path: str, wanted: list[Any]) -> None:
    assert find(path, OBJECT) == wanted


@pytest.mark.parametrize("path", ["..name", ".a[1:2]", ".a[", ".a[?(@.b==c d)]"])
def test_jsonpath_refuses_what_it_does_not_know(path: str) -> None:
    with pytest.raises(JsonPathError):
        find(path, OBJECT)


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (11160, "3h6m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)
def test_ages_are_written_as_kubectl_does(seconds: int, wanted: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == wanted


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("a=1", True),
        ("a==1,b=2", True),
        ("a!=1", False),
        ("missing!=1", True),
        ("a in (1, 2)", True),
        ("a notin (1,2)", False),
        ("missing notin (1)", True),
        ("a", True),
        ("!a", False),
        ("!missing,b in (2)", True),
        ("x.dev/y=z", True),
        ("empty=", True),
    ],
)
def test_label_selectors(selector: str, matches: bool) -> None:  # noqa: FBT001 - a column of the table
    test = label_selector(selector)
    assert test is not None
    assert test({"a": "1", "b": "2", "x.dev/y": "z", "empty": ""}) is matches


def test_empty_selectors_select_everything() -> None:
    assert label_selector("") is None
    assert field_selector("") is None


@pytest.mark.parametrize("text", ["a b", "a in 1", "a=b=c", "=a", "a in (1", "a>1"])
def test_what_is_no_label_selector_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        label_selector(text)


def test_field_selectors_know_few_fields() -> None:
    by_name = field_selector("metadata.name=a,metadata.namespace!=x")
    assert by_name is not None
    assert by_name(OBJECT)
    with pytest.raises(BadRequest, match="field label not supported"):
        field_selector("spec.on=true")
    assert field_selector("involvedObject.name=a", events=True) is not None


@pytest.mark.parametrize(
    ("target", "patch", "wanted"),
    [
        pytest.param({"a": 1}, {"a": None, "b": {"c": None}}, {"b": {}}, id="nulls remove"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="maps merge"),
        pytest.param({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="a map replaces a scalar"),
    ],
)
def test_merge_patch(target: Any, patch: Any, wanted: Any) -> None:
    assert merge_patch(target, patch) == wanted


@pytest.mark.parametrize(
    ("operations", "wanted"),
    [
        ([{"op": "add", "path": "/l/1", "value": 9}], {"l": [1, 9, 2], "m": {"a/b": 1}}),
        ([{"op": "add", "path": "/l/-", "value": 9}], {"l": [1, 2, 9], "m": {"a/b": 1}}),
        ([{"op": "remove", "path": "/m/a~1b"}], {"l": [1, 2], "m": {}}),
        ([{"op": "replace", "path": "/l/0", "value": 7}], {"l": [7, 2], "m": {"a/b": 1}}),
        ([{"op": "move", "from": "/l/0", "path": "/x"}], {"l": [2], "m": {"a/b": 1}, "x": 1}),
        ([{"op": "copy", "from": "/m", "path": "/l"}], {"l": {"a/b": 1}, "m": {"a/b": 1}}),
        ([{"op": "test", "path": "/l/0", "value": 1}], {"l": [1, 2], "m": {"a/b": 1}}),
    ],
)
def test_json_patch(operations: Any, wanted: Any) -> None:
    target = {"l": [1, 2], "m": {"a/b": 1}}
    assert json_patch(target, operations) == wanted
    assert target == {"l": [1, 2], "m": {"a/b": 1}}, "the argument is left alone"


@pytest.mark.parametrize(
    "operations",
    [
        {},
        [{"op": "remove", "path": "/nope"}],
        [{"op": "replace", "path": "/l/5", "value": 1}],
        [{"op": "test", "path": "/l/0", "value": 2}],
        [{"op": "add", "path": "l", "value": 2}],
        [{"op": "add", "path": "/l/01", "value": 2}],
        [{"op": "fly", "path": "/l"}],
        [{"path": "/l"}],
        ["remove"],
    ],
)
def test_a_bad_json_patch_is_refused(operations: Any) -> None:
    with pytest.raises((BadRequest, PatchRefused)):
        json_patch({"l": [1, 2]}, operations)


ACCOUNT = next(served for served in BUILT_IN if served.plural == "serviceaccounts").typed


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        pytest.param([{"name": "b"}], ["a", "b"], id="adds by key"),
        pytest.param([{"name": "a", "$patch": "delete"}], [], id="deletes by key"),
        pytest.param([{"$patch": "replace"}, {"name": "z"}], ["z"], id="replaces the list"),
    ],
)
def test_strategic_merge_knows_list_keys(patch: Any, wanted: list[str]) -> None:
    merged = strategic_merge({"secrets": [{"name": "a"}]}, {"secrets": patch}, ACCOUNT)
    assert [item["name"] for item in merged["secrets"]] == wanted


def test_strategic_merge_adds_and_removes_set_items() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic_merge(target, {"metadata": {"finalizers": ["c"]}}, ACCOUNT)
    assert added["metadata"]["finalizers"] == ["a", "b", "c"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge(target, patch, ACCOUNT)["metadata"]["finalizers"] == ["b"]
