"""Two made-up clouds, played by the twin that plays every cloud: what an observer sees of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest

from ground.errors import InvalidInputError
from ground.objects.kube_objects import (
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)
from orderkit.ports.cluster import Cluster
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import crossplane_crds
from orderkit_standins.providers import ManagedLibrary, Providers, read_twins

from .test_provider_twins import EXTERNAL, HOME, SECRET, TEST, made, says, wait, wait_gone

AWS, GCP = "net.aws.m.upbound.io", "store.gcp.m.upbound.io"
NETWORK, SUBNET, MACHINE = (Kind(AWS, "v1beta1", name) for name in ("Network", "Subnet", "Machine"))
SHELF = Kind(GCP, "v1beta1", "Shelf")
RELEASE = Kind("helm.m.crossplane.io", "v1beta1", "Release")
ROLE = Kind("postgresql.sql.m.crossplane.io", "v1alpha1", "Role")
GRANT = Kind("postgresql.sql.m.crossplane.io", "v1alpha1", "Grant")
PROVIDER = Kind("pkg.crossplane.io", "v1", "Provider")
SCHEMA = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}}}
  versions:
    - name: v1beta1
      schema:
        openAPIV3Schema:
          properties:
            spec:
              properties:
                forProvider: {{type: object, required: [region], properties: {given}}}
            status:
              properties:
                atProvider: {{type: object, properties: {shown}}}
"""
_T = "{type: string}"
KINDS = {
    ("Network", "networks", AWS): (
        f"{{region: {_T}, cidr: {_T}}}",
        f"{{region: {_T}, cidr: {_T}, id: {_T}, arn: {_T}}}",
    ),
    ("Subnet", "subnets", AWS): (
        f"{{region: {_T}, networkId: {_T}, networkIdRef: {{}}, networkIdSelector: {{}}}}",
        f"{{id: {_T}, networkId: {_T}}}",
    ),
    ("Machine", "machines", AWS): (
        (
            f"{{region: {_T}, image: {_T}, size: {_T}, "
            f"disk: {{type: object, properties: {{key: {_T}}}}}, "
            f"subnetIds: {{type: array, items: {_T}}}, subnetIdRefs: {{type: array}}, "
            f"subnetIdSelector: {{}}, deletionProtection: {{type: boolean}}, "
            f"passwordSecretRef: {{}}, autoGeneratePassword: {{type: boolean}}}}"
        ),
        f"{{id: {_T}, size: {_T}, image: {_T}, publicIp: {_T}}}",
    ),
    ("Shelf", "shelves", GCP): (
        f"{{region: {_T}, class: {_T}, machineArn: {_T}}}",
        f"{{region: {_T}, class: {_T}, id: {_T}, selfLink: {_T}, books: {{type: integer}}}}",
    ),
}
BEHAVIOUR = f"""
Network.{AWS}: {{externalName: assigned, identifier: "net-0{{hex16}}"}}
Subnet.{AWS}: {{externalName: assigned, identifier: "sub-{{digits8}}", delay: 0.1s}}
Machine.{AWS}:
  externalName: assigned
  identifier: "i-0{{hex16}}"
  replaces: [image, disk.key]
  observed: {{publicIp: "203.0.113.7"}}
  connection: {{host: "{{atProvider.publicIp}}", password: "{{password}}", name: "m-{{name}}"}}
Shelf.{GCP}: {{observed: {{books: 3}}}}
"""


def schemas() -> dict[PurePosixPath, bytes]:
    files = {PurePosixPath("schemas/behaviour.yaml"): BEHAVIOUR.encode()}
    for (kind, plural, group), (given, shown) in KINDS.items():
        text = SCHEMA.format(kind=kind, plural=plural, group=group, given=given, shown=shown)
        files[PurePosixPath(f"schemas/{group}_{plural}.yaml")] = text.encode()
    return files


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    store = EmbeddedCluster(tmp_path_factory.mktemp("clouds") / "cluster.sqlite")
    for crd in crossplane_crds():
        store.apply(crd, owner=TEST)
    store.apply(made(NAMESPACE, HOME), owner=TEST)
    providers = Providers(store, ManagedLibrary(schemas()))
    twins = read_twins("aws, gcp,helm,sql")
    providers.ask_for(twins)
    for twin in twins:
        delay = note("embedded.orderkit.dev/delay", "0.2s")
        store.patch(ObjectKey(PROVIDER, f"embedded-{twin}"), delay, owner=TEST)
    providers.start()
    for twin in twins:
        wait(store, ObjectKey(PROVIDER, f"embedded-{twin}"), says("Healthy", "True"))
    yield store
    providers.stop()
    store.close()


