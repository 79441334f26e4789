"""Layers of the platform: what Argo CD does not deliver is told; no foreign objects are pruned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rivals import Rival

from ground.errors import IncompleteError, RefusedError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, CONFIG_MAP, Kind, ObjectKey
from kubeschema.xrd import crd_for
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.order.ledger import ORDER_LABEL
from orderkit.flows.argocd.commit_pinning import refuse_lost_tools
from orderkit.flows.argocd.layer_waiting import await_layer, await_taken_up
from orderkit.flows.argocd.refreshing import obstacle
from orderkit.flows.install.bootstrapping import BootstrapRequest
from orderkit.flows.install.doctor_checks import found
from orderkit.flows.install.drift import check
from orderkit.flows.install.pack_rendering import values_of
from orderkit.flows.platform import Platform, published_pack
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import crossplane_crds
from orderkit_standins.serve_platform import Running

LAYER = "layer"
RECORDED = Path(__file__).parents[2] / "unit/argocd/applications"


@pytest.fixture
def quiet(platform: Running, tmp_path: Path) -> Iterator[Platform]:
    """The platform with a cluster of its own, in which no Argo CD runs."""
    with closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster:
        for crd in argocd_crds():
            cluster.apply(crd, owner="test")
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGOCD_NAMESPACE}}
        cluster.apply(home, owner="test")
        yield replace(platform.platform, cluster=cluster)


def put(platform: Platform, name: str, *, status: dict[str, Any], **more: Any) -> None:
    """Create an Application as Argo CD has left it."""
    labels = more.pop("labels", {})
    source = {"repoURL": "https://forge.example/a/b.git", "path": ".", **more}
    manifest = {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": name, "namespace": ARGOCD_NAMESPACE, "labels": labels},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc"},
        },
        "status": status,
    }
    platform.cluster.apply(manifest, owner="test")


def head(platform: Platform) -> CommitSha:
    found = platform.forge.head(platform.pack_repo)
    assert found is not None
    return found


def ended(commit: str, phase: str, **more: Any) -> dict[str, Any]:
    """Return the status of an Application whose sync of a commit is over."""
    operation = {
        "operation": {"sync": {"revision": commit}},
        "phase": phase,
        "startedAt": "2026-01-01T00:00:00Z",
        "message": "one or more objects failed to apply",
        "syncResult": {"revision": commit},
    }
    return {
        "sync": {"status": "OutOfSync", "revision": commit},
        "operationState": operation,
        **more,
    }


@pytest.mark.parametrize("message", ["no Pods", ""])
def test_a_layer_whose_objects_are_not_healthy_is_told_by_doctor(
    quiet: Platform, message: str
) -> None:
    health = {"status": "Degraded", **({"message": message} if message else {})}
    put(quiet, LAYER, status={"sync": SYNCED, "health": health})

    layers = found("layers", quiet)

    why = message or "what it delivers is not healthy"
    assert (layers.verdict, layers.detail) == ("fail", f"{LAYER}: Degraded: {why}")


def test_a_kind_that_the_cluster_does_not_serve_is_named_with_what_lacks(
    platform: Running, quiet: Platform
) -> None:
    """Crossplane, which would make the CRD, does not run either."""
    cluster, wanted = quiet.cluster, with_crossplane(quiet, platform)
    xrd = next(iter(published_pack(quiet).kits())).xrd
    condition = {"type": "Established", "status": "True", "reason": "WatchingCompositeResource"}
    status = {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}

    acts: tuple[Callable[[], object], ...] = (
        lambda: cluster.apply(xrd, owner="test"),
        lambda: cluster.patch(ObjectKey.of(xrd), {"status": status}, owner="test", status=True),
        lambda: cluster.apply(crd_for(cluster.get(ObjectKey.of(xrd)) or {}), owner="test"),
    )
    found = [kinds(quiet, wanted)]
    for act in acts:
        act()
        found.append(kinds(quiet, wanted))

    name = xrd["metadata"]["name"]
    assert found == [
        ("fail", f"garage: no XRD {name}"),
        ("fail", f"garage: XRD {name} is not established"),
        ("fail", f"garage: no CRD {name}"),
        ("ok", "1 kits' kinds are served"),
    ]


def with_crossplane(quiet: Platform, platform: Running) -> BootstrapRequest:
    """Let the cluster serve Crossplane's kinds; return what a bootstrap would be asked."""
    for crd in crossplane_crds():
        quiet.cluster.apply(crd, owner="test")
    pack, values = read_folder(reference_pack()), values_of(platform.settings, "0" * 40)
    return BootstrapRequest(pack, values, "user:default/me")


