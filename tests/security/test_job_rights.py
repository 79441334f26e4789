"""What Jobs may do in the cluster is what a recorded run of them does, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from bays import EVE, Bay, new_bay
from changingpack import changing_pack
from commands import Command, as_process
from jobrunner import JOB
from labkit import DEFINITION
from platformsettings import settings_with
from recordedcalls import Right, recording

from ground.objects.kube_objects import ObjectKey
from ground.shapes import read_shape
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.campaign.definition import (
    Campaign,
    FieldValues,
    Gates,
    Pace,
    StopRule,
    What,
    Which,
)
from orderkit.core.kit.pack import kit_of
from orderkit.core.portal.runner_job import NAMESPACE
from orderkit.flows.campaign.starting import CampaignText, put, start
from orderkit.flows.notify.notified_events import (
    ensure_namespace,
)
from orderkit.flows.repeating import until
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from orderkit_workshop.generate.cluster_roles import runner_role

ROOM = Path(__file__).parents[2] / "day2" / "job"
RUNNER = "system:serviceaccount:orderkit:orderkit-runner"
CAMPAIGNS = "system:serviceaccount:orderkit:orderkit-campaign"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform whose garage is changed without a review."""
    folder = tmp_path_factory.mktemp("rights")
    pack = changing_pack(folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as site:
        yield site


def granted(*paths: Path) -> set[Right]:
    """Return what committed roles allow their account."""
    rights = set()
    for path in paths:
        for role in yaml.safe_load_all(path.read_text()):
            is_role = role["kind"] in {"Role", "ClusterRole"}
            if is_role and role["metadata"]["name"] != "orderkit-starter":
                namespace = role["metadata"].get("namespace", "")
                rights |= set(_expanded(role.get("rules", ()), namespace))
    return rights


def _expanded(rules: Any, namespace: str) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(namespace, group, resource, verb)


REQUESTER = "--requester=user:default/ann"
COMMANDS = (
    ("register", "--kit=garage", "--team=ae86", REQUESTER, "garage-ae86"),
    ("change", REQUESTER, '--values={"stage": "stage2"}', "--no-wait", "garage-ae86"),
    ("destroy", "--confirm=garage-ae86", REQUESTER, "garage-ae86"),
)
"""What the Jobs of published templates run."""


def test_a_recorded_run_uses_all_rights_of_the_runner_and_no_others(
    platform: Running, tmp_path: Path
) -> None:
    orderkit = as_process(platform.embedded.state.folder / "platform.yaml")
    assert orderkit("order", "garage", "team_name=ae86", "stage=stage1").code == 0
    with recording(Path(platform.settings.cluster.kubeconfig), tmp_path, RUNNER) as record:
        settings = settings_with(platform.settings, cluster__kubeconfig=record.kubeconfig)
        (tmp_path / "platform.yaml").write_text(settings.to_yaml())
        job = as_process(tmp_path / "platform.yaml")
        for arguments in COMMANDS:
            done = job(*arguments)
            assert done.code == 0, done.err
    used = {
        right if right.group == "argoproj.io" else replace(right, namespace="")
        for right in record.rights
    }

    runners = reference_pack() / "gitops/apis/garage/runner.yaml"
    assert used == granted(ROOM / "rights.yaml", runners)


def test_recorded_campaigns_use_all_rights_of_their_account_and_no_others(
    platform: Running, tmp_path: Path
) -> None:
    """One that is carried out, and one that is stopped."""
    ensure_namespace(platform.platform.cluster, NAMESPACE)
    quiet = replace(platform.platform, webhook=None)
    bays = [new_bay(quiet) for _ in range(2)]
    with recording(Path(platform.settings.cluster.kubeconfig), tmp_path, CAMPAIGNS) as record:
        settings = settings_with(platform.settings, cluster__kubeconfig=record.kubeconfig)
        (tmp_path / "platform.yaml").write_text(settings.to_yaml())
        job = as_process(tmp_path / "platform.yaml")
        assert _carried(platform, job, bays, {"set": {"stage": "stage2"}}) == 0
        assert _carried(platform, job, bays[:1], {"set": {"pit": {"bays": 99}}}) == 4
    used = {
        replace(right, namespace="")
        for right in record.rights
        if right.namespace not in ("argocd", NAMESPACE)
    }
    rest = {right for right in record.rights if right.namespace in ("argocd", NAMESPACE)}

    where_many_are_on_their_way = Right("argocd", "argoproj.io", "applications", "list")
    assert {*rest, where_many_are_on_their_way} == granted(ROOM / "campaigns" / "rights.yaml")
    assert used <= granted(reference_pack() / "gitops/apis/garage/runner.yaml")


def _carried(
    platform: Running, job: Command, bays: Sequence[Bay], fields: Mapping[str, Any]
) -> int:
    """Run a campaign's coordinator and its one shard; return the first one's exit code."""
    name = f"laps-{len(bays)}"
    campaign = Campaign(
        name=name,
        reason="to see what it uses",
        what=What(fields=read_shape(FieldValues, fields)),
        which=Which(kit="garage", orders=tuple(bay.order for bay in bays)),
        how="direct",
        gates=Gates(failing="1s"),
        stop=StopRule(then="takeBack"),
        pace=Pace(in_flight=30),
    )
    text = CampaignText(campaign, campaign.to_yaml().encode())
    put(platform.platform, text, EVE)
    start(platform.platform, name, EVE)
    shards = ("--requester=user:default/ann", "--shards=1")
    cluster = platform.platform.cluster
    with ThreadPoolExecutor(1) as threads:
        carrying = threads.submit(job, "campaign", "carry", *shards, name)
        wave = until(
            platform.platform.clock,
            lambda: [
                found
                for found in cluster.list(JOB, namespace=NAMESPACE).items
                if f"-{name}-" in found["metadata"]["name"]
            ],
            bool,
            timeout_s=60,
            goal="the wave's Job",
        )[0]
        worked = job("campaign", "work", *shards, "--wave=1", "--shard=0", name)
        assert worked.code in (0, 4), worked.err
        kind = "Failed" if worked.code else "Complete"
        over = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        if cluster.get(ObjectKey.of(wave)):
            cluster.patch(ObjectKey.of(wave), over, owner="job-controller", status=True)
        carried = carrying.result()
    assert carried.code in (0, 4), carried.err
    return carried.code


def test_no_kit_gives_jobs_the_right_to_read_secrets() -> None:
    kit = kit_of(
        "lab",
        {"composes": [{"apiVersion": "v1", "kind": kind} for kind in ("Secret", "ConfigMap")]},
        yaml.safe_load(DEFINITION),
    )
    (data,) = runner_role(kit).values()

    (core,) = (rule for rule in yaml.safe_load(data)["rules"] if rule["apiGroups"] == [""])
    assert core["resources"] == ["configmaps"]
