"""A plan asks what the cluster serves: a file in ``schemas/`` serves nothing."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path, PurePosixPath

import pytest
from outcomes import Shop, an_xr, thing, wanting
from refusedreads import RefusedReads

from ground.objects.kube_objects import Kind, Manifest
from kubeschema.known import layer_of
from orderkit.core.kit.pack import read_pack
from orderkit.core.order.order_state import judge
from orderkit.core.plan import Plan
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.judging import OutcomeRule
from orderkit.core.unserved_kinds import TWINS, advice_on, unserved_advice
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.composing.published_pack import laws_of
from orderkit.flows.plan.fleet_orders import ObjectLookup
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.testing import permissive_crd

GROUP = "rds.aws.upbound.io"
INSTANCE = (GROUP, "Instance")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"instances.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"kind": "Instance", "plural": "instances"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"properties": {"spec": OPEN}}},
            }
        ],
    },
}


def database() -> Manifest:
    return thing(f"{GROUP}/v1beta1", "Instance", "db", spec={"forProvider": {}})


def planned(laws: PackRules) -> Plan:
    shop = Shop(wanting({"db": database()}), laws=laws)
    return OrderPlanner(ObjectLookup([]), shop.workshop).plan_step(an_xr({}), an_xr({"size": 2}))


def test_a_kind_that_only_schemas_have_cannot_be_made() -> None:
    layer = layer_of([CRD])
    plan = planned(PackRules(delivered=layer, described=frozenset(layer)))

    [fault] = [fault for fault in plan.faults if fault.code == OutcomeRule.UNKNOWN_KIND]
    assert fault.where == "db.apiVersion"
    assert 'no matches for kind "Instance" in version "rds.aws.upbound.io/v1beta1"' in fault.message
    assert "this cluster does not serve it, so the part cannot be made" in fault.message
    assert "orderkit up --twins aws" in fault.hint
    assert "orderkit kit schemas add provider-aws-rds@VERSION" in fault.hint


def test_a_kind_whose_crd_the_pack_delivers_is_served_when_the_order_comes() -> None:
    plan = planned(PackRules(delivered=layer_of([CRD])))

    assert not [fault for fault in plan.faults if fault.code == OutcomeRule.UNKNOWN_KIND]


@pytest.mark.parametrize(
    ("folder", "is_described"),
    [("schemas/rds.yaml", True), ("gitops/crds/rds.yaml", False)],
)
def test_schemas_describe_and_gitops_delivers(folder: str, *, is_described: bool) -> None:
    import yaml

    files = {
        PurePosixPath("pack.yaml"): b"apiVersion: orderkit.dev/v1alpha1\nkind: Pack\n"
        b"metadata: {name: p}\nspec: {kits: []}\n",
        PurePosixPath(folder): yaml.safe_dump(CRD).encode(),
    }

    laws = laws_of(read_pack(files), [])

    assert INSTANCE in laws.delivered
    assert (INSTANCE in laws.described) is is_described
    other = PackRules(delivered=layer_of([CRD]))
    assert laws.joined(other).described == frozenset()


@pytest.mark.parametrize(
    ("kind", "words", "reason"),
    [
        (Kind("ec2.aws.m.upbound.io", "v1beta1", "VPC"), "provider-aws-ec2", "a service"),
        (Kind("dynamodb.aws.crossplane.io", "v1", "Table"), "provider-aws, ", "classic: one"),
        (Kind("helm.crossplane.io", "v1beta1", "Release"), "--twins helm", "no service"),
        (Kind("postgresql.sql.crossplane.io", "v1", "Role"), "--twins sql", "an engine"),
        (Kind("repo.github.upbound.io", "v1", "Repository"), "--twins other", "another"),
        (Kind("cert-manager.io", "v1", "Certificate"), "deliver its CRD", "no provider"),
        (Kind("policy", "v1", "PodDisruptionBudget"), "kubectl api-resources", "Kubernetes' own"),
        (Kind("gateway.networking.k8s.io", "v1", "Gateway"), "kubectl", "Kubernetes' own"),
    ],
)
def test_the_advice_fits_the_kind(kind: Kind, words: str, reason: str) -> None:
    assert words in unserved_advice(kind), reason


def test_a_failing_order_says_what_helps() -> None:
    message = (
        'cannot compose resources: cannot apply composed resource "db": failed to get restmapping:'
        ' no matches for kind "Instance" in version "rds.aws.upbound.io/v1beta1"'
    )
    condition = {"type": "Synced", "status": "False", "reason": "ReconcileError"}
    xr = {"status": {"conditions": [{**condition, "message": message}]}, **an_xr({})}
    application = {
        "status": {
            "sync": {"status": "Synced", "revision": "c" * 40},
            "health": {"status": "Healthy"},
            "resources": [{"kind": "XShop", "name": "one", "status": "Synced"}],
            "operationState": {
                "phase": "Succeeded",
                "operation": {"sync": {"revision": "c" * 40}},
                "syncResult": {"revision": "c" * 40},
            },
        }
    }

    state = judge(application, xr, head=None, ending=False)

    assert (state.phase, "--twins aws" in state.advice) == ("Failing", True)
    assert advice_on("nothing of the kind") == ""
    assert {"aws", "gcp", "azure", "kubernetes", "helm", "sql", "nop", "other"} <= set(TWINS)


PROVIDER = Kind("kubernetes.crossplane.io", "v1alpha2", "Object")
CONFIG = Kind("kubernetes.crossplane.io", "v1alpha1", "ProviderConfig")


class Serving(ObjectLookup):
    """Objects at hand, of kinds that are served."""

    def serves(self, kind: Kind) -> bool:
        return kind in (PROVIDER, CONFIG)


def with_object(source: str, **more: Manifest) -> list[str]:
    """Plan an Object that wraps a Vault; return the messages about kinds."""
    config = thing(
        CONFIG.api_version, CONFIG.kind, "here", spec={"credentials": {"source": source}}
    )
    wrapped = thing("vault.example.org/v1", "Vault", "v")
    spec = {"forProvider": {"manifest": wrapped}, "providerConfigRef": {"name": "here"}}
    made = {"vault": thing(PROVIDER.api_version, PROVIDER.kind, "vault", spec=spec), **more}
    shop = Shop(wanting(made))
    plan = OrderPlanner(Serving([config]), shop.workshop).plan_step(an_xr({}), an_xr({"size": 2}))
    return [
        f"{fault.where}: {fault.message}"
        for fault in plan.faults
        if fault.code == OutcomeRule.UNKNOWN_KIND and "Vault" in fault.message
    ]


def test_an_object_cannot_make_here_what_this_cluster_does_not_serve() -> None:
    (told,) = with_object("InjectedIdentity")

    assert told.startswith("vault.spec.forProvider.manifest.apiVersion: no matches for kind")
    assert told.endswith("this cluster does not serve it, so the provider cannot make it")


VAULT = Kind("safe.things", "v1", "Vault")


@pytest.mark.parametrize(
    ("refused_part", "unknown", "answered"),
    [
        ("Namespace", "Namespace away could not be looked up: ", {OutcomeRule.NO_NAMESPACE}),
        ("ClusterRole", "the cluster's rights could not be read: ", ()),
        # its API group
        ("Safe.Thing", f"the cluster's schema of {VAULT} could not be read: ", ()),
    ],
)
def test_what_the_cluster_does_not_tell_is_unknown_and_no_fault(
    refused: RefusedReads,
    tmp_path: Path,
    refused_part: str,
    unknown: str,
    answered: Collection[OutcomeRule],
) -> None:
    config = {**thing("v1", "ConfigMap", "c"), "metadata": {"name": "c", "namespace": "away"}}
    vault = thing(VAULT.api_version, VAULT.kind, "v")
    shop = Shop(wanting({"vault": vault, "config": config}))
    with closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster:
        cluster.create(permissive_crd(VAULT, namespaced=False), owner="x")

        def planned(*kinds: str) -> Plan:
            planner = OrderPlanner(refused.of(cluster, kinds), shop.workshop)
            return planner.plan_step(an_xr({}), an_xr({"size": 2}))

        told, lacking = planned(), planned(refused_part)

    assert not [text for text in told.unknowns if text.startswith(unknown)]
    assert [text for text in lacking.unknowns if text.startswith(unknown)], lacking.unknowns
    faults = [fault for fault in told.faults if fault.code not in answered]
    assert [*lacking.faults] == faults
    assert len(faults) + len(answered) == len(told.faults)


def test_nothing_is_said_of_what_an_object_makes_in_another_cluster() -> None:
    assert with_object("Secret") == []


def test_nothing_is_said_of_what_the_order_itself_may_bring() -> None:
    names = {"kind": "Vault", "plural": "vaults"}
    crd = {**CRD, "metadata": {"name": "vaults.vault.example.org"}}
    crd["spec"] = {**CRD["spec"], "group": "vault.example.org", "names": names}
    release = thing("helm.crossplane.io/v1beta1", "Release", "chart", spec={"forProvider": {}})

    assert with_object("InjectedIdentity", crd=crd) == []
    assert with_object("InjectedIdentity", chart=release) == []