def kinds(platform: Platform, request: BootstrapRequest) -> tuple[str, str]:
    (found,) = (each for each in check(platform, request) if each.check == "kinds")
    return found.verdict, found.detail


def test_projects_that_cannot_be_compared_are_told_and_the_rest_is_checked(
    platform: Running, quiet: Platform
) -> None:
    lost = replace(quiet, ledger=RepoId("platform", "nothing"))

    found = {each.check: each for each in check(lost, with_crossplane(quiet, platform))}

    assert found["projects"].verdict == "fail"
    assert "platform/nothing: no ledger" in found["projects"].detail
    assert "kinds" in found


def test_without_a_root_no_layer_is_waited_for(quiet: Platform) -> None:
    with pytest.raises(IncompleteError, match="the Application root does not exist") as caught:
        await_taken_up(quiet, head(quiet), timeout_s=30)

    assert "'orderkit bootstrap' creates it again" in caught.value.hint


def test_a_layer_that_argo_cd_gave_up_is_not_waited_for(quiet: Platform) -> None:
    commit = head(quiet)
    put(quiet, LAYER, status=ended(commit, "Failed"))

    with pytest.raises(IncompleteError, match=f"Argo CD gave {commit[:8]} up: .*failed to apply"):
        await_layer(quiet, LAYER, commit, timeout_s=30)


def test_a_layer_that_is_not_healthy_names_the_object(quiet: Platform) -> None:
    resource = {"version": "v1", "kind": CONFIG_MAP.kind, "name": "gone", "namespace": "x"}
    commit = head(quiet)
    synced = {"sync": {"status": "Synced", "revision": commit}}
    health = {"health": {"status": "Degraded"}, "resources": [resource]}
    put(quiet, LAYER, status=ended(commit, "Succeeded", **health, **synced))

    with pytest.raises(IncompleteError, match=r"Degraded: ConfigMap gone is Missing$"):
        await_layer(quiet, LAYER, None, timeout_s=0.1)


@pytest.mark.parametrize("tool", ["jsonnet", "helm"])
def test_no_tool_is_switched_off_that_renders_somebody_elses_application(
    quiet: Platform, tool: str
) -> None:
    """Argo CD would read its folder as plain manifests, and prune what is not there."""
    off, on = {f"{tool}.enable": "false"}, dict[str, str]()
    is_jsonnet = tool == "jsonnet"
    jsonnet = {"directory": {"jsonnet": {"extVars": [{"name": "a", "value": "b"}]}}}
    status = {} if is_jsonnet else {"sourceType": "Helm"}
    source = jsonnet if is_jsonnet else {}
    put(quiet, "an-order", status=status, labels={ORDER_LABEL: "an-order"}, **source)
    refuse_lost_tools(quiet.cluster, off, on)
    put(quiet, "of-others", status=status, **source)

    with pytest.raises(RefusedError, match=f"'of-others' is rendered by {tool}") as caught:
        refuse_lost_tools(quiet.cluster, off, on)

    assert f"spec.argocd.tools: [{tool}]" in caught.value.hint
    refuse_lost_tools(quiet.cluster, off, off)
    assert quiet.cluster.get(ObjectKey(APPLICATION, "of-others", ARGOCD_NAMESPACE)) is not None


DEPLOYMENT = Kind("apps", "v1", "Deployment")
RUNS = {"type": "Progressing", "status": "True"}
LACKS = {"type": "Available", "status": "False", "message": "no Pods"}
REFUSED = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "no quota"}


