"""The real kubectl against the embedded cluster."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING

from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey
from orderkit_standins.cluster import EmbeddedCluster

if TYPE_CHECKING:
    from extras.standins.tests.component.embedded_cluster.conftest import Kubectl

GARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
KEY = ObjectKey(GARAGE, "garage-ae86")


def garage(**spec: str) -> Manifest:
    return {
        "apiVersion": GARAGE.api_version,
        "kind": GARAGE.kind,
        "metadata": {"name": KEY.name},
        "spec": {"teamName": "ae86", "stage": "stage2", **spec},
    }


def ready(cluster: EmbeddedCluster) -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    found = cluster.get(KEY)
    assert found is not None
    cluster.apply({**garage(), "status": status}, owner="controller", status=True)


def test_apply_creates_then_changes_nothing_then_configures(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f-", stdin=garage())
    assert "unchanged" in kubectl("apply", "-f-", stdin=garage())
    assert "configured" in kubectl("apply", "-f-", stdin=garage(stage="stage3"))
    assert kubectl("get", "xg", KEY.name, "-ojsonpath={.spec.stage}") == "stage3"


def test_get_prints_the_printer_columns(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    cluster.apply(garage(), owner="me")
    ready(cluster)

    header, row = kubectl("get", "xgarages").splitlines()
    assert header.split() == ["NAME", "READY", "STAGE", "AGE"]
    assert row.split()[:3] == [KEY.name, "True", "stage2"]
    assert "TEAM" in kubectl("get", "xg", "-owide")
    assert KEY.name in kubectl("get", "composite")


def test_server_side_apply_names_the_manager_it_conflicts_with(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    cluster.apply(garage(), owner="argocd-controller")
    change = garage(stage="stage1")

    told = kubectl.fails("apply", "--server-side", "-f-", stdin=change)
    assert 'conflict with "argocd-controller": .spec.stage' in told
    kubectl("apply", "--server-side", "--force-conflicts", "-f-", stdin=change)
    assert kubectl("get", "xg", KEY.name, "-ojsonpath={.spec.stage}") == "stage1"


def test_client_side_applied_objects_move_to_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f-", stdin=garage())
    kubectl("apply", "--server-side", "-f-", stdin=garage())

    shown = json.loads(kubectl("get", "xg", KEY.name, "-ojson", "--show-managed-fields"))
    managers = {entry["manager"] for entry in shown["metadata"]["managedFields"]}
    assert "kubectl" in managers
    assert "kubectl-client-side-apply" not in managers


def test_what_the_schema_refuses_is_told_in_the_servers_words(kubectl: Kubectl) -> None:
    told = kubectl.fails("create", "-f-", stdin=garage(stage="stage9"))
    assert (
        'The XGarage "garage-ae86" is invalid: spec.stage: Unsupported value: "stage9": supported '
        'values: "stage1", "stage2", "stage3"' in told
    )
    told = kubectl.fails("create", "-f-", stdin=garage(colour="red"))
    assert (
        'XGarage in version "v1alpha1" cannot be handled as a XGarage: strict decoding error: '
        'unknown field "spec.colour"' in told
    )


def test_a_server_dry_run_judges_and_writes_nothing(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    assert "server dry run" in kubectl("apply", "--dry-run=server", "-f-", stdin=garage())
    kubectl.fails("apply", "--dry-run=server", "-f-", stdin=garage(stage="stage9"))
    assert cluster.get(KEY) is None


def test_annotate_label_and_patch_change_the_object(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    cluster.apply(garage(), owner="me")
    kubectl("annotate", "xg", KEY.name, "a=b")
    kubectl("label", "xg", KEY.name, "team=ae86")
    kubectl("patch", "xg", KEY.name, "--type=merge", "-p", '{"spec":{"stage":"stage1"}}')
    change = '[{"op":"add","path":"/metadata/labels/tier","value":"x"}]'
    kubectl("patch", "xg", KEY.name, "--type=json", "-p", change)

    found = cluster.get(KEY)
    assert found is not None
    assert found["metadata"]["annotations"] == {"a": "b"}
    assert found["metadata"]["labels"] == {"team": "ae86", "tier": "x"}
    assert found["spec"]["stage"] == "stage1"
    assert KEY.name in kubectl("get", "xg", "-l", "team in (ae86),tier,!other", "-oname")
    assert "No resources found" not in kubectl("get", "xg", "-l", "team!=rx7", "-oname")


def test_built_in_kinds_are_created_patched_and_described(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    kubectl("create", "namespace", "garage-ae86")
    kubectl("create", "configmap", "sheet", "-ngarage-ae86", "--from-literal=stage=stage2")
    kubectl("create", "secret", "generic", "key", "-ngarage-ae86", "--from-literal=a=b")
    kubectl("create", "serviceaccount", "runner", "-ngarage-ae86")
    kubectl("patch", "configmap", "sheet", "-ngarage-ae86", "-p", '{"data":{"team":"ae86"}}')

    found = cluster.get(ObjectKey(CONFIG_MAP, "sheet", "garage-ae86"))
    assert found is not None
    assert found["data"] == {"stage": "stage2", "team": "ae86"}
    assert "Active" in kubectl("describe", "namespace", "garage-ae86")
    told = kubectl("get", "configmaps,secrets,serviceaccounts", "-A")
    assert all(name in told for name in ("sheet", "key", "runner"))
    kubectl("delete", "namespace", "garage-ae86", "--timeout=60s")
    assert cluster.get(ObjectKey(CONFIG_MAP, "sheet", "garage-ae86")) is None


def test_wait_sees_a_condition_that_comes_later(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    cluster.apply(garage(), owner="me")
    timer = threading.Timer(0.3, ready, [cluster])
    timer.start()
    told = kubectl("wait", "--for=condition=Ready", f"xg/{KEY.name}", "--timeout=60s")
    timer.join()

    assert "condition met" in told


def test_delete_waits_until_the_finalizer_is_released(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    held = garage()
    held["metadata"]["finalizers"] = ["test/held"]
    cluster.create(held, owner="me")
    release = {"metadata": {"finalizers": None}}
    told = kubectl.fails("delete", "xg", KEY.name, "--timeout=300ms")
    assert "timed out" in told or "deadline exceeded" in told
    deletion = kubectl.command("delete", "xg", KEY.name, "--timeout=60s", "--cascade=foreground")
    with subprocess.Popen(deletion, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "deleted" in process.stdout.readline()  # asked for; now it waits
        assert process.poll() is None
        cluster.patch(KEY, release, owner="me")
        assert process.wait(90) == 0

    assert cluster.get(KEY) is None


def test_get_watch_prints_changes_as_they_come(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    cluster.apply(garage(), owner="me")
    with subprocess.Popen(
        kubectl.command("get", "xg", "-w", "--no-headers"), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "stage2" in process.stdout.readline()
        cluster.apply(garage(stage="stage3"), owner="me")
        assert "stage3" in process.stdout.readline()
        process.terminate()


def test_explain_and_api_resources_know_custom_kinds(kubectl: Kubectl) -> None:
    assert "How far the tuning goes." in kubectl("explain", "xgarage.spec")
    line = next(x for x in kubectl("api-resources").splitlines() if x.startswith("xgarages"))
    assert line.split() == ["xgarages", "xg", GARAGE.api_version, "false", "XGarage"]


def test_describe_shows_the_events_of_an_object(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    made = cluster.apply(garage(), owner="me")
    involved = {
        "apiVersion": GARAGE.api_version,
        "kind": GARAGE.kind,
        "name": KEY.name,
        "uid": made["metadata"]["uid"],
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e1", "namespace": "default"},
        "involvedObject": involved,
        "reason": "ComposeResources",
        "message": "Composed resource is not yet ready",
        "type": "Normal",
        "lastTimestamp": made["metadata"]["creationTimestamp"],
    }
    cluster.create(event, owner="assembly")

    assert "xgarage/garage-ae86" in kubectl("get", "events")
    assert "ComposeResources" in kubectl("describe", "xg", KEY.name)


def test_an_unknown_object_and_an_unknown_kind_are_told_apart(kubectl: Kubectl) -> None:
    told = kubectl.fails("get", "xg", "nope")
    assert 'xgarages.blog.opsbogus.dev "nope" not found' in told
    assert "doesn't have a resource type" in kubectl.fails("get", "nosuchkind")
