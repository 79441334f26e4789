"""Names, owners and references of composed resources, held against vectors of Crossplane."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositions.composed import (
    MetadataError,
    child_name,
    composed_owner,
    preview_uid,
    references,
    root_labelled,
    with_metadata,
)
from ground.objects.kube_objects import Manifest

UID = "75e4a668-035f-4ce8-8c45-f4d3ac850155"

VECTORS = [
    ("cool-resource-", UID, "database", "cool-resource-38ce86992a27"),
    ("parent-", "uid-123", "database", "parent-5f968d238736"),
    ("parent-", UID, "storage", "parent-abcd22a110fe"),
    ("parent", UID, "storage", "parent-abcd22a110fe"),
    (
        "very-long-parent-name-" * 3,
        UID,
        "database",
        "very-long-parent-name-very-long-parent-name-very-l-38ce86992a27",
    ),
    ("", UID, "database", "38ce86992a27"),
]


@pytest.mark.parametrize(("prefix", "uid", "logical", "name"), VECTORS)
def test_generated_names_are_crossplanes(prefix: str, uid: str, logical: str, name: str) -> None:
    assert child_name(prefix, uid, logical) == name


@given(st.text("ab-", max_size=80), st.text(max_size=10))
def test_a_generated_name_fits_a_label_and_keeps_its_hash(prefix: str, logical: str) -> None:
    name = child_name(prefix, UID, logical)

    assert len(name) <= 63
    assert name.endswith(child_name("", UID, logical))


def test_an_xr_without_uid_gets_the_one_that_render_gives_it() -> None:
    bucket = {
        "apiVersion": "example.org/v1alpha1",
        "kind": "XBucket",
        "metadata": {"name": "my-bucket"},
    }

    assert preview_uid(bucket) == "f70ef0ce-2b73-5b7b-a497-0ba62f7c6f04"


def xr(**meta: Any) -> Manifest:
    name = {"name": "demo", "uid": UID}
    made = {
        "apiVersion": "lab.example.org/v1",
        "kind": "App",
        "metadata": {**name, **meta},
    }
    return root_labelled(made)


def config_map(**meta: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}


def dressed(resource: Manifest, owner: Manifest, observed: Manifest | None = None) -> Manifest:
    return with_metadata("cm", resource, owner, observed=observed, scope_of=lambda _: True)[0]


def test_a_composed_resource_carries_its_logical_name_its_root_and_its_owner() -> None:
    made = dressed(config_map(namespace="team-a", labels={"own": "1"}), xr())

    assert made["metadata"] == {
        "name": child_name("demo-", UID, "cm"),
        "generateName": "demo-",
        "namespace": "team-a",
        "labels": {"own": "1", "crossplane.io/composite": "demo"},
        "annotations": {"crossplane.io/composition-resource-name": "cm"},
        "ownerReferences": [
            {
                "apiVersion": "lab.example.org/v1",
                "kind": "App",
                "name": "demo",
                "uid": UID,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert made["data"] == {"a": "b"}


def test_what_exists_keeps_its_name_whatever_the_function_says() -> None:
    observed = config_map(name="old", namespace="team-a")

    made = dressed(config_map(name="new", namespace="team-b"), xr(), observed)

    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("old", "team-a")


def test_a_nested_xr_passes_on_the_root_of_its_parent() -> None:
    inner = xr(name="inner", labels={"crossplane.io/composite": "one"})

    made = dressed(config_map(), inner)

    assert made["metadata"]["name"].startswith("one-")
    assert made["metadata"]["labels"]["crossplane.io/composite"] == "one"


def test_claim_labels_are_passed_on_when_both_are_there() -> None:
    claim = {"crossplane.io/claim-name": "c", "crossplane.io/claim-namespace": "n"}

    assert claim.items() <= dressed(config_map(), xr(labels=claim))["metadata"]["labels"].items()
    half = dressed(config_map(), xr(labels={"crossplane.io/claim-name": "c"}))
    assert "crossplane.io/claim-name" not in half["metadata"]["labels"]


def test_a_namespaced_xr_takes_its_resources_home_and_says_so() -> None:
    home = xr(namespace="team-a")

    made, warning = with_metadata(
        "cm", config_map(namespace="team-b"), home, observed=None, scope_of=lambda _: True
    )

    assert made["metadata"]["namespace"] == "team-a"
    assert warning == (
        'cannot create composed resource "cm" in namespace "team-b", '
        'using XR namespace "team-a" instead'
    )


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (
            False,
            (
                'cannot apply cluster scoped composed resource "cm" (a ConfigMap named s1-ns) '
                "for a namespaced composite resource."
            ),
        ),
        (
            None,
            (
                'cannot check if composed resource "cm" is namespaced (a ConfigMap named s1-ns): '
                'failed to get restmapping: no matches for kind "ConfigMap" in version "v1"'
            ),
        ),
    ],
    ids=["cluster scoped", "not served"],
)
def test_a_namespaced_xr_composes_namespaced_kinds_only(scope: bool | None, text: str) -> None:  # noqa: FBT001 - a case
    with pytest.raises(MetadataError) as caught:
        with_metadata(
            "cm",
            config_map(name="s1-ns"),
            xr(namespace="team-a"),
            observed=None,
            scope_of=lambda _: scope,
        )
    assert str(caught.value) == text


def test_another_controller_in_the_desired_resource_is_refused() -> None:
    other = {"kind": "App", "name": "x", "uid": "other", "controller": True}

    with pytest.raises(MetadataError, match="is already controlled by App x"):
        dressed(config_map(ownerReferences=[other]), xr())


@pytest.mark.parametrize("name", ["Upper", "a_b", "-a", "a" * 254, "a..b"])
def test_a_name_that_is_no_subdomain_is_refused(name: str) -> None:
    with pytest.raises(MetadataError, match="Must be a valid RFC 1123 subdomain name"):
        dressed(config_map(name=name), xr())


def test_names_of_rbac_kinds_may_hold_colons() -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "garage:view"},
    }

    assert dressed(role, xr())["metadata"]["name"] == "garage:view"


def test_a_desired_resource_without_kind_is_refused() -> None:
    with pytest.raises(MetadataError, match='cannot unmarshal desired composed resource "cm"'):
        dressed({"metadata": {"name": "x"}}, xr())


def test_references_are_sorted_and_lose_the_namespace_below_a_namespaced_xr() -> None:
    objects = [config_map(name="b", namespace="n"), config_map(name="a", namespace="n")]

    assert [r["name"] for r in references(objects, xr())] == ["a", "b"]
    assert references(objects, xr())[0]["namespace"] == "n"
    assert "namespace" not in references(objects, xr(namespace="n"))[0]


def test_the_field_owner_is_one_per_xr_and_kind() -> None:
    owners = {
        composed_owner(xr()),
        composed_owner(xr(name="other")),
        composed_owner({**xr(), "kind": "Other"}),
    }

    assert len(owners) == 3
    assert composed_owner(xr()) == composed_owner(xr(uid="another uid"))
    # sha256 of "demoApp.lab.example.org"
    assert composed_owner(xr()) == (
        "apiextensions.crossplane.io/composed/"
        "344fa857c3b2d0b5f33bcd19f23dff3de73505e025a179ef32c7418067d6d1b4"
    )


XR: Manifest = {
    "apiVersion": "example.org/v1",
    "kind": "XBucket",
    "metadata": {"name": "x", "uid": UID, "labels": {"crossplane.io/composite": "x"}},
}
HOME: Manifest = {**XR, "metadata": {**XR["metadata"], "namespace": "home"}}


def applied(
    resource: Manifest,
    xr: Manifest = XR,
    *,
    scope: bool | None = True,
    observed: Manifest | None = None,
) -> tuple[Manifest, str]:
    return with_metadata("db", resource, xr, observed=observed, scope_of=lambda _: scope)


def pod(name: str = "", api_version: str = "v1", **meta: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": "Pod", "metadata": {"name": name, **meta}}


RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("resource", "xr", "scope", "told"),
    [
        ({"kind": "Pod"}, XR, True, 'cannot unmarshal desired composed resource "db" from'),
        (pod("A"), XR, True, 'cannot apply composed resource "db" because it has an invalid name'),
        (pod("a" * 254), XR, True, 'cannot apply composed resource "db" because it has an invalid'),
        (pod("a:b"), XR, True, 'cannot apply composed resource "db" because it has an invalid'),
        (
            pod("a"),
            {**XR, "metadata": {"name": "x"}},
            True,
            'cannot render metadata for composed resource "db": cannot find top-level composite',
        ),
        (
            pod("a"),
            HOME,
            None,
            'cannot check if composed resource "db" is namespaced (a Pod named a): failed to get',
        ),
        (
            pod(),
            HOME,
            False,
            'cannot apply cluster scoped composed resource "db" (a Pod named ) for a namespaced',
        ),
        (
            pod("a", ownerReferences=[{"controller": True, "uid": "o", "kind": "K", "name": "n"}]),
            XR,
            True,
            (
                'cannot render metadata for composed resource "db": cannot set controller'
                " reference: a is already controlled by K n (UID o)"
            ),
        ),
    ],
)
def test_a_resource_that_crossplane_would_not_apply_is_refused_in_its_words(
    resource: Manifest, xr: Manifest, *, scope: bool | None, told: str
) -> None:
    with pytest.raises(MetadataError) as refused:
        applied(resource, xr, scope=scope)

    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("resource", "name"),
    [(pod("a.b-c"), "a.b-c"), (pod("a" * 253), "a" * 253), (pod("a:b", RBAC), "a:b")],
)
def test_a_name_that_the_api_server_takes_is_applied(resource: Manifest, name: str) -> None:
    assert applied(resource)[0]["metadata"]["name"] == name


@pytest.mark.parametrize(
    ("namespace", "scope", "warning"),
    [
        (None, True, ""),
        ("home", None, ""),
        (
            "away",
            False,
            (
                'cannot create composed resource "db" in namespace "away", using XR namespace'
                ' "home" instead'
            ),
        ),
    ],
)
def test_what_a_namespaced_xr_composes_is_in_its_namespace(
    namespace: str | None, *, scope: bool | None, warning: str
) -> None:
    resource = pod("a", **({"namespace": namespace} if namespace else {}))

    found, told = applied(resource, HOME, scope=scope)

    assert (found["metadata"]["namespace"], told) == ("home", warning)
    assert resource["metadata"].get("namespace") == namespace


def test_what_exists_keeps_its_name_and_its_other_owners() -> None:
    theirs, ours = {"uid": "o", "kind": "K"}, {"uid": UID, "kind": "old"}
    desired = pod("new", generateName="g-", ownerReferences=[theirs, ours])

    found, _ = applied(desired, observed=pod("old", namespace="n"))

    meta = found["metadata"]
    assert (meta["name"], meta["namespace"]) == ("old", "n")
    assert "generateName" not in meta
    assert [owner["uid"] for owner in meta["ownerReferences"]] == ["o", UID]
    assert meta["ownerReferences"][1]["controller"] is True


@pytest.mark.parametrize(
    ("labels", "passed_on"),
    [
        ({"crossplane.io/claim-name": "c", "crossplane.io/claim-namespace": "n"}, True),
        ({"crossplane.io/claim-name": "c"}, False),
        ({"crossplane.io/claim-name": "c", "crossplane.io/claim-namespace": ""}, False),
    ],
)
def test_both_labels_of_a_claim_are_passed_on_or_none(
    labels: dict[str, str], *, passed_on: bool
) -> None:
    own = {"crossplane.io/composite": "x", **labels}
    xr = {**XR, "metadata": {**XR["metadata"], "labels": own}}

    found, _ = applied(pod("a", labels={"mine": "1"}), xr)

    kept = {"mine": "1", "crossplane.io/composite": "x"}
    assert found["metadata"]["labels"] == {**kept, **(labels if passed_on else {})}
    notes = found["metadata"]["annotations"]
    assert notes == {"crossplane.io/composition-resource-name": "db"}