def managed(kind: Kind, name: str, /, *, meta: Any = None, **for_provider: Any) -> Manifest:
    spec = for_provider.pop("spec", {})
    about = {"namespace": HOME, **(meta or {})}
    given = {"region": "eu-1", **for_provider}
    return made(kind, name, meta=about, spec={"forProvider": given, **spec})


def place(cluster: Cluster, manifest: Manifest) -> ObjectKey:
    return ObjectKey.of(cluster.create(manifest, owner=TEST))


def ready(cluster: Cluster, manifest: Manifest) -> Manifest:
    return wait(cluster, place(cluster, manifest), says("Ready", "True"))


def note(name: str, value: str | None) -> Manifest:
    return {"metadata": {"annotations": {name: value}}}


def external_name(manifest: Manifest) -> str:
    return str(metadata(manifest)["annotations"]["crossplane.io/external-name"])


def records(cluster: Cluster, name: str) -> list[Manifest]:
    found = cluster.list(EXTERNAL).items
    return [record for record in found if record["spec"]["externalName"] == name]


FAIL = "embedded.orderkit.dev/fail"


def test_an_assigned_name_looks_like_the_clouds_and_every_status_names_the_twin(
    cluster: Cluster,
) -> None:
    network = ready(cluster, managed(NETWORK, "wide", cidr="10.0.0.0/16"))

    name = external_name(network)
    assert len(name) == len("net-0") + 16
    assert name.startswith("net-0")
    assert network["status"]["atProvider"] == {
        "region": "eu-1",
        "cidr": "10.0.0.0/16",
        "id": name,
        "arn": f"arn:aws:net:eu-1:123456789012:network/{name}",
    }
    assert says("Twin", "True", "nothing exists outside")(network)
    assert says("Synced", "True")(network)


def test_a_named_kind_has_its_own_name_and_shows_what_the_schema_declares(cluster: Cluster) -> None:
    shelf = ready(cluster, managed(SHELF, "tall", **{"class": "oak"}))

    assert external_name(shelf) == "tall"
    shown = shelf["status"]["atProvider"]
    assert shown.pop("selfLink").endswith("/twin-project/eu-1/shelfs/tall")
    assert shown == {"region": "eu-1", "class": "oak", "id": "tall", "books": 3}


def test_a_field_that_the_provider_lacks_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Exception, match=r"spec\.forProvider\.wood"):
        cluster.create(managed(SHELF, "odd", wood="oak"), owner=TEST)


def test_a_reference_waits_for_its_referent_and_sets_the_field(cluster: Cluster) -> None:
    subnet = place(cluster, managed(SUBNET, "early", networkIdRef={"name": "late"}))
    wait(
        cluster,
        subnet,
        says("Synced", "False", 'mg.Spec.ForProvider.NetworkId: cannot get referenced resource: '
             f'networks.{AWS} "late" not found'),
    )  # fmt: skip

    network = ready(cluster, managed(NETWORK, "late"))

    found = wait(cluster, subnet, says("Ready", "True"))
    assert found["spec"]["forProvider"]["networkId"] == external_name(network)