@pytest.mark.parametrize(
    ("status", "finalizer", "told"),
    [
        ({"conditions": [RUNS, LACKS]}, "", ": Available is False: no Pods"),
        ({"conditions": [REFUSED]}, "", "no quota"),
        ({"conditions": [RUNS]}, "", ""),
        ({}, "", ": it has no status yet"),
        ({}, "example.org/backup", ": it is being deleted, held by example.org/backup"),
        (None, "", ": it is not in the cluster"),
    ],
)
def test_what_an_application_waits_for_says_why_it_is_not_ready(
    quiet: Platform, status: dict[str, Any] | None, finalizer: str, told: str
) -> None:
    key, cluster = ObjectKey(DEPLOYMENT, "d", ARGOCD_NAMESPACE), quiet.cluster
    application = json.loads((RECORDED / "waiting-wave.json").read_text())
    operation = application["status"]["operationState"]
    operation["syncResult"]["resources"][0]["namespace"] = ARGOCD_NAMESPACE
    if status is not None:
        labels = {"app": "d"}
        pod = {"containers": [{"name": "d", "image": "d:1"}]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        meta: dict[str, Any] = {"name": "d", "namespace": ARGOCD_NAMESPACE}
        if finalizer:
            meta |= {"finalizers": [finalizer]}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        head = {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.kind, "metadata": meta}
        cluster.create({**head, "spec": spec}, owner="test")
    if status:
        cluster.patch(key, {"status": status}, owner="test", status=True)
    if finalizer:
        cluster.delete(key)

    found = obstacle(cluster, application)

    assert found is not None
    assert "is applying" not in found.reason
    assert found.reason.endswith(told) if told else not found.reason.endswith(": ")


SYNCED = {"status": "Synced", "revision": "c" * 40}
SICK = {"health": {"status": "Degraded", "message": "no Pods"}}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"sync": SYNCED, **SICK}, ": Degraded: no Pods"),
        ({"sync": SYNCED, "health": {"status": "Degraded"}}, ": Degraded"),
        (
            {
                "sync": {"status": "Unknown"},
                "conditions": [{"type": "ComparisonError", "message": "no such path"}],
                **SICK,
            },
            "no such path",
        ),
    ],
    ids=["not healthy", "without a message", "not delivered"],
)
def test_what_an_application_of_applications_waits_for_says_why_it_is_not_ready(
    quiet: Platform, status: dict[str, Any], told: str
) -> None:
    put(quiet, "d", status=status)
    application = json.loads((RECORDED / "waiting-wave.json").read_text())
    operation = application["status"]["operationState"]
    operation["message"] = "waiting for healthy state of argoproj.io/Application/d"
    kind = {"group": APPLICATION.group, "kind": APPLICATION.kind, "version": APPLICATION.version}
    operation["syncResult"]["resources"][0] |= {**kind, "namespace": ARGOCD_NAMESPACE}

    found = obstacle(quiet.cluster, application)

    assert found is not None
    assert found.reason.endswith(told)


def test_an_operation_that_begins_to_retry_an_older_commit_is_ended_for_the_newer_one(
    quiet: Platform,
) -> None:
    key, older = ObjectKey(APPLICATION, LAYER, ARGOCD_NAMESPACE), ended("0" * 40, "Running")
    older["operationState"]["operation"] |= {"initiatedBy": {"automated": True}}
    put(quiet, LAYER, status=older)
    retried = {"status": {"operationState": {"retryCount": 1}}}
    nudged: Any = Rival(
        quiet.cluster,
        "patch",
        lambda: quiet.cluster.patch(key, retried, owner="test"),
        when="after",
    )

    with pytest.raises(IncompleteError):
        await_layer(replace(quiet, cluster=nudged), LAYER, head(quiet), timeout_s=0.5)

    layer = quiet.cluster.get(key)
    assert nudged.has_acted
    assert layer is not None
    assert layer["status"]["operationState"]["phase"] == "Terminating"
