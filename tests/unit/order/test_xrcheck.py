"""An order's files against its kit: the same judgement as ``orderkit validate``, as one error."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.names import OrderId
from ground.shapes import changed
from orderkit.core.kit.pack import Kit
from orderkit.core.order.order_check import check_order_files

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["teamName"],
    "properties": {
        "teamName": {"type": "string", "pattern": "^[a-z]+$"},
        "size": {"type": "integer", "default": 1},
    },
    "x-kubernetes-validations": [
        {"rule": "self.size < 5 || self.teamName == 'big'", "message": "too much for this team"}
    ],
}
XRD: dict[str, Any] = {
    "apiVersion": "apiextensions.crossplane.io/v2",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": "xdisks.example.org"},
    "spec": {
        "scope": "Cluster",
        "group": "example.org",
        "names": {"kind": "XDisk", "plural": "xdisks"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "referenceable": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}
KIT = Kit(
    name="disk",
    xrd=XRD,
    named_from=("teamName",),
    team_from="teamName",
    aliases={"teamName": "team_name"},
)


def check(name: str = "disk-a", **spec: Any) -> dict[str, Any]:
    manifest = {
        "apiVersion": "example.org/v1",
        "kind": "XDisk",
        "metadata": {"name": name},
        "spec": spec,
    }
    files = {PurePosixPath("manifests/xdisk.yaml"): yaml.safe_dump(manifest).encode()}
    return check_order_files(KIT, OrderId("disk-a"), files)


def test_a_good_xr_is_returned_as_it_was_written() -> None:
    assert check(teamName="a")["spec"] == {"teamName": "a"}


@pytest.mark.parametrize(
    ("spec", "field", "told"),
    [
        ({"teamName": "A"}, "team_name", "should match"),
        ({"teamName": "a", "sise": 3}, "spec.sise", "unknown field"),
        ({"teamName": "a", "size": "x"}, "spec.size", "must be of type integer"),
        ({}, "team_name", "Required value"),
        ({"teamName": "a", "size": 7}, "spec.size", "too much for this team"),
    ],
)
def test_the_first_finding_names_the_form_field_and_the_servers_sentence(
    spec: dict[str, Any], field: str, told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told) as caught:
        check(**spec)

    assert caught.value.field == field


def test_a_misspelt_field_has_a_way_out() -> None:
    with pytest.raises(InvalidInputError) as caught:
        check(teamName="a", sise=3)

    assert caught.value.hint == "did you mean 'size'?"


def test_another_name_than_the_orders_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="is not the order's id"):
        check("disk-b", teamName="a")


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
def test_a_line_break_of_some_readers_only_is_refused(character: str) -> None:
    text = f'apiVersion: example.org/v1\nkind: XDisk\nspec: {{teamName: "a{character}b"}}\n'
    files = {PurePosixPath("manifests/xdisk.yaml"): text.encode()}

    with pytest.raises(InvalidInputError, match="line break for some YAML readers"):
        check_order_files(KIT, OrderId("disk-a"), files)


def test_an_xr_may_have_the_name_that_a_field_gives() -> None:
    kit = changed(KIT, xr_name="teamName")
    manifest = (
        "apiVersion: example.org/v1\nkind: XDisk\nmetadata: {name: NAME}\nspec: {teamName: abc}\n"
    )

    def check_named(name: str) -> Any:
        files = {PurePosixPath("manifests/x.yaml"): manifest.replace("NAME", name).encode()}
        return check_order_files(kit, OrderId("disk-a"), files)

    assert check_named("abc")["metadata"]["name"] == "abc"
    with pytest.raises(InvalidInputError, match="is not teamName 'abc'"):
        check_named("disk-a")
