"""
``orderkit bootstrap`` on a real Gitea, a real API server and a real Argo CD, from nothing.

Crossplane alone is stood for, by our assembler on that API server.
"""

from __future__ import annotations

import pytest
from commands import Command, Done, as_process
from lab.binaries import LOGS
from labplatform import LabPlatform

from ground.names import RepoId
from ground.objects.kube_objects import (
    APP_PROJECT,
    APPLICATION,
    NAMESPACE,
    XRD,
    ObjectKey,
    metadata,
)
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.install.bootstrapping.argocd_steps import ARGOCD_CM


@pytest.fixture(scope="module")
def orderkit(lab: LabPlatform) -> Command:
    return as_process(lab.file, within_s=240)


def steps(done: Done) -> dict[str, str]:
    assert done.out, done.err
    return {step["step"]: step["verdict"] for step in done.json["steps"]}


def test_a_plan_on_an_empty_lab_would_create_everything(
    lab: LabPlatform, orderkit: Command
) -> None:
    done = orderkit("bootstrap", "--plan", "--json")

    found = steps(done)
    assert done.code == 0, done.err
    assert (found["forge"], found["cluster"], found["argocd"]) == ("already so",) * 3
    assert (found["pack"], found["ledger"], found["repositories"]) == ("would create",) * 3
    assert lab.cluster.list(APPLICATION).items == ()
    assert lab.forge.repo(RepoId("platform", "pack")) is None


def test_it_comes_up_from_nothing_and_a_probe_order_lives_and_ends(
    lab: LabPlatform, orderkit: Command
) -> None:
    done = orderkit("bootstrap", "--json")

    assert done.code == 0, done.out + done.err
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "bootstrap.json").write_text(done.out)  # what each wave took
    probe = done.json["steps"][-1]
    assert (probe["step"], probe["verdict"]) == ("probe", "created")
    assert "delivered" in probe["detail"]
    assert "nothing is left" in probe["detail"]
    assert lab.cluster.serves(XRD)
    assert lab.cluster.get(ObjectKey(NAMESPACE, "garage-ae86")) is None
    assert lab.cluster.get(application_key("garage-ae86")) is None
    assert lab.forge.repo(RepoId("ae86", "garage-ae86")) is None


def test_the_repositories_are_private_and_argo_cd_reads_them(lab: LabPlatform) -> None:
    pack = lab.forge.repo(RepoId("platform", "pack"))

    assert pack is not None
    assert pack.private
    for application in lab.cluster.list(APPLICATION, namespace="argocd").items:
        assert application["status"]["sync"]["status"] == "Synced", metadata(application)["name"]


def test_a_repeated_bootstrap_writes_nothing(lab: LabPlatform, orderkit: Command) -> None:
    before = [lab.forge.head(RepoId("platform", name)) for name in ("pack", "ledger")]

    done = orderkit("bootstrap", "--no-probe", "--json")

    assert done.code == 0, done.err
    assert set(steps(done).values()) == {"already so", "left out"}
    assert [lab.forge.head(RepoId("platform", name)) for name in ("pack", "ledger")] == before


def test_an_order_is_ready_on_the_bootstrapped_lab_only_with_a_service(
    lab: LabPlatform, orderkit: Command
) -> None:
    """Stand-ins end with the bootstrap; people's orders need the service that is named."""
    done = orderkit("order", "garage", "team_name=ae86", "stage=stage1")

    assert done.code != 0
    assert "127.0.0.1:9" in done.err
    lab.forge.delete_repo(RepoId("ae86", "garage-ae86"))


def test_what_drifts_while_nobody_heals_is_named_and_comes_back(
    lab: LabPlatform, orderkit: Command
) -> None:
    key, project = "application.resourceTrackingMethod", ObjectKey(APP_PROJECT, "ae86", "argocd")
    lab.argocd.stop("application-controller")
    lab.cluster.patch(ARGOCD_CM, {"data": {key: "label"}}, owner="somebody")
    lab.cluster.patch(project, {"spec": {"sourceRepos": ["*"]}}, owner="somebody")

    planned = orderkit("bootstrap", "--plan", "--no-probe", "--json")
    checked = orderkit("platform", "check", "--json")
    lab.argocd.start("application-controller")
    done = orderkit("bootstrap", "--no-probe", "--json")

    found = {each["what"]: each["verdict"] for each in checked.json["findings"]}
    assert steps(planned)["settings"] == "would change"
    assert checked.code == 1
    assert (found["settings"], found["projects"], found["kinds"]) == ("fail", "fail", "ok")
    assert done.code == 0, done.err
    assert (lab.cluster.get(ARGOCD_CM) or {})["data"][key] == "annotation"
