"""The CRD that Crossplane makes of an XRD: what it keeps, adds and drops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ground.objects.kube_objects import Kind, Manifest, dig
from kubeschema.xrd import (
    BrokenXrdError,
    claim_crd_for,
    claim_kind,
    connection_secret_keys,
    crd_for,
    cuts,
    machinery_path,
    problems,
    schema_steps,
    scope_of,
    xr_kind,
)


def xrd(schema: dict[str, Any] | None = None, *, api: str = "v2", **spec: Any) -> Manifest:
    author = {"type": "object"} if schema is None else schema
    version = {
        "name": "v1",
        "served": True,
        "referenceable": True,
        "schema": {"openAPIV3Schema": author},
    }
    return {
        "apiVersion": f"apiextensions.crossplane.io/{api}",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "apps.lab.example.org", "uid": "u-1", "labels": {"a": "1"}},
        "spec": {
            "group": "lab.example.org",
            "names": {"kind": "App", "plural": "apps"},
            "scope": "Cluster",
            "versions": [version],
            **spec,
        },
    }


def schema_of(definition: Manifest) -> dict[str, Any]:
    found = crd_for(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert isinstance(found, dict)
    return found


def test_the_xrd_controls_its_crd_and_both_have_one_name() -> None:
    crd = crd_for(xrd())

    assert crd["metadata"]["name"] == "apps.lab.example.org"
    assert crd["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "CompositeResourceDefinition",
            "name": "apps.lab.example.org",
            "uid": "u-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_every_xr_is_in_the_category_composite_and_has_a_status_subresource() -> None:
    spec = crd_for(xrd(names={"kind": "App", "plural": "apps", "categories": ["lab"]}))["spec"]

    assert spec["names"]["categories"] == ["lab", "composite"]
    assert spec["versions"][0]["subresources"] == {"status": {}}
    assert spec["versions"][0]["storage"] is True


def test_printer_columns_of_crossplane_follow_those_of_the_author() -> None:
    definition = xrd()
    own = {"name": "TEAM", "type": "string", "jsonPath": ".spec.team"}
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = [own]

    columns = crd_for(definition)["spec"]["versions"][0]["additionalPrinterColumns"]

    names = [column["name"] for column in columns]
    assert names == ["TEAM", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"]
    assert columns[3]["jsonPath"] == ".spec.crossplane.compositionRef.name"
    assert columns[4]["priority"] == 1


def test_labels_are_inherited_and_spec_metadata_goes_on_top() -> None:
    extra = {"labels": {"a": "2", "b": "3"}, "annotations": {"c": "4"}}

    meta = crd_for(xrd(metadata=extra))["metadata"]

    assert meta["labels"] == {"a": "2", "b": "3"}
    assert meta["annotations"] == {"c": "4"}


@dataclass(frozen=True)
class Kept:
    reason: str
    schema: dict[str, Any]
    path: tuple[str, ...]
    value: object


RULE = [{"rule": "true"}]
KEPT = [
    Kept("description of the top", {"description": "d"}, ("description",), "d"),
    Kept(
        "rules of the top", {"x-kubernetes-validations": RULE}, ("x-kubernetes-validations",), RULE
    ),
    Kept("nothing else of the top", {"default": {}}, ("default",), None),
    Kept("spec is always required", {"required": ["status"]}, ("required",), ["spec"]),
    Kept(
        "a top level property of the author is dropped",
        {"properties": {"extra": {"type": "string"}}},
        ("properties", "extra"),
        None,
    ),
    Kept(
        "a shorter name",
        {"properties": {"metadata": {"properties": {"name": {"maxLength": 20}}}}},
        ("properties", "metadata", "properties", "name", "maxLength"),
        20,
    ),
    Kept(
        "a longer name is cut to a label's length",
        {"properties": {"metadata": {"properties": {"name": {"maxLength": 200}}}}},
        ("properties", "metadata", "properties", "name", "maxLength"),
        63,
    ),
    *[
        Kept(
            f"spec.{key} is kept",
            {"properties": {"spec": {key: value}}},
            ("properties", "spec", key),
            value,
        )
        for key, value in {
            "required": ["a"],
            "description": "d",
            "oneOf": [{"required": ["a"]}],
            "x-kubernetes-validations": RULE,
            "x-kubernetes-preserve-unknown-fields": True,
        }.items()
    ],
    *[
        Kept(
            f"spec.{key} is dropped",
            {"properties": {"spec": {key: value}}},
            ("properties", "spec", key),
            None,
        )
        for key, value in {
            "default": {},
            "anyOf": [{}],
            "allOf": [{}],
            "not": {},
            "minProperties": 1,
            "additionalProperties": {"type": "string"},
        }.items()
    ],
    Kept(
        "status keeps no unknown fields",
        {"properties": {"status": {"x-kubernetes-preserve-unknown-fields": True}}},
        ("properties", "status", "x-kubernetes-preserve-unknown-fields"),
        None,
    ),
    Kept(
        "deeper levels are copied as they are",
        {"properties": {"spec": {"properties": {"a": {"type": "object", "default": {}}}}}},
        ("properties", "spec", "properties", "a"),
        {"type": "object", "default": {}},
    ),
    Kept(
        "Crossplane's own fields win over the author's",
        {"properties": {"spec": {"properties": {"crossplane": {"type": "string"}}}}},
        ("properties", "spec", "properties", "crossplane", "type"),
        "object",
    ),
]


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.reason)
def test_three_levels_of_the_schema_are_kept_in_part(case: Kept) -> None:
    assert dig(schema_of(xrd(case.schema)), *case.path) == case.value


def test_machinery_lives_under_spec_crossplane_and_references_may_have_a_namespace() -> None:
    fields = dig(schema_of(xrd()), "properties", "spec", "properties", "crossplane", "properties")

    assert sorted(fields) == [
        "compositionRef",
        "compositionRevisionRef",
        "compositionRevisionSelector",
        "compositionSelector",
        "compositionUpdatePolicy",
        "resourceRefs",
    ]
    assert "namespace" in fields["resourceRefs"]["items"]["properties"]
    assert fields["resourceRefs"]["x-kubernetes-list-type"] == "atomic"
    assert fields["compositionUpdatePolicy"]["default"] == "Automatic"


def test_references_of_a_namespaced_xr_have_no_namespace() -> None:
    definition = xrd(scope="Namespaced", defaultCompositionUpdatePolicy="Manual")

    fields = dig(
        schema_of(definition), "properties", "spec", "properties", "crossplane", "properties"
    )

    assert crd_for(definition)["spec"]["scope"] == "Namespaced"
    assert "namespace" not in fields["resourceRefs"]["items"]["properties"]
    assert fields["compositionUpdatePolicy"]["default"] == "Manual"


def test_a_legacy_xr_has_its_machinery_directly_in_spec() -> None:
    definition = xrd(scope="LegacyCluster", api="v1")

    properties = schema_of(definition)["properties"]

    assert crd_for(definition)["spec"]["scope"] == "Cluster"
    assert "writeConnectionSecretToRef" in properties["spec"]["properties"]
    assert "connectionDetails" in properties["status"]["properties"]
    assert machinery_path(definition) == ("spec",)


@pytest.mark.parametrize(
    ("api", "scope"), [("v1", "LegacyCluster"), ("v2", "Namespaced")], ids=["v1", "v2"]
)
def test_each_api_version_has_its_own_default_scope(api: str, scope: str) -> None:
    definition = xrd(api=api)
    del definition["spec"]["scope"]

    assert scope_of(definition) == scope


def test_the_xr_has_the_kind_of_the_referenceable_version() -> None:
    definition = xrd()
    old = {**definition["spec"]["versions"][0], "name": "v1alpha1", "referenceable": False}
    definition["spec"]["versions"].insert(0, old)

    assert xr_kind(definition) == Kind("lab.example.org", "v1", "App")


def test_an_xrd_is_not_changed_by_rendering_it() -> None:
    definition, untouched = xrd(), xrd()

    crd_for(definition)

    assert definition == untouched


@dataclass(frozen=True)
class Broken:
    reason: str
    definition: Manifest
    problem: str


def _twice() -> Manifest:
    definition = xrd()
    again = {**definition["spec"]["versions"][0], "name": "v2"}
    definition["spec"]["versions"].append(again)
    return definition


def _none() -> Manifest:
    definition = xrd()
    definition["spec"]["versions"][0]["referenceable"] = False
    return definition


BROKEN = [
    Broken(
        "name is not plural.group",
        {**xrd(), "metadata": {"name": "foo.lab.example.org"}},
        'metadata.name: Invalid value: "foo.lab.example.org": '
        'must be spec.names.plural+"."+spec.group',
    ),
    Broken("no referenceable version", _none(), "must have exactly one version marked as storage"),
    Broken(
        "two referenceable versions", _twice(), "must have exactly one version marked as storage"
    ),
    Broken(
        "schema is not structural",
        xrd({"properties": {"spec": {"properties": {"a": {"description": "no type"}}}}}),
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].type: "
        "Required value: must not be empty for specified object fields",
    ),
    Broken(
        "pattern is not RE2 syntax",
        xrd({"properties": {"spec": {"properties": {"a": {"type": "string", "pattern": "("}}}}}),
        "properties[spec].properties[a].pattern: Invalid value",
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.reason)
def test_problems_are_told_in_the_words_of_the_api_server(case: Broken) -> None:
    assert any(case.problem in problem for problem in problems(case.definition))


def test_a_sound_xrd_has_no_problems() -> None:
    assert problems(xrd()) == ()


def test_a_version_without_a_schema_cannot_be_rendered() -> None:
    definition = xrd()
    del definition["spec"]["versions"][0]["schema"]

    with pytest.raises(BrokenXrdError, match="custom resource validation cannot be nil"):
        crd_for(definition)
    assert problems(definition)


@dataclass(frozen=True)
class Cutting:
    reason: str
    author: dict[str, Any]
    path: str
    """Below the version's schema, steps joined by blanks."""
    told: str
    hint: str
    matters: bool = True


