"""Why a part fails that does not say it itself: by its events, its Pods, or a selector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from bareplatform import platform_of
from refusedreads import RefusedReads

from ground.objects.kube_objects import COMPOSITION, TRACKING_ID, Kind, Manifest, ObjectKey
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import UNSYNCED
from orderkit.flows.order.closer_look import (
    CROSSPLANES_OWN,
    closer_state,
    in_words,
    is_worth_a_look,
    without_secrets,
)
from orderkit.flows.platform import Platform
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.testing import permissive_crd

HOME = "shop"
LABELS = {"app": "shop"}
EVENT_SAYS, POD_SAYS = "no volume fits", "Back-off pulling image"
CONTAINERS = [{"name": "a", "image": "b"}]


def manifest(kind: str, name: str, **rest: Any) -> Manifest:
    version = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1",
               "DaemonSet": "apps/v1", "Job": "batch/v1"}.get(kind, "v1")  # fmt: skip
    return {"apiVersion": version, "kind": kind, "metadata": meta(name), **rest}


def meta(name: str, **rest: Any) -> dict[str, Any]:
    return {"name": name, "namespace": HOME, "uid": f"uid-{name}", **rest}


def event(name: str, of: str, namespace: str = HOME) -> Manifest:
    """Return an event about an object; of another one if it has another uid."""
    seen = "2026-11-24T07:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"uid": f"uid-{of}", "namespace": namespace, "name": of},
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": EVENT_SAYS,
        "firstTimestamp": seen,
        "lastTimestamp": seen,
        "source": {"component": "test"},
    }


def composition(name: str, of: str, labels: dict[str, str]) -> Manifest:
    return {
        "apiVersion": COMPOSITION.api_version,
        "kind": COMPOSITION.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {"compositeTypeRef": {"apiVersion": "lab.example.org/v1", "kind": of}},
    }


def owned_by(uid: str) -> list[dict[str, Any]]:
    owner = {"apiVersion": "lab.example.org/v1", "kind": "App", "name": "o", "uid": uid}
    return [{**owner, "controller": True}]


def config(name: str, uid: str) -> Manifest:
    owners = {"namespace": HOME, "ownerReferences": owned_by(uid)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **owners}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path_factory.mktemp("cluster") / "cluster.sqlite")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    found.create(home, owner="test")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shop-0", "namespace": HOME, "labels": LABELS},
        "spec": {"containers": CONTAINERS},
    }
    waiting = {"reason": "ImagePullBackOff", "message": POD_SAYS}
    status = {"containerStatuses": [
        {"name": "a", "image": "b", "imageID": "", "ready": False, "restartCount": 0,
         "state": {"waiting": waiting}}
    ]}  # fmt: skip
    created = found.create(pod, owner="test")
    found.replace({**created, "status": status}, owner="test", status=True)
    kinds = permissive_crd(COMPOSITION, namespaced=False)
    found.create(kinds, owner="test")
    for made in (
        event("one", "told"),
        event("two", "everywhere", "default"),
        composition("app-small", "App", {"size": "s"}),
        composition("other", "Other", {}),
        config("ours", "o"),
        config("theirs", "p"),
    ):
        found.create(made, owner="test")
    yield found
    found.close()


@pytest.fixture
def platform(cluster: EmbeddedCluster) -> Platform:
    return platform_of(cluster)


SELECTED = {"selector": {"matchLabels": LABELS}}
ONE = {"replicas": 1, **SELECTED}
UNREADY = {"spec": {"replicas": 2, **SELECTED}, "status": {"readyReplicas": 1}}
PENDING = {"status": {"phase": "Pending"}}


@dataclass(frozen=True)
class Look:
    reason: str
    manifest: Manifest
    told: str


LOOKS = [
    Look("too few replicas: its Pods say why", manifest("Deployment", "d", **UNREADY), POD_SAYS),
    Look("its own event counts first", manifest("Deployment", "told", **UNREADY), EVENT_SAYS),
    Look(
        "one replica is the default",
        manifest("StatefulSet", "s", spec=SELECTED, status={}),
        POD_SAYS,
    ),
    Look(
        "all replicas are ready",
        manifest("ReplicaSet", "told", spec=ONE, status={"readyReplicas": 1}),
        "",
    ),
    Look(
        "a node has no Pod of it yet",
        manifest(
            "DaemonSet",
            "s",
            spec=SELECTED,
            status={"numberReady": 0, "desiredNumberScheduled": 1},
        ),
        POD_SAYS,
    ),
    Look("no node is to have a Pod of it", manifest("DaemonSet", "told", spec=SELECTED), ""),
    Look("no labels select Pods", manifest("StatefulSet", "s", spec={"selector": {}}), ""),
    Look(
        "empty labels select no Pods",
        manifest("StatefulSet", "s", spec={"selector": {"matchLabels": {}}}),
        "",
    ),
    Look("a claim is pending", manifest("PersistentVolumeClaim", "told", **PENDING), EVENT_SAYS),
    Look("of another claim", manifest("PersistentVolumeClaim", "silent", **PENDING), ""),
    Look(
        "a claim is bound",
        manifest("PersistentVolumeClaim", "told", status={"phase": "Bound"}),
        "",
    ),
    Look("a Job has not ended", manifest("Job", "told", status={}), EVENT_SAYS),
    Look("a Job succeeded", manifest("Job", "told", status={"succeeded": 1}), ""),
    Look(
        "a Job has ended",
        manifest("Job", "told", status={"completionTime": "2026-11-24T07:00:00Z"}),
        "",
    ),
    Look("a kind that speaks for itself", manifest("ConfigMap", "told"), ""),
    Look(
        "it is being deleted",
        manifest("Job", "told", status={})
        | {"metadata": meta("told", deletionTimestamp="2026-11-24T07:00:00Z")},
        "is being deleted",
    ),
    Look(
        "it says itself why it fails",
        manifest(
            "Deployment",
            "told",
            spec={"replicas": 2, **SELECTED},
            status={
                "conditions": [
                    {"type": "ReplicaFailure", "status": "True", "message": "quota is used up",
                     "lastTransitionTime": "2026-11-24T07:00:00Z"}
                ]
            },
        ),
        "quota is used up",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", LOOKS, ids=lambda case: case.reason)
def test_a_part_fails_for_the_reason_that_events_or_pods_have(
    case: Look, platform: Platform
) -> None:
    state = closer_state(platform.cluster, case.manifest)

    assert case.told in state.reason
    assert (EVENT_SAYS in state.reason) is (case.told == EVENT_SAYS)
    assert (POD_SAYS in state.reason) is (case.told == POD_SAYS)
    assert bool(state.fails_from) is bool(case.told and case.told != "is being deleted")


def xr(reason: str, name: str = "everywhere", **spec: Any) -> Manifest:
    synced = {"type": "Synced", "status": "True"}
    ready = {"type": "Ready", "status": "False", "reason": "Creating", "message": reason}
    return {
        "apiVersion": "lab.example.org/v1",
        "kind": "App",
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": {TRACKING_ID: "x"}},
        "spec": {**SELECTED, **spec},
        "status": {"conditions": [synced, ready]},
    }


def test_an_xr_whose_objects_were_refused_says_it_by_its_events_alone(
    platform: Platform, cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    unsynced = f"{UNSYNCED}: bucket"

    assert EVENT_SAYS in closer_state(platform.cluster, xr(unsynced)).reason
    assert unsynced in closer_state(platform.cluster, xr(unsynced, "silent")).reason
    assert unsynced in closer_state(refused.of(cluster, {"Event"}), xr(unsynced)).reason


@pytest.mark.parametrize(
    ("unread", "told"), [({"Event"}, POD_SAYS), ({"Pod"}, EVENT_SAYS), ({"Event", "Pod"}, "")]
)
def test_who_may_not_read_events_or_pods_sees_less(
    unread: set[str], told: str, cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    limited = refused.of(cluster, unread)

    reason = closer_state(limited, manifest("Deployment", "told", **UNREADY)).reason

    assert told in reason
    assert {EVENT_SAYS in reason, POD_SAYS in reason} == ({True, False} if told else {False})


def part(kind: Kind, reason: str = "", fails_from: str = "") -> PartState:
    return PartState(ObjectKey(kind, "a", HOME), "True", "False", reason, fails_from)


CLAIM, JOB = Kind("", "v1", "PersistentVolumeClaim"), Kind("batch", "v1", "Job")
UNMATCHED = "mg.Spec.ForProvider.VPCID: no resources matched selector"


@pytest.mark.parametrize(
    ("state", "is_worth"),
    [
        (part(CLAIM), True),
        (part(JOB), True),
        (part(CLAIM, "is lost", "2026-11-24T07:00:00Z"), False),
        (part(Kind("", "v1", "Secret")), False),
        (part(Kind("batch", "v1", "CronJob")), False),
        (part(Kind("other", "v1", "Job")), False),
        (part(Kind("lab.example.org", "v1", "App"), f"{UNSYNCED}: a"), True),
        (part(Kind("lab.example.org", "v1", "App"), UNMATCHED, "2026-11-24T07:00:00Z"), True),
    ],
)
def test_a_part_is_looked_at_if_others_may_say_more(state: PartState, is_worth: object) -> None:
    assert is_worth_a_look(state) is is_worth


def managed(field: str, selector: dict[str, Any], owner: str = "") -> Manifest:
    rules = [{f"{field}Selector": selector}, {"otherSelector": "a text"}]
    return {
        "apiVersion": "v1",
        "kind": "Bucket",
        "metadata": {"name": "b", "ownerReferences": owned_by(owner) if owner else []},
        "spec": {"forProvider": {"rules": rules, f"{field}s": "x"}},
    }


WEB = {"matchLabels": {"tier": "web"}}


@pytest.mark.parametrize(
    ("field", "asked", "selector", "told"),
    [
        ("podName", "PodName", WEB, "no Pod has the labels tier=web; there is shop-0 (app=shop)"),
        ("podNames", "PodNames", WEB, "no Pod has the labels tier=web"),
        ("podId", "PodIDs", WEB, "no Pod has the labels tier=web"),
        ("podRef", "PodRef", {}, "no Pod is there; there is shop-0"),
        ("subnetId", "SubnetID", {}, "subnetIdSelector asks for no labels"),
        ("subnetId", "VPCID", {}, None),
    ],
)
def test_a_selector_is_told_with_what_there_is(
    field: str, asked: str, selector: dict[str, Any], told: str | None, platform: Platform
) -> None:
    reason = f"mg.Spec.ForProvider.Rules[0].{asked}: no resources matched selector"

    words = in_words(platform.cluster, managed(field, selector), reason)

    assert words.startswith(f"{reason}: {told}" if told else reason)
    assert (words == reason) is (told is None)


def test_a_selector_of_the_same_owner_leaves_out_the_others_objects(platform: Platform) -> None:
    reason = "mg.Spec.ForProvider.ConfigMapName: no resources matched selector"
    selector = {**WEB, "matchControllerRef": True}

    owned = in_words(platform.cluster, managed("configMapName", selector, "o"), reason)
    orphan = in_words(platform.cluster, managed("configMapName", selector), reason)

    same = "no ConfigMap of the same App has the labels tier=web; there is ours (without labels)"
    assert owned == f"{reason}: {same}"
    assert "there are ours (without labels), theirs" in orphan


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({"crossplane": {"compositionSelector": {"matchLabels": {"size": "l"}}}}, "size=l"),
        ({"compositionSelector": {"matchLabels": {"size": "m"}}}, "size=m"),
        ({}, ""),
    ],
)
def test_an_xr_is_told_the_compositions_of_its_kind(
    spec: dict[str, Any], asked: str, platform: Platform
) -> None:
    none = "cannot select Composition: no compatible Compositions found"
    condition = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": none}
    order = xr("", "silent", **spec) | {"status": {"conditions": [condition]}}

    state = closer_state(platform.cluster, order)

    wanted = f"has the labels {asked}" if asked else "is there"
    assert state.reason == f"{none}: no Composition of App {wanted}; there is app-small (size=s)"
    assert is_worth_a_look(state)


def test_what_may_not_be_read_is_left_out_of_the_words(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    unread = refused.of(cluster, {"Pod", "Composition"})
    reason = "mg.Spec.ForProvider.PodName: no resources matched selector"
    none = "no compatible Compositions found"

    words = in_words(unread, managed("podName", WEB), reason)

    assert words == f"{reason}: podNameSelector asks for the labels tier=web"
    assert in_words(unread, xr(none), none) == none


@pytest.mark.parametrize("reason", ["quota is used up", f"{CROSSPLANES_OWN[0]}bucket", ""])
def test_a_reason_that_no_station_wrote_is_told_without_reading_a_secret(reason: str) -> None:
    """The platform has no cluster: who asked it would fail."""
    state = OrderState("Failing", reason=reason, advice="")
    conditions = [{"message": message} for message in ("other", CROSSPLANES_OWN[0] + "bucket")]
    composed = {"status": {"conditions": conditions}}

    for order in (None, composed):
        assert without_secrets(platform_of(None), order, state) == state
    assert without_secrets(platform_of(None), {}, replace(state, reason="x")).reason == "x"
