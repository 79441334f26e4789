"""What Jobs and whoever starts them may not do, although their roles let them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conformance.policies.apiserver import ApiServer, Object, eventually

from ground.names import OrderId, TeamName
from orderkit import __version__
from orderkit.core.campaign.cluster_jobs import Crew, coordinator_job, wave_job
from orderkit.core.campaign.definition import Campaign, FieldValues, What, Which
from orderkit.core.campaign.record import CampaignRecord, WaveRecord
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import order_application
from orderkit.core.portal.runner_job import ACCOUNT, NAMESPACE, RunnerJob, manifest
from orderkit.flows.argocd.refreshing import REFRESH
from orderkit_standins.argocd import argocd_crds

POLICIES = Path(__file__).parents[3] / "day2" / "job" / "policies.yaml"
RUNNER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
PORTAL = "system:serviceaccount:backstage:backstage"
IMAGE = f"registry.local/orderkit/orderkit:v{__version__}"
ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-jobs"))
OPERATION = {
    "operation": {"sync": {"revision": "1" * 40}, "initiatedBy": {"automated": True}},
    "phase": "Running",
    "startedAt": "2026-11-22T18:00:00Z",
}
Change = Callable[[Object], Any]


@dataclass(frozen=True)
class Case:
    """A change of an object that is refused, with words of the refusal; empty: it is admitted."""

    reason: str
    change: Change
    refusal: str = ""


def note(name: str, value: str) -> Change:
    return lambda app: app["metadata"].setdefault("annotations", {}).update({name: value})


APPLICATIONS = [
    Case("asks for a refresh", note(REFRESH, "normal")),
    Case(
        "ends an operation",
        lambda app: app["status"]["operationState"].update(phase="Terminating"),
    ),
    Case(
        "delivers from another repository",
        lambda app: app["spec"]["source"].update(repoURL="http://forge.example.org/m/own.git"),
        "but not change what an Application delivers",
    ),
    Case(
        "moves to another project",
        lambda app: app["spec"].update(project="default"),
        "but not change what an Application delivers",
    ),
    Case(
        "starts a sync of its own",
        lambda app: app.update(operation={"sync": {"revision": "2" * 40}}),
        "but not change what an Application delivers",
    ),
    Case(
        "rewrites the operation that Argo CD would resume",
        lambda app: app["status"]["operationState"]["operation"]["sync"].update(revision="2" * 40),
        "may end a running operation",
    ),
    Case(
        "rewrites the status",
        lambda app: app["status"].update(sync={"status": "Synced"}),
        "may end a running operation",
    ),
    Case(
        "writes an annotation that Argo CD obeys",
        note("argocd.argoproj.io/sync-options", "Replace=true"),
        "argocd.argoproj.io/refresh and nothing else",
    ),
    Case(
        "adds a finalizer",
        lambda app: app["metadata"].update(finalizers=["example.org/stays"]),
        "the refresh annotation and nothing else",
    ),
    Case(
        "takes the order's label away",
        lambda app: app["metadata"]["labels"].pop("orderkit.dev/order"),
        "the refresh annotation and nothing else",
    ),
]


@pytest.fixture(scope="module")
def installed(server: ApiServer) -> Iterator[ApiServer]:
    """The policies in force, the platform's root and one order's Application."""
    server.plurals |= {"Job": "jobs"}
    for name in (NAMESPACE, "argocd"):
        server.must({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for definition in argocd_crds():
        server.define(copy.deepcopy(definition))
    for application in (root(), {**order(), "status": {"operationState": OPERATION}}):
        server.must(application)
    text = POLICIES.read_text().replace("__ORDERKIT_REGISTRY__", "registry.local")
    policies = list(yaml.safe_load_all(text))
    for policy in policies:
        server.must(policy)
    eventually(lambda: not server.create(job(["list"]), dry_run=True).ok, "Jobs are judged")
    eventually(lambda: not patched(server, root(), lambda _: None), "Applications are judged")
    yield server
    for policy in policies:
        server.delete(policy)


def order() -> Object:
    return order_application(ENTRY, kit="garage", forge_url="http://forge.example.org")


def root() -> Object:
    application = order()
    application["metadata"] = {"name": "root", "namespace": "argocd"}
    application["spec"]["project"] = "default"
    return application


def patched(server: ApiServer, application: Object, change: Change, account: str = RUNNER) -> bool:
    return update(server, application, change, account)[0]


def update(
    server: ApiServer, application: Object, change: Change, account: str = RUNNER
) -> tuple[bool, str]:
    """Write a change of the live Application; return whether it was admitted, and the answer."""

    def refresh_and_change(live: Object) -> None:
        live["metadata"].setdefault("annotations", {})[REFRESH] = "normal"
        change(live)

    answer = server.change(application, refresh_and_change, dry_run=True, account=account)
    return answer.ok, answer.text


@pytest.mark.parametrize("case", APPLICATIONS, ids=lambda case: case.reason)
def test_a_job_may_refresh_an_application_and_no_more(installed: ApiServer, case: Case) -> None:
    admitted, text = update(installed, order(), case.change)

    assert admitted == (not case.refusal), text
    assert case.refusal in text


def test_a_job_may_take_a_request_for_a_refresh_back(installed: ApiServer) -> None:
    """To ask anew, where Argo CD did not see it."""
    asked = order()
    asked["metadata"] |= {"name": "garage-asked", "annotations": {REFRESH: "normal"}}
    installed.must(asked)

    def take_back(application: Object) -> None:
        del application["metadata"]["annotations"][REFRESH]

    admitted, text = update(installed, asked, take_back)

    assert admitted, text


def test_a_job_may_not_touch_the_platforms_root(installed: ApiServer) -> None:
    _, text = update(installed, root(), lambda _: None)

    assert "a Job writes to Applications of orders and teams only" in text


def test_others_are_not_judged_by_the_policy_of_jobs(installed: ApiServer) -> None:
    admitted, text = update(
        installed, root(), lambda app: app["spec"].update(project="x"), "argocd-admin"
    )

    assert admitted, text


def job(arguments: list[str]) -> Object:
    return manifest(RunnerJob("tried", IMAGE, arguments))


def pod(made: Object) -> Object:
    spec: Object = made["spec"]["template"]["spec"]
    return spec


def container(made: Object) -> Object:
    first: Object = pod(made)["containers"][0]
    return first


def source(made: Object, kind: str) -> Object:
    """Return the first source of that kind in the volume of settings."""
    sources = pod(made)["volumes"][0]["projected"]["sources"]
    first: Object = next(entry[kind] for entry in sources if kind in entry)
    return first


HOST = {"name": "host", "hostPath": {"path": "/"}}
FORGE_TOKEN = {"name": "token", "secret": {"secretName": "orderkit-credentials"}}
JOBS = [
    Case("as a template makes it", lambda _: None),
    Case("another image", lambda made: container(made).update(image="evil"), "image"),
    Case("a moving image", lambda made: container(made).update(image=IMAGE + "-x"), "image"),
    Case("a command", lambda made: container(made).update(command=["sh"]), "its own command"),
    Case(
        "a second container",
        lambda made: pod(made)["containers"].append({**container(made), "name": "b"}),
        "has more than",
    ),
    Case(
        "a container before it",
        lambda made: pod(made).update(initContainers=[{**container(made), "name": "b"}]),
        "has more than",
    ),
    Case("the host's network", lambda made: pod(made).update(hostNetwork=True), "has more than"),
    Case("a node", lambda made: pod(made).update(nodeName="control-plane"), "has more than"),
    Case(
        "another account",
        lambda made: pod(made).update(serviceAccountName="default"),
        "run as orderkit-runner",
    ),
    Case("a folder of the node", lambda made: pod(made)["volumes"].append(HOST), "volumes"),
    Case("the Secret elsewhere", lambda made: pod(made)["volumes"].append(FORGE_TOKEN), "volumes"),
    Case(
        "another Secret",
        lambda made: pod(made)["volumes"][0]["projected"]["sources"].append(
            {"secret": {"name": "portal"}}
        ),
        "volumes",
    ),
    Case(
        "settings of its own",
        lambda made: container(made)["env"][0].update(value="/scratch/platform.yaml"),
        "two variables",
    ),
    Case(
        "a variable from the Secret",
        lambda made: container(made)["env"].append(
            {
                "name": "TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "orderkit-credentials", "key": "x"}},
            }
        ),
        "two variables",
    ),
    Case(
        "all variables from the Secret",
        lambda made: container(made).update(
            envFrom=[{"secretRef": {"name": "orderkit-credentials"}}]
        ),
        "its own command",
    ),
    Case("another verb", lambda made: container(made).update(args=["team"]), "registers, changes"),
    Case(
        "an extension",
        lambda made: container(made).update(args=["lease", "extend", "--", "garage-a", "8h"]),
    ),
    Case(
        "a sweep, by its own account",
        lambda made: (
            container(made).update(args=["lease", "sweep"]),
            pod(made).update(serviceAccountName="orderkit-lease"),
        ),
    ),
    Case(
        "something else by the account of sweeps",
        lambda made: pod(made).update(serviceAccountName="orderkit-lease"),
        "sweeps as orderkit-lease",
    ),
    Case("half a verb", lambda made: container(made).update(args=["lease"]), "registers, changes"),
    Case("no verb", lambda made: container(made).pop("args"), "registers, changes"),
    Case(
        "another platform",
        lambda made: container(made)["args"].append("--platform=/tmp/x"),
        "registers, changes",
    ),
    Case(
        "the settings over the program",
        lambda made: container(made)["volumeMounts"][0].update(mountPath="/app"),
        "mounted in /etc/orderkit",
    ),
    Case(
        "the forge's token as platform.yaml, which an error message quotes",
        lambda made: source(made, "secret").update(
            items=[{"key": "forge-token", "path": "platform.yaml"}]
        ),
        "under their own names",
    ),
    Case(
        "another setting as the forge's token",
        lambda made: source(made, "configMap").update(
            items=[{"key": "kubeconfig", "path": "forge-token"}]
        ),
        "under their own names",
    ),
    Case(
        "the certificates as platform.yaml",
        lambda made: pod(made)["volumes"][0]["projected"]["sources"][3]["configMap"].update(
            items=[{"key": "ca.crt", "path": "platform.yaml"}]
        ),
        "under their own names",
    ),
    Case(
        "all certificates, under any name",
        lambda made: pod(made)["volumes"][0]["projected"]["sources"][3]["configMap"].pop("items"),
    ),
    Case(
        "a token for another audience",
        lambda made: source(made, "serviceAccountToken").update(audience="vault"),
        "volumes",
    ),
    Case(
        "no label, so that the network policy does not select it",
        lambda made: made["spec"]["template"]["metadata"].pop("labels"),
        "label of their network policy",
    ),
    Case(
        "an annotation that an injector obeys",
        lambda made: made["spec"]["template"]["metadata"].update(
            annotations={"vault.hashicorp.com/agent-inject": "true"}
        ),
        "no annotations",
    ),
    Case("many Pods", lambda made: made["spec"].update(parallelism=500), "one Pod"),
    Case("many times", lambda made: made["spec"].update(completions=500), "one Pod"),
    Case("many tries", lambda made: made["spec"].update(backoffLimit=10_000), "one Pod"),
    Case(
        "as if it were being deleted, which is not judged",
        lambda made: (
            made["metadata"].update(deletionTimestamp="2026-11-22T18:00:00Z"),
            container(made).update(image="evil"),
        ),
        "image",
    ),
]


@pytest.mark.parametrize("case", JOBS, ids=lambda case: case.reason)
def test_who_starts_jobs_may_start_those_of_templates_only(
    installed: ApiServer, case: Case
) -> None:
    made = job(["change", "--no-wait", "--", "garage-ae86"])
    case.change(made)

    answer = installed.create(made, dry_run=True, account=PORTAL)

    assert answer.ok == (not case.refusal), answer.text
    assert case.refusal in answer.text


def campaign_jobs() -> dict[str, Object]:
    campaign = Campaign(
        name="mend",
        reason="because",
        what=What(fields=FieldValues(set={"stage": "stage2"})),
        which=Which(kit="garage"),
    )
    waves = (WaveRecord("all", tuple(f"garage-{number}" for number in range(20))),)
    record = CampaignRecord("mend", "mend-0123abcd", "1" * 40, "running", "now", waves)
    crew = Crew(IMAGE, "user:default/ann", 8)
    return {
        "coordinator": coordinator_job(record, crew),
        "wave": wave_job(campaign, record, 0, crew),
    }


CAMPAIGN_JOBS = [
    ("coordinator", Case("as it is made", lambda _: None)),
    ("wave", Case("as it is made", lambda _: None)),
    ("wave", Case("too many Pods", lambda made: made["spec"].update(parallelism=51), "at most 50")),
    (
        "wave",
        Case(
            "too many tries",
            lambda made: made["spec"].update(backoffLimitPerIndex=1000),
            "at most 50",
        ),
    ),
    (
        "wave",
        Case(
            "as many Pods as a wave for something else",
            lambda made: container(made).update(args=["campaign", "carry", "mend"]),
            "at most 50",
        ),
    ),
    (
        "coordinator",
        Case(
            "a change by the account of campaigns",
            lambda made: container(made).update(args=["change", "--", "garage-a"]),
            "campaigns as orderkit-campaign",
        ),
    ),
    (
        "coordinator",
        Case(
            "a campaign by the account of templates",
            lambda made: pod(made).update(serviceAccountName=ACCOUNT),
            "campaigns as orderkit-campaign",
        ),
    ),
    (
        "coordinator",
        Case(
            "another verb of campaigns",
            lambda made: container(made).update(args=["campaign", "start", "mend"]),
            "campaigns as orderkit-campaign",
        ),
    ),
]


@pytest.mark.parametrize(
    ("name", "case"), CAMPAIGN_JOBS, ids=[f"{name}: {case.reason}" for name, case in CAMPAIGN_JOBS]
)
def test_a_campaign_has_its_jobs_and_no_others(installed: ApiServer, name: str, case: Case) -> None:
    made = campaign_jobs()[name]
    case.change(made)

    answer = installed.create(made, dry_run=True, account=PORTAL)

    assert answer.ok == (not case.refusal), answer.text
    assert case.refusal in answer.text


def test_jobs_elsewhere_are_not_judged(installed: ApiServer) -> None:
    made = job(["list"])
    made["metadata"]["namespace"] = "default"

    assert installed.create(made, dry_run=True, account=PORTAL).ok