def in_spec(field: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"spec": {"properties": {"a": field}}}}


CUTS = [
    Cutting(
        "only spec is ever required",
        {"required": ["spec", "status"]},
        "required",
        "Crossplane drops required at the top of a schema",
        "require fields inside spec",
    ),
    Cutting("a title is a remark", {"title": "t"}, "title", "drops title", "", matters=False),
    Cutting(
        "only spec and status reach the CRD",
        {"properties": {"data": {"type": "object"}}},
        "properties data",
        'drops the field "data"',
        "move data into spec",
    ),
    Cutting(
        "a default of spec is lost",
        {"properties": {"spec": {"default": {"a": 1}}}},
        "properties spec default",
        "drops default of spec",
        "write the defaults at the fields inside",
    ),
    Cutting(
        "a status keeps no unknown fields",
        {"properties": {"status": {"x-kubernetes-preserve-unknown-fields": True}}},
        "properties status x-kubernetes-preserve-unknown-fields",
        "drops x-kubernetes-preserve-unknown-fields of status",
        "declare an object inside status",
    ),
    Cutting(
        "a pattern of the name is lost",
        {"properties": {"metadata": {"properties": {"name": {"pattern": "^a"}}}}},
        "properties metadata properties name pattern",
        "drops pattern of metadata.name",
        "self.metadata.name.matches",
    ),
    Cutting(
        "a name is no longer than a label",
        {"properties": {"metadata": {"properties": {"name": {"maxLength": 70}}}}},
        "properties metadata properties name maxLength",
        "cuts maxLength 70 to 63",
        "write 63 or less",
    ),
    Cutting(
        "Crossplane's own field wins",
        {"properties": {"spec": {"properties": {"crossplane": {"type": "string"}}}}},
        "properties spec properties crossplane",
        "replaces spec.crossplane with its own",
        "another name",
    ),
    Cutting(
        "a keyword that Kubernetes lacks is lost at any depth",
        in_spec({"type": "string", "const": "x"}),
        "properties spec properties a const",
        "no such keyword",
        "write enum with one value",
    ),
    Cutting(
        "another tool's hint is a remark",
        in_spec({"type": "string", "x-ui-widget": "textarea"}),
        "properties spec properties a x-ui-widget",
        "no such keyword",
        "tools that read the XRD do",
        matters=False,
    ),
    Cutting(
        "a keyword in another case is read all the same",
        in_spec({"type": "string", "maxlength": 5}),
        "properties spec properties a maxlength",
        "reads maxlength as maxLength",
        "write maxLength",
    ),
]


