"""Objects from files and servers become files of a pack: clean, and otherwise as they were."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ground.errors import NotFoundError, OrderkitError
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_workshop.generate.imported_kit import (
    ImportSource,
    cleaned,
    compositions_for,
    kit_name,
    read_source,
    texts_of,
    the_xrd,
)
from orderkit_workshop.generate.imported_pipeline import map_keys, pipeline_of
from orderkit_workshop.stories.import_kit import from_cluster

XRD = b"""\
# Our databases.
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xdatabases.db.example.org   # plural and group
spec:
  scope: Cluster
  group: db.example.org
  names: {kind: XDatabase, plural: xdatabases}
  versions:
    - name: v1
      served: true
      referenceable: true
      schema: {openAPIV3Schema: {type: object}}
"""


def text_of_xrd(sources: list[ImportSource]) -> bytes:
    xrd = the_xrd(sources)
    return next(texts_of(xrd, cleaned(xrd.manifest)))


def composition(name: str, group: str = "db.example.org", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {"compositeTypeRef": {"apiVersion": f"{group}/v1", "kind": "XDatabase"}, **spec},
    }


def with_compositions(*objects: dict[str, Any]) -> list[ImportSource]:
    return [read_source("xrd.yaml", XRD), ImportSource("more", tuple(objects))]


def test_a_file_keeps_its_text_and_learns_that_argo_cd_must_not_delete_it() -> None:
    text = text_of_xrd([read_source("xrd.yaml", XRD)]).decode()

    own, added = XRD.decode().split("spec:\n")[0], text.split("spec:\n")[0]
    assert added.startswith(own)
    assert "Prune=false,Delete=false" in added.removeprefix(own)
    assert text.endswith(XRD.decode().split("spec:\n")[1])


def test_what_a_server_wrote_is_taken_out_of_the_text() -> None:
    told = XRD.replace(
        b"spec:\n",
        b"""\
  uid: 1-2
  generation: 3
  creationTimestamp: "2024-01-01T00:00:00Z"
  managedFields: [{manager: kubectl}]
  labels: {ours: stays}
  annotations:
    ours: stays   # and why
    kubectl.kubernetes.io/last-applied-configuration: |
      {"much": "text"}
