"""What a person sees who looks around: pages in a browser, kubectl, doctor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time

import pytest
import requests
from commands import Command

from ground.objects.kube_objects import NAMESPACE, ObjectKey, dig
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.serve_platform import Running


def page(platform: Running, path: str) -> requests.Response:
    return requests.get(f"{platform.settings.forge.url}{path}", timeout=60)


def test_the_first_page_leads_to_every_public_repository(platform: Running) -> None:
    first = page(platform, "/")

    assert first.status_code == 200
    assert 'href="/platform/ledger"' in first.text
    assert page(platform, "/platform/ledger").status_code == 200


def test_a_file_leads_back_to_its_repository(platform: Running) -> None:
    shown = page(platform, "/platform/pack/src/branch/main/pack.yaml")

    assert "kind: Pack" in shown.text
    assert 'href="/platform/pack"' in shown.text


@pytest.fixture
def kubectl(platform: Running) -> object:
    """Run the real kubectl against the embedded API."""
    program = shutil.which("kubectl")
    if not program:
        pytest.skip("no kubectl on PATH")
    environment = {**os.environ, "KUBECONFIG": str(platform.settings.cluster.kubeconfig)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_kubectl_shows_orders_with_the_columns_of_their_xrd(
    orderkit: Command, kubectl: object, team: str
) -> None:
    assert callable(kubectl)
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0

    head, row = kubectl("get", "xgarages", f"garage-{team}").splitlines()

    assert head.split() == ["NAME", "TEAM", "STAGE", "SYNCED", "READY", "COMPOSITION", "AGE"]
    assert row.split()[:6] == [
        f"garage-{team}", team, "stage2", "True", "True", "xgarage-default",
    ]  # fmt: skip


def test_what_kubectl_deletes_comes_back(orderkit: Command, kubectl: object, team: str) -> None:
    assert callable(kubectl)
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0

    kubectl("-n", f"garage-{team}", "delete", "configmap", "spec-sheet")

    until(
        SystemClock(),
        lambda: json.loads(kubectl("-n", f"garage-{team}", "get", "configmap", "-o", "json")),
        lambda found: [each["metadata"]["name"] for each in found["items"]] == ["spec-sheet"],
        timeout_s=90,
        goal="the ConfigMap coming back",
    )


def test_a_field_changed_by_hand_is_changed_back(
    orderkit: Command, kubectl: object, team: str
) -> None:
    assert callable(kubectl)
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0

    kubectl("patch", "xgarage", f"garage-{team}", "--type=merge", '-p={"spec":{"stage":"stage3"}}')

    kubectl(
        "wait",
        f"xgarage/garage-{team}",
        "--for=jsonpath={.spec.stage}=stage2",
        "--timeout=60s",
    )


def test_doctor_finds_nothing_on_a_healthy_platform(orderkit: Command) -> None:
    checks = ("forge", "rights", "pack", "ledger", "cluster", "layers", "portal", "service")
    deadline = time.monotonic() + 120
    while True:  # the layers of a platform that just started become healthy in a while
        findings = {f["what"]: f for f in orderkit("doctor", "--json").json["findings"]}
        if findings["layers"]["verdict"] == "ok" or time.monotonic() > deadline:
            break

    assert [findings[what] for what in checks if findings[what]["verdict"] != "ok"] == []


def test_doctor_does_not_blame_the_layers_for_an_order(
    orderkit: Command, platform: Running, team: str
) -> None:
    cluster = platform.platform.cluster
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True}
    metadata = {"name": f"garage-{team}", "ownerReferences": [owner]}
    occupied = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    cluster.create(occupied, owner="somebody")
    orderkit("order", "garage", f"team_name={team}", "stage=stage2", "--no-wait")
    until(
        platform.platform.clock,
        lambda: cluster.get(application_key(f"team-{team}")),
        lambda application: dig(application, "status", "health", "status") != "Healthy",
        timeout_s=90,
        goal="the team's Application being unhealthy",
    )

    (layers,) = [f for f in orderkit("doctor", "--json").json["findings"] if f["what"] == "layers"]

    cluster.delete(ObjectKey(NAMESPACE, f"garage-{team}"))
    assert f"team-{team}" not in layers["detail"]


def test_doctor_fails_without_a_platform(orderkit: Command, tmp_path: object) -> None:
    from pathlib import Path

    missing = Path(str(tmp_path)) / "platform.yaml"
    done = orderkit("doctor", platform_file=missing)

    assert done.code == 1
    assert "orderkit up" in done.out