@pytest.mark.parametrize("case", CUTS, ids=lambda case: case.reason)
def test_what_vanishes_in_silence_is_told_with_a_way_out(case: Cutting) -> None:
    (cut,) = cuts(xrd({"type": "object", **case.author}))

    assert cut.steps == (*schema_steps(0), *case.path.split())
    assert case.told in cut.message
    assert case.hint in cut.hint
    assert cut.matters is case.matters


def test_a_name_may_be_as_long_as_a_label() -> None:
    name = {"metadata": {"properties": {"name": {"maxLength": 63}}}}

    assert not cuts(xrd({"type": "object", "properties": name}))


def test_what_stands_below_a_cut_is_not_told_again() -> None:
    lost = {"data": {"type": "object", "properties": {"a": {"const": 1}}}}

    assert len(cuts(xrd({"type": "object", "properties": lost}))) == 1


def test_a_legacy_xrd_offers_claims_of_another_kind() -> None:
    names = {"kind": "AppClaim", "plural": "appclaims"}
    definition = xrd(
        api="v1", scope="LegacyCluster", claimNames=names, connectionSecretKeys=["host"]
    )

    claim = claim_crd_for(definition)

    assert claim_kind(definition) == Kind("lab.example.org", "v1", "AppClaim")
    assert connection_secret_keys(definition) == ("host",)
    assert claim is not None
    assert claim["metadata"]["name"] == "appclaims.lab.example.org"
    assert claim["spec"]["scope"] == "Namespaced"
    assert claim["spec"]["names"]["categories"] == ["claim"]


def test_a_modern_xrd_offers_no_claims() -> None:
    assert claim_kind(xrd()) is None
    assert claim_crd_for(xrd()) is None


def test_a_rule_that_does_not_compile_is_a_problem_with_its_place() -> None:
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size > 1"}, {"rule": "self.sise > 1"}],
    }

    (problem,) = problems(xrd({"type": "object", "properties": {"spec": spec}}))

    path = "spec.versions[0].schema.openAPIV3Schema.properties[spec]"
    assert problem.startswith(f"{path}.x-kubernetes-validations[1].rule: Invalid value")
    assert "undefined field 'sise'" in problem


def test_a_default_that_its_own_rule_refuses_is_a_problem() -> None:
    size = {"type": "integer", "default": 0, "x-kubernetes-validations": [{"rule": "self > 0"}]}
    spec = {"type": "object", "properties": {"size": size}}

    (problem,) = problems(xrd({"type": "object", "properties": {"spec": spec}}))

    assert problem.endswith("[size].default: Invalid value: 0: failed rule: self > 0")