def test_a_selector_takes_what_has_the_labels_and_the_same_owner(cluster: Cluster) -> None:
    order = cluster.create(made(CONFIG_MAP, "order", meta={"namespace": HOME}), owner=TEST)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "order", "controller": True}
    owners = [{**owner, "uid": metadata(order)["uid"]}]
    mine = {"ownerReferences": owners, "labels": {"zone": "a"}}
    other = {"labels": {"zone": "a"}}
    network = ready(cluster, managed(NETWORK, "all"))
    subnets = [
        ready(cluster, managed(SUBNET, name, meta=meta, networkIdRef={"name": "all"}))
        for name, meta in (("one", mine), ("two", mine), ("three", other))
    ]
    selector = {"matchControllerRef": True, "matchLabels": {"zone": "a"}}

    machine = ready(
        cluster,
        managed(MACHINE, "many", meta={"ownerReferences": owners},
                subnetIdSelector=selector),
    )  # fmt: skip

    expected = {external_name(subnet) for subnet in subnets[:2]}
    assert set(machine["spec"]["forProvider"]["subnetIds"]) == expected
    assert {ref["name"] for ref in machine["spec"]["forProvider"]["subnetIdRefs"]} == {"one", "two"}
    assert external_name(network) in {s["spec"]["forProvider"]["networkId"] for s in subnets}


def test_a_selector_without_match_says_so(cluster: Cluster) -> None:
    selector = {"matchLabels": {"zone": "nowhere"}}
    key = place(cluster, managed(SUBNET, "lost", networkIdSelector=selector))

    wait(cluster, key, says("Synced", "False", "no resources matched selector"))


def test_a_field_that_needs_a_replacement_leaves_the_resource_as_it_is(cluster: Cluster) -> None:
    key = ObjectKey.of(ready(cluster, managed(MACHINE, "fixed", image="a", disk={"key": "k"})))
    before = external_name(cluster.get(key) or {})

    cluster.patch(key, {"spec": {"forProvider": {"image": "b", "size": "xl"}}}, owner=TEST)

    refusal = (
        "update failed: async update failed: refuse to update the external resource because the "
        "following update requires replacing it: cannot change the value of the argument "
        '"image" from "a" to "b"'
    )
    stuck = wait(cluster, key, says("Synced", "False", refusal))
    assert says("Ready", "True")(stuck)
    assert stuck["status"]["atProvider"]["image"] == "a"
    assert "size" not in stuck["status"]["atProvider"]
    assert external_name(stuck) == before

    cluster.patch(key, {"spec": {"forProvider": {"image": "a"}}}, owner=TEST)
    mended = wait(cluster, key, lambda seen: seen["status"]["atProvider"].get("size") == "xl")
    assert says("Synced", "True")(mended)


def test_a_network_is_not_deleted_before_its_subnets(cluster: Cluster) -> None:
    network = ObjectKey.of(ready(cluster, managed(NETWORK, "first")))
    subnet = ObjectKey.of(ready(cluster, managed(SUBNET, "second", networkIdRef={"name": "first"})))

    cluster.delete(network)

    wait(cluster, network, says("Synced", "False", "DependencyViolation: Network 'net-0"))
    assert says("Ready", "False")(cluster.get(network) or {})
    cluster.delete(subnet)
    wait_gone(cluster, subnet)
    wait_gone(cluster, network)


def test_what_is_protected_in_the_cloud_is_not_deleted(cluster: Cluster) -> None:
    key = ObjectKey.of(ready(cluster, managed(MACHINE, "safe", deletionProtection=True)))

    cluster.delete(key)

    wait(cluster, key, says("Synced", "False", "deletionProtection is on"))
    cluster.patch(key, {"spec": {"managementPolicies": ["Observe"]}}, owner=TEST)
    wait_gone(cluster, key)


def in_the_cloud(name: str, **for_provider: Any) -> Manifest:
    about = {"apiVersion": SHELF.api_version, "kind": "Shelf", "externalName": name}
    return made(EXTERNAL, f"found-{name}", spec={**about, "forProvider": for_provider})


