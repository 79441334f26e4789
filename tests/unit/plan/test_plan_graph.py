"""The graph of an order before and after a change: what stands in it, and how it is drawn."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.objects.kube_objects import Manifest
from orderkit.core.order.change import FieldDifference
from orderkit.core.plan import Action, Assembly, Plan, ResourceChange, compare
from orderkit.core.plan.assembly import namespace_edges, references
from orderkit.core.plan.graph import ROOT, Graph, GraphNode, NodeState, graph_of, to_mermaid
from orderkit.core.plan.graph_svg import laid_out, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def thing(kind: str, name: str, home: str = "", **parts: Any) -> Manifest:
    meta = {"name": name, **({"namespace": home} if home else {})}
    return {"apiVersion": "example.org/v1", "kind": kind, "metadata": meta, **parts}


def order(size: int) -> Manifest:
    return thing("XShop", "one", spec={"size": size})


def room(name: str = "shop") -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def a_plan(before: dict[str, Manifest], after: dict[str, Manifest], size: int = 1) -> Plan:
    old = Assembly(order(1), before, before)
    return compare(old, Assembly(order(size), after, after, ready=True))


SHOP = {
    "room": room(),
    "till": thing("ConfigMap", "till", "shop", data={"open": "yes"}),
    "desk": thing(
        "Deployment", "desk", "shop", spec={"volumes": [{"configMap": {"name": "till"}}]}
    ),
}


def test_each_resource_stands_in_it_once_with_what_happens_to_it() -> None:
    after = {**SHOP, "till": thing("ConfigMap", "till", "shop", data={"open": "no"})}
    after["cat"] = thing("Cat", "cat", "shop")
    del after["desk"]

    found = graph_of(a_plan(SHOP, after, size=2))

    assert {path: node.state for path, node in found.nodes.items()} == {
        ROOT: NodeState.CHANGED,
        "room": NodeState.UNCHANGED,
        "till": NodeState.CHANGED,
        "desk": NodeState.REMOVED,
        "cat": NodeState.ADDED,
    }
    assert [str(each) for each in found.nodes["till"].fields] == ["data.open yes → no"]
    assert found.references == (("desk", "till"),)


def test_what_waits_for_others_stands_after_them() -> None:
    found = graph_of(a_plan(SHOP, SHOP))

    ranks = {path: node.rank for path, node in found.nodes.items() if path}
    assert ranks == {"room": 0, "till": 1, "desk": 2}
    assert found.children == {ROOT: ("room", "till", "desk")}


def test_those_that_name_each_other_are_ranked_too() -> None:
    both = {
        "a": thing("Cat", "a", spec={"dogRef": {"name": "b"}}),
        "b": thing("Dog", "b", spec={"catRef": {"name": "a"}}),
    }

    found = graph_of(a_plan(both, both))

    assert found.references == (("a", "b"), ("b", "a"))
    assert (found.nodes["a"].rank, found.nodes["b"].rank) == (0, 1)


def test_a_nested_xr_is_a_group_of_what_it_composes() -> None:
    parts = {"part": thing("XPart", "p"), "part/bolt": thing("Bolt", "b")}

    found = graph_of(a_plan({}, parts))

    assert found.children == {ROOT: ("part",), "part": ("part/bolt",)}
    layout = laid_out(found)
    (group,) = layout.groups
    for path in parts:
        card = layout.cards[path].box
        assert group.x <= card.x
        assert card.x + card.width <= group.x + group.width
        assert group.y <= card.y
        assert card.y + card.height <= group.y + group.height


NAMED = [
    ("a mounted ConfigMap", {"volumes": [{"configMap": {"name": "x"}}]}, "ConfigMap", True),
    ("a key of a Secret", {"valueFrom": {"secretKeyRef": {"name": "x"}}}, "Secret", True),
    ("a mounted Secret", {"secret": {"secretName": "x"}}, "Secret", True),
    ("who it runs as", {"serviceAccountName": "x"}, "ServiceAccount", True),
    ("a claim", {"persistentVolumeClaim": {"claimName": "x"}}, "PersistentVolumeClaim", True),
    ("a cloud's reference", {"serviceAccountIdRef": {"name": "x"}}, "ServiceAccount", True),
    ("kind and name", {"scaleTargetRef": {"kind": "Deployment", "name": "x"}}, "Deployment", True),
    ("another kind of that name", {"configMapRef": {"name": "x"}}, "Secret", False),
    ("a name and nothing else", {"title": "x", "name": "x"}, "ConfigMap", False),
    ("in another namespace", {"configMapRef": {"name": "x", "namespace": "b"}}, "ConfigMap", False),
]


@pytest.mark.parametrize(("reason", "spec", "kind", "holds"), NAMED, ids=[c[0] for c in NAMED])
def test_what_names_another_is_read_from_the_fields_words(
    reason: str,
    spec: dict[str, Any],
    kind: str,
    holds: bool,  # noqa: FBT001 - a table's column
) -> None:
    parts = {"one": thing("User", "u", "a", spec=spec), "other": thing(kind, "x", "a")}

    assert (references(parts) == {("one", "other")}) is holds, reason


def test_what_a_wrapper_makes_is_named_and_lives_somewhere() -> None:
    inner = thing("ConfigMap", "x", "shop")
    parts = {
        "wrapped": thing("Object", "o", spec={"forProvider": {"manifest": inner}}),
        "user": thing("User", "u", "shop", spec={"configMapRef": {"name": "x"}}),
        "room": room(),
    }

    assert references(parts) == {("user", "wrapped")}
    assert namespace_edges(parts) == {("wrapped", "room"), ("user", "room")}


def test_the_picture_tells_every_resource_and_needs_nothing_else() -> None:
    after = {**SHOP, "till": thing("ConfigMap", "till", "shop", data={"open": "<no> & \uffff"})}
    text = to_svg(graph_of(a_plan(SHOP, after)))

    root = ET.fromstring(text)  # noqa: S314 - our own text
    said = " ".join("".join(each.itertext()) for each in root.iter(f"{SVG}text"))
    assert "Deployment" in said
    assert "data.open yes → <no> &" in said.replace('"', "")
    assert not re.search(r"(href|src|url\(|@import)", text)
    assert "prefers-color-scheme:dark" in text


@pytest.mark.parametrize("count", [0, 1, 11, 200])
def test_no_card_lies_on_another(count: int) -> None:
    parts = {f"p{n}": thing("Part", f"part-{n}") for n in range(count)}
    layout = laid_out(graph_of(a_plan({}, parts)))

    boxes = [card.box for card in layout.cards.values()]
    for number, one in enumerate(boxes):
        assert one.x + one.width <= layout.width + 0.1
        assert one.y + one.height <= layout.height + 0.1
        for other in boxes[:number]:
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_name_or_value_breaks_the_drawings(name: str, value: str) -> None:
    field = FieldDifference((name or "x",), value, f"{value}!")
    nodes = {
        ROOT: GraphNode(ROOT, "XShop", name, NodeState.CHANGED, (field,)),
        name or "p": GraphNode(name or "p", value or "K", name, NodeState.ADDED),
    }
    graph = Graph(name, value, nodes, (), {ROOT: (name or "p",)})

    ET.fromstring(to_svg(graph).encode())  # noqa: S314 - our own text
    for line in to_mermaid(graph).splitlines()[1:4]:
        label = re.fullmatch(r'  n\d+(?: --> n\d+|\["(.*)"\]:::\w+)', line)
        assert label, line
        assert not set(label[1] or "") & set('"`{}[]()|\\')


def test_mermaid_tells_groups_states_and_references() -> None:
    parts = {**SHOP, "part": thing("XPart", "p"), "part/bolt": thing("Bolt", "b")}
    text = to_mermaid(graph_of(a_plan(SHOP, parts)))

    assert text.startswith("flowchart LR\n")
    assert 'subgraph gn2["part"]' in text
    assert "XPart<br/>p<br/>added" in text
    assert "-.->" in text
    assert text.count("classDef") == len(NodeState)


def test_states_are_the_actions_and_one_more() -> None:
    assert {each.value for each in NodeState} == {each.value for each in Action} | {"unchanged"}
    assert all(NodeState(each.value).sign == each.sign for each in Action)
    assert ResourceChange("p", Action.ADDED, None, SHOP["till"]).manifest["kind"] == "ConfigMap"
