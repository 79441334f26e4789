"""The registry on a real Kubernetes API server: the pack's CRD, apply, status, Lease."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests
import yaml
from accessreviews import may
from lab.realkube import Kube

from ground.errors import AccessError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey, metadata
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.controllers import LEASE, Candidate, LeaderElection
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import InvalidObjectError
from whisperops.buckets import FsspecBucket
from whisperops.comparing import Loss, compare
from whisperops.confirming import Confirmation
from whisperops.records import XDATASET, Origin
from whisperops.registry import Registry

DEFINITION = Path(__file__).parents[2] / "packs/agents/gitops/apis/dataset/definition.yaml"


@pytest.fixture
def cluster(real_kube: Kube) -> Iterator[KubeCluster]:
    with KubeCluster.from_kubeconfig(real_kube.kubeconfig) as client:
        client.apply(yaml.safe_load(DEFINITION.read_text()), owner="test")
        while not client.serves(XDATASET):
            pass
        _clear(client)  # the server is shared: others have registered datasets of theirs
        yield client
        _clear(client)


def _clear(cluster: KubeCluster) -> None:
    for record in cluster.list(XDATASET).items:
        cluster.delete(ObjectKey.of(record))


def test_records_are_written_once_and_removed_as_the_objects_they_were(
    cluster: KubeCluster, tmp_path: Path
) -> None:
    for name, text in {"Athlete_Recovery.csv": "1,2\n", "empty.csv": "", "数据 1.csv": "x"}.items():
        (tmp_path / name).write_text(text)
    bucket = FsspecBucket(f"file://{tmp_path}")
    origin = Origin(bucket.root, "datasets")
    registry = Registry(cluster, origin, SystemClock())
    writes = []
    for _ in range(2):
        living = {metadata(each)["name"]: each for each in registry.records()}
        found = compare(bucket.blobs(), list(living.values()), origin)
        puts = [
            registry.put(name, blob, living.get(name)) for name, blob in found.blobs_by_name.items()
        ]
        assert not any(put.refusal for put in puts)
        writes.append(sum(put.writes for put in puts))

    records = {metadata(each)["name"]: each for each in registry.records()}
    assert writes == [6, 0]
    assert records.keys() == {"athlete-recovery", "empty", "1"}
    assert [records[name]["status"]["ready"] for name in ("athlete-recovery", "empty")] == [
        True,
        False,
    ]
    assert registry.remove(records["empty"])
    stale = {**records["1"], "metadata": {**records["1"]["metadata"], "uid": "another"}}
    assert not registry.remove(stale)
    assert {metadata(each)["name"] for each in registry.records()} == {"athlete-recovery", "1"}


def test_the_schema_refuses_what_the_document_refuses(cluster: KubeCluster) -> None:
    spec = {"gcsPath": "gs://b/a.csv", "displayName": "A", "sizeBytes": 1}
    record = {"apiVersion": XDATASET.api_version, "kind": XDATASET.kind}
    record |= {"metadata": {"name": "by-hand"}}  # type: ignore[dict-item]  # a manifest
    for bad in ({"sizeBytes": 0}, {"gcsPath": "b/a.csv"}, {"gcsPath": "gs://b/a.txt"}):
        with pytest.raises(InvalidObjectError):
            cluster.create({**record, "spec": {**spec, **bad}}, owner="person")


def test_a_lease_is_taken_renewed_and_given_back(cluster: KubeCluster) -> None:
    key = ObjectKey(LEASE, "dataset-watcher-datasets", "default")
    one, two = (
        LeaderElection(cluster, SystemClock(), Candidate(key, name, 60)) for name in ("one", "two")
    )

    taken = [one.try_acquire(), two.try_acquire(), one.try_acquire()]
    one.release()

    assert taken == [True, False, True]
    assert two.try_acquire()
    assert cluster.get(key)["spec"]["holderIdentity"] == "two"  # type: ignore[index]  # it is there
    two.release()
    cluster.delete(key)


CONTROLLERS = DEFINITION.parents[2] / "controllers"


def _as_account(real_kube: Kube, account: str, folder: Path) -> KubeCluster:
    """Return the cluster as a ServiceAccount of the pack sees it, with the pack's own rights."""
    config = yaml.safe_load(real_kube.kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]
    admin = config["users"][0]["user"]["token"]
    answer = requests.post(
        f"{server['server']}/api/v1/namespaces/whisperops/serviceaccounts/{account}/token",
        json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        headers={"Authorization": f"Bearer {admin}"},
        verify=server["certificate-authority"],
        timeout=60,
    )
    assert answer.ok, answer.text
    (folder / "token").write_text(answer.json()["status"]["token"])
    config["users"][0]["user"] = {"tokenFile": "token"}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return KubeCluster.from_kubeconfig(path)


