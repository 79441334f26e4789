"""Small questions about objects of Kubernetes, and their answers where a part is missing."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    condition,
    controller,
    controller_reference,
    dig,
    first_and_more,
    is_namespaced,
    labels_of,
    makes_nothing,
    metadata,
    only_observes,
    plural_of,
    secret_references,
    used_by,
    wrapped_object,
)


@pytest.mark.parametrize(
    ("api_version", "kind", "told"),
    [
        ("v1", Kind("", "v1", "Pod"), "Pod"),
        ("apps/v1", Kind("apps", "v1", "Pod"), "Pod.apps"),
    ],
)
def test_a_kind_is_read_and_written(api_version: str, kind: Kind, told: str) -> None:
    assert Kind.parse(api_version, "Pod") == kind
    assert kind.api_version == api_version
    assert str(kind) == told


@pytest.mark.parametrize(
    "manifest",
    [{}, {"kind": "Pod"}, {"apiVersion": "v1"}, {"apiVersion": "v1", "kind": ""},
     {"apiVersion": 1, "kind": "Pod"}, {"apiVersion": "v1", "kind": 1}],
)  # fmt: skip
def test_what_lacks_its_kind_is_no_object(manifest: Manifest) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes object: apiVersion or kind is missing"):
        Kind.of(manifest)


@pytest.mark.parametrize("name", [None, "", 5])
def test_an_object_without_a_name_has_no_key(name: object) -> None:
    with pytest.raises(ValueError, match=r"Pod without metadata\.name"):
        ObjectKey.of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})


@pytest.mark.parametrize(("namespace", "told"), [("home", "Pod home/a"), ("", "Pod a")])
def test_a_key_is_a_reference(namespace: str, told: str) -> None:
    meta = {"name": "a"} | ({"namespace": namespace} if namespace else {})
    key = ObjectKey.of({"apiVersion": "v1", "kind": "Pod", "metadata": meta})

    assert str(key) == told
    assert key.to_json() == {"apiVersion": "v1", "kind": "Pod", **meta}
    assert ObjectKey.from_json(key.to_json()) == key


def test_metadata_that_is_no_map_is_empty() -> None:
    assert metadata({"metadata": []}) == {}
    assert annotations_of({"metadata": {"annotations": None}}) == {}
    assert labels_of({}) == {}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("a", "b"), 1), (("a", "c"), "d"), (("a", "b", "c"), "d"), (("n", "x"), "d"),
        (("n",), None), ((), {"a": {"b": 1}, "n": None}),
    ],
)  # fmt: skip
def test_a_value_is_dug_out_of_maps(path: tuple[str, ...], value: Any) -> None:
    assert dig({"a": {"b": 1}, "n": None}, *path, default="d") == value


def test_a_condition_is_found_by_its_type() -> None:
    ready = {"type": "Ready", "status": "True"}

    assert condition({"status": {"conditions": ["odd", {"type": "A"}, ready]}}, "Ready") is ready
    assert condition({"status": {"conditions": [ready]}}, "Synced") is None
    assert condition({"status": {"conditions": None}}, "Ready") is None


def test_the_controller_is_the_owner_that_is_marked() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    reference = controller_reference(owner, uid="u")

    assert controller({"metadata": {"ownerReferences": [{"name": "b"}, reference]}}) is reference
    assert controller({"metadata": {"ownerReferences": ["odd", {"controller": False}]}}) is None
    assert controller({}) is None
    assert reference == {
        "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def usage(home: str | None, **of: Any) -> Manifest:
    reference = {"apiVersion": "x.io/v1", "kind": "XDisk", "resourceRef": {"name": "a", **of}}
    meta = {"namespace": home} if home else {}
    return {"metadata": meta, "spec": {"of": reference, "by": reference}}


@pytest.mark.parametrize(
    ("found", "side", "namespace"),
    [
        (usage(None), "of", ""),
        (usage("home"), "of", "home"),
        (usage("home", namespace="other"), "of", "other"),
        (usage("home", namespace="other"), "by", "home"),
    ],
)
def test_a_usage_names_an_object_in_its_own_or_another_namespace(
    found: Manifest, side: Any, namespace: str
) -> None:
    assert used_by(found, side) == ObjectKey(Kind("x.io", "v1", "XDisk"), "a", namespace)
    assert used_by({}, side).name == ""


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Pod", "pods"), ("Endpoints", "endpoints"), ("Ingress", "ingresses"), ("Box", "boxes"),
        ("Quiz", "quizes"), ("Batch", "batches"), ("Mesh", "meshes"), ("Policy", "policies"),
        ("Gateway", "gateways"),
    ],
)  # fmt: skip
def test_a_plural_follows_english_rules(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def wrapping(inner: Any, kind: str = "Object", group: str = "kubernetes.crossplane.io") -> Manifest:
    spec = {"forProvider": {"manifest": inner}}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "o"}, "spec": spec}


POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("manifest", "wrapped"),
    [
        (wrapping(POD), {**POD, "metadata": {"name": "o"}}),
        (wrapping({**POD, "metadata": {"name": "p"}}), {**POD, "metadata": {"name": "p"}}),
        (wrapping(POD, group="kubernetes.m.crossplane.io"), {**POD, "metadata": {"name": "o"}}),
        (wrapping(POD, kind="Release"), None),
        (wrapping(POD, group="helm.crossplane.io"), None),
        (wrapping({"kind": "Pod"}), None),
        (wrapping({"apiVersion": "v1"}), None),
        (wrapping(None), None),
    ],
)
def test_an_object_of_the_provider_wraps_another(
    manifest: Manifest, wrapped: Manifest | None
) -> None:
    assert wrapped_object(manifest) == wrapped


@pytest.mark.parametrize(
    ("policies", "nothing", "observes"),
    [
        (None, False, False), ([], True, True), (["Observe"], True, True), (["*"], False, False),
        (["Observe", "Create"], False, False), (["Update"], True, False),
        (["Observe", "Delete"], True, False), (["LateInitialize"], True, True),
    ],
)  # fmt: skip
def test_policies_say_whether_a_resource_makes_or_only_observes(
    policies: list[str] | None, *, nothing: bool, observes: bool
) -> None:
    manifest = {"spec": {} if policies is None else {"managementPolicies": policies}}

    assert (makes_nothing(manifest), only_observes(manifest)) == (nothing, observes)


def test_references_to_keys_of_secrets_are_found_at_any_depth() -> None:
    key = {"name": "s", "key": "k"}
    for_provider = {
        "passwordSecretRef": key,
        "list": [{"tokenSecretKeyRef": key}, {"secretRef": key}],
        "optionalSecretRef": {**key, "optional": True},
        "nameOnlySecretRef": {"name": "s"},
        "keyOnlySecretRef": {"key": "k"},
        "configMapOrSecretRef": key,
        "other": key,
        "outerSecretRef": {"inner": {"innerSecretRef": key}},
    }

    assert [name for name, _ in secret_references(for_provider)] == [
        "passwordSecretRef",
        "tokenSecretKeyRef",
        "secretRef",
        "innerSecretRef",
    ]


@pytest.mark.parametrize(
    ("kind", "namespaced"),
    [
        (Kind("", "v1", "Pod"), True), (Kind("", "v1", "Node"), False),
        (Kind("x.io", "v1", "Node"), True),
        (Kind("rbac.authorization.k8s.io", "v1", "ClusterRole"), False),
        (Kind("rbac.authorization.k8s.io", "v1", "Role"), True),
    ],
)  # fmt: skip
def test_known_kinds_are_in_no_namespace(kind: Kind, *, namespaced: bool) -> None:
    assert is_namespaced(kind) is namespaced


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", ""), ("a", "a"), ("ba", "a, b"), ("cba", "a, b, and c"),
        ("dcba", "a, b, c, and 1 more"),
    ],
)  # fmt: skip
def test_names_are_joined(names: str, text: str) -> None:
    assert first_and_more(list(names)) == text
