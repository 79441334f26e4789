"""A kit from a few words: its fields, its XRD, and answers for its first scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ground.errors import OrderkitError
from ground.objects.kube_objects import plural_of
from kubeschema.validate import Validator
from kubeschema.xrd import problems
from orderkit.core.kit.pack import kit_of
from orderkit_workshop.generate.kit_draft import (
    Draft,
    FieldDraft,
    default_kind,
    form_values,
    parse_field,
    xrd_of,
)


@dataclass(frozen=True)
class Written:
    reason: str
    text: str
    field: FieldDraft


WRITTEN = [
    Written("a name alone is a text", "owner", FieldDraft("owner")),
    Written("a type", "sizeGb:integer", FieldDraft("sizeGb", "integer")),
    Written(
        "an enum and a default of its type",
        "nodes:integer:enum=1|3:default=3",
        FieldDraft("nodes", "integer", (1, 3), 3),
    ),
    Written("a default with colons", "at:string:default=10:30", FieldDraft("at", default="10:30")),
    Written("an empty default", "note:string:default=", FieldDraft("note", default="")),
    Written("optional", "note:string:optional", FieldDraft("note", optional=True)),
    Written(
        "a default that is false",
        "public:boolean:default=false",
        FieldDraft("public", "boolean", default=False),
    ),
]


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.reason)
def test_a_field_is_read(case: Written) -> None:
    assert parse_field(case.text) == case.field


@dataclass(frozen=True)
class Refused:
    reason: str
    text: str
    says: str


REFUSED = [
    Refused("no name", ":string", "is not a field name"),
    Refused("a name with a dash", "size-gb", "is not a field name"),
    Refused("a type that there is not", "size:text", "is none of string, integer"),
    Refused("an option that there is not", "size:string:max=3", "is none of string"),
    Refused("a default of another type", "size:integer:default=big", "is not an integer"),
    Refused("true is not a number", "size:number:default=true", "is not a number"),
    Refused("a fraction is not an integer", "size:integer:default=1.5", "is not an integer"),
    Refused("a default of no choice", "s:string:enum=a|b:default=c", "is not a value of its enum"),
    Refused("an enum with a value twice", "s:string:enum=a|a", "has a value twice"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_what_is_no_field_is_refused(case: Refused) -> None:
    with pytest.raises(OrderkitError, match="--field") as caught:
        parse_field(case.text)
    assert f" {case.says}" in f" {caught.value}"


@dataclass(frozen=True)
class Broken:
    reason: str
    changes: dict[str, Any]
    says: str


BROKEN = [
    Broken("a name with capitals", {"name": "Bucket"}, "'Bucket'"),
    Broken("a kind with a dash", {"kind": "My-Bucket"}, "is not a kind"),
    Broken("a group without a dot", {"group": "example"}, "is not an API group"),
    Broken("a field twice", {"fields": (FieldDraft("a"), FieldDraft("a"))}, "given twice"),
    Broken("Crossplane's field", {"fields": (FieldDraft("crossplane"),)}, "Crossplane's own"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.reason)
def test_a_draft_that_cannot_be_is_refused(case: Broken) -> None:
    with pytest.raises(OrderkitError) as caught:
        xrd_of(Draft(**{"name": "bucket", "group": "demo.example.org", **case.changes}))
    assert f" {case.says}" in f" {caught.value}"


@pytest.mark.parametrize("namespaced", [False, True])
def test_an_xrd_is_one_that_a_server_takes_and_its_example_fits(namespaced: bool) -> None:  # noqa: FBT001 - a case
    fields = tuple(parse_field(case.text) for case in WRITTEN[1:-1] if "note" not in case.text)
    xrd = xrd_of(
        Draft(name="stage-kit", group="demo.example.org", namespaced=namespaced, fields=fields)
    )
    spec = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    values = form_values(kit_of("stage-kit", {"teamFrom": "team"}, xrd))

    assert problems(xrd) == ()
    assert xrd["metadata"]["name"] == "xstagekits.demo.example.org"
    assert spec["required"] == ["team", "sizeGb"]
    assert values == {"name": "first", "team": "ae86", "sizeGb": 1}
    xr = {
        "apiVersion": "demo.example.org/v1alpha1",
        "kind": "XStageKit",
        "metadata": {"name": "a", **({"namespace": "b"} if namespaced else {})},
        "spec": {key: values[key] for key in spec["required"]},
    }
    assert Validator(xrd).check(xr).findings == ()


def test_fields_named_name_and_team_name_the_order_and_who_orders() -> None:
    draft = Draft(
        name="bucket",
        group="demo.example.org",
        fields=(FieldDraft("name"), FieldDraft("teamName")),
    )
    xrd = xrd_of(draft)
    spec = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    naming = {"nameFrom": "name", "teamFrom": "teamName"}

    assert list(spec["properties"]) == ["name", "teamName"]
    assert spec["properties"]["name"]["maxLength"] == 63 - len("bucket-")
    assert form_values(kit_of("bucket", naming, xrd)) == {"name": "first", "teamName": "ae86"}


def test_no_example_is_given_where_none_can_be_guessed() -> None:
    xrd = xrd_of(Draft(name="bucket", group="demo.example.org", fields=(FieldDraft("id"),)))
    spec = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["id"]["pattern"] = "^zz([0-9]{9}|[a-f]{9})q$"

    assert form_values(kit_of("bucket", {}, xrd)) is None


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("XBucket", "xbuckets"), ("Policy", "policies"), ("XKey", "xkeys"), ("XProxy", "xproxies")],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_a_kind_follows_from_the_name() -> None:
    assert default_kind("agent-budget") == "XAgentBudget"
