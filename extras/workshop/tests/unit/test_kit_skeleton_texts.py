"""Texts of a kit's skeleton and policies: keys, escapes, links, leases, and changes in words."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from kitforms import kit_files

from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.order_skeleton import member, plain, skeleton
from orderkit_workshop.generate.policy_parts import Variables, changes, shown
from softwaretemplates.render import SkeletonFile, compile_template, render_tree

HEAD = "apiVersion: orderkit.dev/v1alpha1\nkind: Kit\nmetadata: {name: thing}\nspec:\n"
SPEC: dict[str, Any] = {
    "required": ["teamName"],
    "properties": {
        "teamName": {"type": "string", "pattern": "^[a-z]+$"},
        "size": {"type": "integer"},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}


def kit(text: str = "  title: A thing\n") -> Kit:
    return checked_kit("thing", kit_files(SPEC, HEAD + text))


def rendered(name: str, text: str = "  title: A thing\n") -> dict[str, Any]:
    """Return a file of the skeleton, rendered for an order."""
    root = PurePosixPath("templates/thing/skeleton")
    files = {
        path.relative_to(root): SkeletonFile(data) for path, data in skeleton(kit(text)).items()
    }
    values = {
        "order": "thing-a", "team": "a", "requester": "user:default/eve", "pack_commit": "c" * 40,
        "spec": {"teamName": "a", "size": 3}, "yaml": {},
    }  # fmt: skip
    found: dict[str, Any] = yaml.safe_load(render_tree(files, values)[PurePosixPath(name)].data)
    return found


@pytest.mark.parametrize(
    "name", ["a", "_a1", "a-b", "1a", "a b", "none", "true", "None", "null", "nones", "a.b", "é"]
)
def test_a_member_is_read_whatever_its_name(name: str) -> None:
    source = "${{ " + member("values", name) + " }}"

    assert compile_template(source).render({"values": {name: "found"}}) == "found"


@pytest.mark.parametrize("text", ["plain", "a ${{ b }} c", "{% if %}", "{# x #}", "$ {{ %} #}"])
def test_a_text_is_printed_as_it_is(text: str) -> None:
    assert compile_template(plain(text)).render({}) == text


@pytest.mark.parametrize(
    ("lease", "written"),
    [
        ("", {}),
        ("  lease: {default: 3d}\n", {"duration": "3d"}),
        ("  lease: {default: 3d, maximum: 9d}\n", {"duration": "3d", "maximum": "9d"}),
        ("  lease: {maximum: 9d}\n", {"duration": "9d", "maximum": "9d"}),
    ],
)
def test_an_order_says_how_long_it_was_asked_for(lease: str, written: dict[str, str]) -> None:
    order = rendered(".orderkit/order.yaml", f"  title: A thing\n{lease}")

    assert order["spec"]["lease"] == written
    assert order["spec"]["team"] == "a"
    assert order["spec"]["ordered"] == {"teamName": "a", "size": 3}


CHANGE = "  changes:\n  - {name: resize, fields: [size], title: Resize it}\n"
ADDRESS = "__ORDERKIT_SERVICE_URL__/v1/orders/thing-a"


@pytest.mark.parametrize(
    ("text", "links"),
    [
        (CHANGE, ["/changes/resize/form", "/end/form"]),
        (f"{CHANGE}  lease: {{default: 3d}}\n",
         ["/changes/resize/form", "/changes/lease/form", "/end/form"]),
        (f"{CHANGE}  lease: {{default: 3d, extend: {{times: 0}}}}\n",
         ["/changes/resize/form", "/end/form"]),
    ],
)  # fmt: skip
def test_an_orders_page_links_to_its_forms(text: str, links: list[str]) -> None:
    page = rendered("catalog-info.yaml", f"  title: A thing\n  tags: [orderkit, x]\n{text}")

    assert [link["url"] for link in page["metadata"]["links"]] == [ADDRESS + end for end in links]
    assert page["metadata"]["links"][0]["title"] == "Resize it"
    assert page["metadata"]["links"][-1]["title"] == "End the A thing"
    assert page["metadata"]["description"] == "A thing of team a"
    assert page["metadata"]["tags"] == ["orderkit", "thing", "x"]
    assert page["spec"]["owner"] == "group:default/a"


def test_a_change_is_told_with_both_values() -> None:
    made = kit()

    words = changes(made, "size", Variables(made))

    assert (words[0], words[2]) == ("spec.size: changes from ", " to ")
    assert "spec_size_before" in str(words[1])
    assert "spec_size_before" not in str(words[3])
    assert changes(made, "tags", Variables(made)) == ("spec.tags: changes",)


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        ("size", "(v == null ? 'nothing' : string(v))"),
        ("teamName", "(v == null ? 'nothing' : '\"' + string(v) + '\"')"),
        ("port", "(v == null ? 'nothing' : string(v))"),
        ("tags", "(v == null ? 'nothing' : 'something else')"),
    ],
)
def test_a_value_is_written_by_its_type(path: str, begins: str) -> None:
    assert shown(kit(), path, "v").expression == begins