def test_what_somebody_else_made_is_observed_and_then_managed(cluster: Cluster) -> None:
    meta = {"annotations": {"crossplane.io/external-name": "attic"}}
    spec = {"managementPolicies": ["Observe"]}
    key = place(cluster, managed(SHELF, "import", meta=meta, spec=spec, **{"class": "oak"}))
    wait(cluster, key, says("Synced", "False", "observe failed: external resource does not exist"))
    cluster.apply(in_the_cloud("attic", region="eu-1", **{"class": "pine"}), owner=TEST)

    seen = wait(cluster, key, says("Ready", "True"))

    assert seen["status"]["atProvider"]["class"] == "pine"
    assert records(cluster, "attic")[0]["spec"]["forProvider"]["class"] == "pine"
    cluster.patch(key, {"spec": {"managementPolicies": ["*"]}}, owner=TEST)
    wait(cluster, key, lambda found: dig(found, "status", "atProvider", "class") == "oak")
    assert len(records(cluster, "attic")) == 1


def test_what_is_imported_fills_in_what_the_spec_leaves_open(cluster: Cluster) -> None:
    cluster.apply(in_the_cloud("cellar", region="eu-1", **{"class": "pine"}), owner=TEST)
    meta = {"annotations": {"crossplane.io/external-name": "cellar"}}

    shelf = ready(cluster, managed(SHELF, "late-init", meta=meta))

    assert shelf["spec"]["forProvider"]["class"] == "pine"


def test_an_invented_name_of_an_assigned_kind_is_never_created(cluster: Cluster) -> None:
    meta = {"annotations": {"crossplane.io/external-name": "my-machine"}}
    key = place(cluster, managed(MACHINE, "named", meta=meta))

    wait(cluster, key, says("Synced", "False", "the cloud assigns the names of its kind"))
    assert not records(cluster, "my-machine")


def interrupted(cluster: Cluster, name: str) -> ObjectKey:
    """Return a paused machine that exists in the cloud as `name` and does not say so yet."""
    meta = note("crossplane.io/paused", "true")["metadata"]
    finalizers = ["finalizer.managedresource.crossplane.io"]
    key = place(cluster, managed(MACHINE, name, meta={**meta, "finalizers": finalizers}))
    owner = {**key.to_json(), "uid": metadata(cluster.get(key) or {})["uid"]}
    about = {"apiVersion": MACHINE.api_version, "kind": "Machine", "externalName": name}
    state = {"managedBy": owner, "createdAt": "2026-11-23T12:00:00+00:00", "forProvider": {}}
    cluster.apply(made(EXTERNAL, f"found-{name}", spec={**about, **state}), owner=TEST)
    return key


def test_an_interrupted_creation_continues_with_what_exists(cluster: Cluster) -> None:
    key = interrupted(cluster, "i-0123456789abcdef0")

    cluster.patch(key, note("crossplane.io/paused", None), owner=TEST)

    assert external_name(wait(cluster, key, says("Ready", "True"))) == "i-0123456789abcdef0"


def test_the_end_after_an_interrupted_creation_leaves_nothing(cluster: Cluster) -> None:
    key = interrupted(cluster, "i-0123456789abcdef1")

    cluster.delete(key)
    cluster.patch(key, note("crossplane.io/paused", None), owner=TEST)

    wait_gone(cluster, key)
    assert not records(cluster, "i-0123456789abcdef1")


def test_drift_in_the_cloud_is_put_right(cluster: Cluster) -> None:
    ready(cluster, managed(SHELF, "drifts", **{"class": "oak"}))
    record = ObjectKey.of(records(cluster, "drifts")[0])

    cluster.patch(record, {"spec": {"forProvider": {"class": "pine"}}}, owner="somebody")

    wait(cluster, record, lambda seen: seen["spec"]["forProvider"]["class"] == "oak")


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ("quota", "create failed: QuotaExceeded"),
        ("notfound", "create failed: NotFound"),
        ("denied", "create failed: AccessDenied"),
        ("throttled", "observe failed: Throttling: Rate exceeded"),
        ("vanished", "was deleted outside of Crossplane"),
    ],
)
def test_it_fails_as_asked_until_the_annotation_goes(
    cluster: Cluster, failure: str, text: str
) -> None:
    meta = {"annotations": {FAIL: failure}}
    key = place(cluster, managed(SHELF, f"fails-{failure}", meta=meta))
    failed = wait(cluster, key, says("Synced", "False", text))
    assert not says("Ready", "True")(failed)

    cluster.patch(key, note(FAIL, None), owner=TEST)

    wait(cluster, key, lambda seen: says("Ready", "True")(seen) and says("Synced", "True")(seen))