_LAST_RIGHTS = [
    ("dataset-watcher", "patch", "whisperops.io/xdatasets"),
    ("dataset-watcher", "update", "coordination.k8s.io/leases"),
    ("spend-meter", "patch", "/configmaps"),
    ("spend-meter", "update", "coordination.k8s.io/leases"),
]
"""One of each binding: the server learns of them a moment after they are written."""


@pytest.fixture(scope="module")
def rights(real_kube: Kube) -> Iterator[None]:
    with KubeCluster.from_kubeconfig(real_kube.kubeconfig) as client:
        for name in ("account.yaml", "rights.yaml"):
            for manifest in yaml.safe_load_all((CONTROLLERS / name).read_text()):
                client.apply(manifest, owner="test")
        for account, verb, resource in _LAST_RIGHTS:
            group, _, plural = resource.partition("/")
            asked = {"verb": verb, "group": group, "resource": plural, "namespace": "whisperops"}
            until(
                SystemClock(),
                lambda a=account, asked=asked: may(client, "whisperops", a, asked),  # type: ignore[misc]  # defaults bind
                bool,
                timeout_s=60,
                goal=f"{account} may {verb} {plural}",
            )
        yield
        client.delete(ObjectKey(NAMESPACE, "whisperops"))


@pytest.mark.usefixtures("rights", "cluster")
def test_the_packs_rights_are_enough_for_the_watcher_and_no_more(
    real_kube: Kube, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("1")
    clock, origin = SystemClock(), Origin(f"file://{tmp_path}", "datasets")
    with _as_account(real_kube, "dataset-watcher", tmp_path) as own:
        lease = Candidate(ObjectKey(LEASE, "dataset-watcher-datasets", "whisperops"), "one")
        leadership = LeaderElection(own, clock, lease)
        registry = Registry(own, origin, clock)
        asking = Confirmation(own, clock, namespace="whisperops", source="datasets")
        put = registry.put("a", FsspecBucket(origin.root).blobs()[0], None)

        assert [leadership.try_acquire(), leadership.try_acquire()] == [True, True]
        leadership.release()
        assert put.record is not None
        assert put.writes == 2
        lost = Loss(1, 1, suspicious=True, token="abc", reason="the bucket is empty")
        assert not asking.is_confirmed(lost)
        assert not asking.is_confirmed(replace(lost, suspicious=False))
        assert registry.remove(put.record)
        for kind in (Kind("", "v1", "Secret"), Kind("", "v1", "ConfigMap")):
            with pytest.raises(AccessError):
                own.list(kind)


@pytest.mark.usefixtures("rights")
def test_the_packs_rights_are_enough_for_the_meter_and_no_more(
    real_kube: Kube, cluster: KubeCluster, tmp_path: Path
) -> None:
    key = ObjectKey(CONFIG_MAP, "tokens-housing-bot", "default")
    record = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"odometer": "1"}}
    record |= {"metadata": {"name": key.name, "namespace": key.namespace}}
    with _as_account(real_kube, "spend-meter", tmp_path) as own:
        made = own.create(record, owner="spend-meter")
        own.replace({**made, "data": {"odometer": "2"}}, owner="spend-meter")
        own.apply({**record, "data": {"odometer": "3"}}, owner="spend-meter")
        assert own.list(CONFIG_MAP, labels={"whisperops.io/record": "spend"}).items == ()
        with pytest.raises(AccessError):
            own.delete(key)
        with pytest.raises(AccessError):
            own.list(Kind("", "v1", "Secret"))
    cluster.delete(key)
