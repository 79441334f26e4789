"""Providers from before Crossplane 2: one config for all services, and every version of a CRD."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey
from kubeschema.known.managed_behaviour import config_group
from orderkit.core.kit.pack import read_pack
from orderkit.core.unserved_kinds import TWINS
from orderkit.ports.cluster import Cluster
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import crossplane_crds
from orderkit_standins.providers import ManagedLibrary, Providers, provider_objects
from orderkit_standins.providers.provider_objects import unplayed_kinds

from .test_provider_twins import HOME, PROVIDER, TEST, made, says, wait

TABLE = Kind("dynamodb.aws.crossplane.io", "v1alpha1", "Table")
OBJECT = Kind("kubernetes.crossplane.io", "v1alpha1", "Object")
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  scope: Cluster
  names: {{kind: {kind}, plural: {plural}}}
  versions: {versions}
"""
OPEN = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
VERSION = (
    "{{name: {name}, served: {served}, storage: {storage}, schema: {{openAPIV3Schema: {{properties:"
    " {{spec: {{properties: {{forProvider: "
    + OPEN.replace("{", "{{").replace("}", "}}")
    + "}}}}}}}}}}}}"
)


def version(name: str, *, served: bool = True, storage: bool = False) -> str:
    return VERSION.format(name=name, served=str(served).lower(), storage=str(storage).lower())


def schemas() -> dict[PurePosixPath, bytes]:
    objects = [
        version("v1", served=False),
        version("v1alpha1"),
        version("v1alpha2", storage=True),
    ]
    tables = [version("v1alpha1", storage=True)]
    return {
        PurePosixPath(f"schemas/{kind.kind}.yaml"): CRD.format(
            plural=f"{kind.kind.lower()}s",
            group=kind.group,
            kind=kind.kind,
            versions=f"[{', '.join(versions)}]",
        ).encode()
        for kind, versions in ((TABLE, tables), (OBJECT, objects))
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    store = EmbeddedCluster(tmp_path_factory.mktemp("classic") / "cluster.sqlite")
    for crd in crossplane_crds():
        store.apply(crd, owner=TEST)
    store.apply(made(NAMESPACE, HOME), owner=TEST)
    providers = Providers(store, ManagedLibrary(schemas()))
    providers.ask_for(("aws", "kubernetes"))
    providers.start()
    for twin in ("aws", "kubernetes"):
        wait(store, ObjectKey(PROVIDER, f"embedded-{twin}"), says("Healthy", "True"))
    yield store
    providers.stop()
    store.close()


def test_a_resource_of_a_classic_cloud_is_made_with_the_one_config_of_its_provider(
    cluster: Cluster,
) -> None:
    config = Kind("aws.crossplane.io", "v1beta1", "ProviderConfig")
    cluster.create(made(TABLE, "cars", spec={"forProvider": {"region": "eu-1"}}), owner=TEST)

    assert cluster.get(ObjectKey(config, "default")) is not None
    assert not cluster.serves(Kind(TABLE.group, "v1beta1", "ProviderConfig"))
    wait(cluster, ObjectKey(TABLE, "cars"), says("Ready", "True"))


def test_an_object_in_an_older_version_that_the_packs_crd_serves_is_applied(
    cluster: Cluster,
) -> None:
    data = made(CONFIG_MAP, "sheet", meta={"namespace": HOME}, data={"stage": "stage1"})
    cluster.create(made(OBJECT, "sheet", spec={"forProvider": {"manifest": data}}), owner=TEST)

    wait(cluster, ObjectKey(OBJECT, "sheet"), says("Ready", "True"))
    made_map = cluster.get(ObjectKey(CONFIG_MAP, "sheet", HOME))
    assert made_map is not None
    assert made_map["data"] == {"stage": "stage1"}


@pytest.mark.parametrize(
    ("group", "configs"),
    [
        ("dynamodb.aws.crossplane.io", "aws.crossplane.io"),
        ("projects.gitlab.crossplane.io", "gitlab.crossplane.io"),
        ("ec2.aws.jet.crossplane.io", "aws.jet.crossplane.io"),
        ("helm.crossplane.io", "helm.crossplane.io"),
        ("kubernetes.m.crossplane.io", "kubernetes.m.crossplane.io"),
        ("postgresql.sql.crossplane.io", "postgresql.sql.crossplane.io"),
        ("mysql.sql.m.crossplane.io", "mysql.sql.m.crossplane.io"),
        ("storage.gcp.m.upbound.io", "gcp.m.upbound.io"),
        ("sql.gcp.m.upbound.io", "gcp.m.upbound.io"),
        ("ec2.aws.upbound.io", "aws.upbound.io"),
        ("things.example.org", "things.example.org"),
    ],
)
def test_a_provider_has_one_group_of_configs(group: str, configs: str) -> None:
    assert config_group(Kind(group, "v1", "Thing")) == configs


def test_the_kinds_that_nobody_plays_are_named(cluster: Cluster) -> None:
    """Of ``--twins aws,kubernetes``; the advice for each kind is the product's."""
    disk = Kind("compute.gcp.upbound.io", "v1beta1", "Disk")
    more = CRD.format(
        plural="disks", group=disk.group, kind=disk.kind,
        versions=f"[{version('v1beta1', storage=True)}]",
    )  # fmt: skip
    files = {
        **schemas(),
        PurePosixPath("schemas/disk.yaml"): more.encode(),
        PurePosixPath("pack.yaml"): b"apiVersion: orderkit.dev/v1alpha1\nkind: Pack\n"
        b"metadata: {name: p}\nspec: {kits: []}\n",
    }

    assert unplayed_kinds(cluster, read_pack(files)) == [disk]
    assert TWINS == provider_objects.TWINS