def test_two_that_manage_one_thing_do_not_overwrite_each_other_for_ever(cluster: Cluster) -> None:
    meta = {"annotations": {"crossplane.io/external-name": "shared"}}
    ready(cluster, managed(SHELF, "first", meta=meta, **{"class": "oak"}))

    rival = place(cluster, managed(SHELF, "second", meta=meta, **{"class": "pine"}))

    wait(cluster, rival, says("Synced", "False", f"{HOME}/first manages 'shared'"))
    assert records(cluster, "shared")[0]["spec"]["forProvider"]["class"] == "oak"
    cluster.delete(ObjectKey(SHELF, "first", HOME))
    wait(cluster, rival, says("Ready", "True"))
    assert records(cluster, "shared")[0]["spec"]["forProvider"]["class"] == "pine"


def test_what_vanishes_is_made_again_under_another_name(cluster: Cluster) -> None:
    first = ready(cluster, managed(MACHINE, "gone"))
    key = ObjectKey.of(first)
    cluster.patch(key, note(FAIL, "vanished"), owner=TEST)
    wait(cluster, key, says("Ready", "False"))

    cluster.patch(key, note(FAIL, None), owner=TEST)

    again = wait(cluster, key, says("Ready", "True"))
    assert external_name(again) != external_name(first)


def test_a_slow_one_is_synced_and_not_ready(cluster: Cluster) -> None:
    key = place(cluster, managed(SHELF, "slow", meta={"annotations": {FAIL: "slow"}}))
    wait(cluster, key, lambda seen: says("Synced", "True")(seen) and says("Ready", "False")(seen))
    assert records(cluster, "slow")

    cluster.patch(key, note(FAIL, None), owner=TEST)

    wait(cluster, key, says("Ready", "True"))


def secret(cluster: Cluster, name: str) -> dict[str, str]:
    data = (cluster.get(ObjectKey(SECRET, name, HOME)) or {}).get("data", {})
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


def test_a_connection_secret_is_as_declared_and_its_password_stays(cluster: Cluster) -> None:
    spec = {"writeConnectionSecretToRef": {"name": "way-in"}}
    key = ObjectKey.of(ready(cluster, managed(MACHINE, "open", spec=spec, size="s")))
    first = secret(cluster, "way-in")
    assert first == {"host": "203.0.113.7", "name": "m-open", "password": first["password"]}

    cluster.delete(ObjectKey(SECRET, "way-in", HOME))
    cluster.patch(key, {"spec": {"forProvider": {"size": "m"}}}, owner=TEST)

    wait(cluster, ObjectKey(SECRET, "way-in", HOME), lambda _: True)
    assert secret(cluster, "way-in") == first


def test_a_secret_of_somebody_else_is_not_written_over(cluster: Cluster) -> None:
    theirs = made(SECRET, "theirs", meta={"namespace": HOME}, data={"a": "YQ=="})
    cluster.apply(theirs, owner="somebody")
    spec = {"writeConnectionSecretToRef": {"name": "theirs"}}

    key = place(cluster, managed(MACHINE, "greedy", spec=spec))

    wait(cluster, key, says("Synced", "False", "existing secret is not controlled by UID"))
    assert secret(cluster, "theirs") == {"a": "a"}


def test_a_password_comes_from_the_secret_that_is_named(cluster: Cluster) -> None:
    ref = {"name": "chosen", "key": "password"}
    spec = {"writeConnectionSecretToRef": {"name": "from-chosen"}}
    key = place(cluster, managed(MACHINE, "chosen", spec=spec, passwordSecretRef=ref))
    wait(
        cluster, key, says("Synced", "False", 'key "password" of Secret "team-a/chosen" not found')
    )
    data = {"password": base64.b64encode(b"s3cret").decode()}

    cluster.apply(made(SECRET, "chosen", meta={"namespace": HOME}, data=data), owner=TEST)

    wait(cluster, key, says("Ready", "True"))
    assert secret(cluster, "from-chosen")["password"] == "s3cret"
    assert "passwordSecretRef" not in str(cluster.list(EXTERNAL).items)


