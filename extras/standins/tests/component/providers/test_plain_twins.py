"""Twins of what kits compose and ``schemas/`` does not describe: played openly, and told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey, condition, dig
from orderkit.core.unserved_kinds import TWINS
from orderkit.ports.cluster import Cluster
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import crossplane_crds
from orderkit_standins.providers import ManagedLibrary, Providers, provider_objects

from .test_provider_twins import HOME, PROVIDER, TEST, made, says, wait

BUCKET = Kind("s3.aws.upbound.io", "v1beta1", "Bucket")
REALM = Kind("realm.keycloak.m.crossplane.io", "v1alpha1", "Realm")
DATABASE = Kind("postgresql.cnpg.io", "v1", "Cluster")
NETWORK = Kind("aws.platform.upbound.io", "v1alpha1", "Network")
NOP, CLUSTER_NOP = (
    Kind("nop.crossplane.io", "v1alpha1", kind) for kind in ("NopResource", "ClusterNopResource")
)
CLASSIC = Kind("kubernetes.crossplane.io", "v1alpha1", "Object")
COMPOSED = (BUCKET, REALM, DATABASE, NETWORK, Kind("aws.upbound.io", "v1beta1", "ProviderConfig"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    store = EmbeddedCluster(tmp_path_factory.mktemp("plain") / "cluster.sqlite")
    for crd in crossplane_crds():
        store.apply(crd, owner=TEST)
    store.apply(made(NAMESPACE, HOME), owner=TEST)
    providers = Providers(store, ManagedLibrary({}, COMPOSED))
    twins = ("aws", "kubernetes", "nop", "other", "operators")
    providers.ask_for(twins)
    providers.start()
    for twin in twins:
        wait(store, ObjectKey(PROVIDER, f"embedded-{twin}"), says("Healthy", "True"))
    yield store
    providers.stop()
    store.close()


@pytest.mark.parametrize(
    ("kind", "home"),
    [(BUCKET, ""), (REALM, HOME), (DATABASE, HOME), (NETWORK, HOME)],
    ids=["a cloud's", "another provider's", "an operator's", "another configuration's"],
)
def test_a_kind_that_kits_compose_and_schemas_lack_becomes_ready(
    cluster: Cluster, kind: Kind, home: str
) -> None:
    spec: dict[str, Any] = {"forProvider": {"any": {"thing": 1}}, "rollbackLimit": 3}
    meta = {"namespace": home} if home else {}
    cluster.create(made(kind, "one", meta=meta, spec=spec), owner=TEST)

    found = wait(cluster, ObjectKey(kind, "one", home), says("Ready", "True"))

    assert dig(found, "spec", "forProvider", "any") == {"thing": 1}
    assert dig(found, "spec", "rollbackLimit") == 3
    assert (condition(found, "Twin") or {}).get("status") == "True"


def test_provider_nops_resources_take_the_condition_that_they_ask_for(cluster: Cluster) -> None:
    after = [{"time": "0s", "conditionType": "Ready", "conditionStatus": "False"}]
    late = [*after, {"time": "50ms", "conditionType": "Ready", "conditionStatus": "True"}]
    for name, wanted in (("never", after), ("soon", late)):
        spec = {"forProvider": {"conditionAfter": wanted, "fields": {"name": name}}}
        cluster.create(made(NOP, name, meta={"namespace": HOME}, spec=spec), owner=TEST)

    soon = wait(cluster, ObjectKey(NOP, "soon", HOME), says("Ready", "True"))
    never = wait(cluster, ObjectKey(NOP, "never", HOME), says("Ready", "False"))

    assert dig(soon, "status", "atProvider", "fields") == {"name": "soon"}
    assert (condition(never, "Synced") or {}).get("status") == "True"
    assert not cluster.is_namespaced(CLUSTER_NOP)


def test_a_classic_object_is_served_in_both_its_versions(cluster: Cluster) -> None:
    data = made(CONFIG_MAP, "sheet", meta={"namespace": HOME}, data={"stage": "stage1"})
    cluster.create(made(CLASSIC, "sheet", spec={"forProvider": {"manifest": data}}), owner=TEST)

    wait(cluster, ObjectKey(CLASSIC, "sheet"), says("Ready", "True"))

    assert cluster.serves(Kind(CLASSIC.group, "v1alpha2", "Object"))


def test_the_product_knows_the_names_of_all_twins() -> None:
    assert TWINS == provider_objects.TWINS