spec:
""",
    )
    text = text_of_xrd([read_source("xrd.yaml", told + b"status:\n  conditions: []\n")])

    found = yaml.safe_load(text)
    assert found["metadata"] == {
        "name": "xdatabases.db.example.org",
        "labels": {"ours": "stays"},
        "annotations": {
            "ours": "stays",
            "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
        },
    }
    assert "status" not in found
    assert b"# and why" in text
    assert b"# Our databases." in text


def test_an_object_of_several_is_written_anew() -> None:
    both = XRD + b"---\n" + yaml.safe_dump(composition("a")).encode()

    text = text_of_xrd([read_source("both.yaml", both)])

    assert b"# Our" not in text
    assert yaml.safe_load(text)["spec"] == yaml.safe_load(XRD)["spec"]


@dataclass(frozen=True)
class Version:
    reason: str
    meta: dict[str, str]
    spec: dict[str, str]
    becomes: str


VERSIONS = [
    Version("a server shows each XRD as v1, and this one is a v2", {"uid": "1"}, {}, "v2"),
    Version("a legacy one stays what it is", {"uid": "1"}, {"scope": "LegacyCluster"}, "v1"),
    Version("a file says itself what it is", {}, {}, "v1"),
]


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case.reason)
def test_the_api_version_of_an_xrd(case: Version) -> None:
    xrd = yaml.safe_load(XRD)
    xrd["apiVersion"] = "apiextensions.crossplane.io/v1"
    xrd["metadata"] |= case.meta
    xrd["spec"] |= case.spec

    assert cleaned(xrd)["apiVersion"] == f"apiextensions.crossplane.io/{case.becomes}"


def test_own_sync_options_and_wave_stay() -> None:
    given = composition("a")
    given["metadata"]["annotations"] = {
        "argocd.argoproj.io/sync-options": "Prune=confirm,ServerSideApply=true",
        "argocd.argoproj.io/sync-wave": "7",
    }

    assert cleaned(given)["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-options": "Prune=confirm,ServerSideApply=true,Delete=false",
        "argocd.argoproj.io/sync-wave": "7",
    }
    assert given["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "7"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
            "x.yaml must hold one XRD, and holds 1 ConfigMap",
        ),
        (XRD + b"---\n" + XRD, "must hold one XRD, and holds 2 CompositeResourceDefinition"),
        (b"", "must hold one XRD, and holds no object"),
        (b"kind: [", "x.yaml"),
    ],
)
def test_not_one_xrd_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(OrderkitError, match=says):
        the_xrd([read_source("x.yaml", data)])


def test_a_crd_is_told_from_an_xrd() -> None:
    crd = b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {}\n"
    with pytest.raises(OrderkitError) as caught:
        the_xrd([read_source("x.yaml", crd)])
    assert "this is a CRD" in caught.value.hint


def test_the_first_composition_is_the_default_the_only_or_the_named_one() -> None:
    xrd = yaml.safe_load(XRD)
    a, b, other = composition("a"), composition("b"), composition("c", group="other.example.org")

    def chosen(*objects: dict[str, Any], wanted: str = "", **refs: str) -> list[str]:
        spec = {**xrd["spec"], **{f"{key}CompositionRef": {"name": n} for key, n in refs.items()}}
        found = compositions_for({**xrd, "spec": spec}, with_compositions(*objects), name=wanted)
        return [each.name for each in found]

    assert chosen() == []
    assert chosen(other) == []
    assert chosen(a, other) == ["a"]
    assert chosen(a, b, default="b") == ["b", "a"]
    assert chosen(a, b, default="b", wanted="a") == ["a", "b"]
    assert chosen(a, b, enforced="b") == ["b", "a"]
    with pytest.raises(OrderkitError, match="is not 'b', which the XRD enforces"):
        chosen(a, b, enforced="b", wanted="a")
    for refused in ({}, {"wanted": "c"}, {"default": "gone"}):
        with pytest.raises(OrderkitError, match="must be one of XDatabase"):
            chosen(a, b, other, **refused)


def test_a_pipeline_tells_foreign_steps_and_stations() -> None:
    found = pipeline_of(
        composition(
            "a",
            pipeline=[
                {"step": "kcl", "functionRef": {"name": "function-kcl"}},
                {
                    "step": "own",
                    "functionRef": {"name": "function-orderkit"},
                    "input": {"name": "database"},
                },
                {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
            ],
        ),
        {},
    )

    assert found.foreign == (("kcl", "function-kcl"),)
    assert found.stations == ("database",)
    assert found.functions == ("function-auto-ready", "function-kcl", "function-orderkit")


def test_a_field_may_have_the_values_that_each_map_over_it_knows() -> None:
    patches = [
        {"fromFieldPath": "spec.size", "transforms": [{"type": "map", "map": dict.fromkeys(keys)}]}
        for keys in ("sm", "ml")
    ]
    step = {"step": "patch", "input": {"resources": [{"name": "a", "patches": patches}]}}

    assert map_keys(composition("a", pipeline=[step])) == {"size": ("m",)}


def test_a_composition_without_a_pipeline_is_refused() -> None:
    with pytest.raises(OrderkitError, match="has no pipeline"):
        pipeline_of(composition("a", resources=[]), {})


@pytest.mark.parametrize(
    ("kind", "name"),
    [("XBucket", "bucket"), ("XAgentBudget", "agent-budget"), ("Xylophone", "xylophone")],
)
def test_a_kits_name_follows_from_the_kind(kind: str, name: str) -> None:
    assert kit_name({"spec": {"names": {"kind": kind}}}) == name


def test_a_cluster_without_crossplane_is_no_source(tmp_path: Path) -> None:
    with (
        closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster,
        pytest.raises(NotFoundError, match="the cluster has no Crossplane") as refused,
    ):
        from_cluster(cluster, "xdatabases.db.example.org")

    assert "CompositeResourceDefinition" in refused.value.hint