def test_a_password_is_made_once_where_the_provider_is_asked_to(cluster: Cluster) -> None:
    ref = {"name": "made", "key": "password"}
    ready(cluster, managed(MACHINE, "auto", passwordSecretRef=ref, autoGeneratePassword=True))

    assert secret(cluster, "made")["password"].startswith("twin-")


def test_a_release_is_deployed_and_counts_its_revisions(cluster: Cluster) -> None:
    chart = {"name": "cert-manager", "repository": "https://charts.example.org", "version": "1.0.0"}
    manifest = made(
        RELEASE, "certs", meta={"namespace": HOME}, spec={"forProvider": {"chart": chart}}
    )
    key = ObjectKey.of(ready(cluster, manifest))
    first = dig(cluster.get(key), "status", "atProvider")
    assert (first["state"], first["revision"], first["version"]) == ("deployed", 1, "1.0.0")

    cluster.patch(key, {"spec": {"forProvider": {"chart": {"version": "1.1.0"}}}}, owner=TEST)
    wait(cluster, key, lambda seen: seen["status"]["atProvider"]["revision"] == 2)
    cluster.patch(key, note(FAIL, "quota"), owner=TEST)
    cluster.patch(key, {"spec": {"forProvider": {"chart": {"version": "1.2.0"}}}}, owner=TEST)

    failed = wait(cluster, key, says("Synced", "False", "update failed: QuotaExceeded"))
    assert failed["status"]["atProvider"]["state"] == "failed"


def test_the_same_name_in_another_place_is_another_thing(cluster: Cluster) -> None:
    for name, region in (("north", "eu-1"), ("south", "us-1")):
        meta = {"annotations": {"crossplane.io/external-name": "twice"}}
        ready(cluster, managed(SHELF, name, meta=meta, region=region))

    regions = {record["spec"]["forProvider"]["region"] for record in records(cluster, "twice")}
    assert regions == {"eu-1", "us-1"}


def test_a_database_role_has_credentials_and_a_grant_waits_for_it(cluster: Cluster) -> None:
    about = {"forProvider": {"roleRef": {"name": "app"}, "privileges": ["ALL"]}}
    grant = place(cluster, made(GRANT, "app", meta={"namespace": HOME}, spec=about))
    wait(cluster, grant, says("Synced", "False", "cannot resolve references"))
    spec = {"forProvider": {}, "writeConnectionSecretToRef": {"name": "app-db"}}

    ready(cluster, made(ROLE, "app", meta={"namespace": HOME}, spec=spec))

    found = wait(cluster, grant, says("Ready", "True"))
    assert found["spec"]["forProvider"]["role"] == "app"
    assert secret(cluster, "app-db").keys() == {"username", "password", "endpoint", "port"}


def test_a_provider_that_names_its_service_takes_its_kinds(cluster: Cluster) -> None:
    """Whoever says more plays a kind; the twin of a whole cloud has the rest."""
    meta = {"annotations": {"embedded.orderkit.dev/twin": "gcp", FAIL: "throttled"}}
    package = {"package": "example.org/provider-gcp-store:v1"}
    cluster.apply(made(PROVIDER, "gcp-store", meta=meta, spec=package), owner=TEST)
    key = ObjectKey(PROVIDER, "gcp-store")
    wait(cluster, key, says("Healthy", "True"))
    try:
        shelf = place(cluster, managed(SHELF, "throttled-for-all"))
        wait(cluster, shelf, says("Synced", "False", "Rate exceeded"))
    finally:
        cluster.delete(key)

    wait(cluster, shelf, lambda seen: says("Ready", "True")(seen) and says("Synced", "True")(seen))


def test_an_unknown_twin_is_named() -> None:
    with pytest.raises(InvalidInputError, match="'asw' is not a twin"):
        read_twins("aws,asw")
    assert condition({}, "Twin") is None
