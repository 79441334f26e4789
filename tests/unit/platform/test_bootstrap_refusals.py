"""What steps of a bootstrap refuse of a forge and a cluster that are not as they should be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from agentsite import crd
from bareplatform import platform_of
from faultproxy import Decision, Falsehood, Fault, Plan
from ownforge import OwnForge
from refusedreads import RefusedReads

from ground.errors import (
    AccessError,
    IncompleteError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
)
from ground.names import RepoId
from ground.objects.kube_objects import APP_PROJECT, APPLICATION
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.adapters.gitea import GiteaForge
from orderkit.core.platform import idpbuilder
from orderkit.core.platform.installation import CrossplaneSettings, Installation
from orderkit.flows.install.bootstrapping import BootstrapRequest, StepVerdict
from orderkit.flows.install.bootstrapping.argocd_steps import (
    ARGOCD_CM,
    InForceStep,
    RootStep,
    SettingsStep,
    not_healthy,
)
from orderkit.flows.install.bootstrapping.bootstrap_run import PasswordSeedStep
from orderkit.flows.install.bootstrapping.idpbuilder_steps import LOCALBUILD, AddressesStep
from orderkit.flows.install.bootstrapping.platform_repositories import LedgerStep, move_ledger
from orderkit.flows.install.bootstrapping.reach_steps import (
    ArgoCdStep,
    ClusterStep,
    CrossplaneStep,
    ForgeStep,
    check_accounts,
)
from orderkit.flows.install.bootstrapping.steps import BootstrapContext
from orderkit.flows.install.bootstrapping.team_steps import WebhookStep
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.install.upgrading import plan_upgrade
from orderkit.flows.plan.fleet_planning import published
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Webhook
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.cluster import EmbeddedCluster

GITEA_URL = "https://cnoe.localtest.me:8443/gitea"
OTHER_URL = "https://gitea.cnoe.localtest.me:8443"
NO_KITS = b"""\
apiVersion: orderkit.dev/v1alpha1
kind: Pack
metadata: {name: ours}
spec: {kits: []}
"""
VALUES = PlatformValues("http://127.0.0.1:1", "a" * 40, "registry.local")
TRACKING = "application.resourceTrackingMethod"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    opened = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield opened
    opened.close()


def context(platform: Any, **wanted: Any) -> BootstrapContext:
    """Return what steps are given that need no file of the pack."""
    nothing: Any = None
    return BootstrapContext(platform, BootstrapRequest({}, nothing, "user:default/me", **wanted))


def refusal(act: Callable[[], object], kind: type[OrderkitError]) -> tuple[str, str]:
    with pytest.raises(kind) as refused:
        act()
    return str(refused.value), refused.value.hint


def test_a_cluster_without_argo_cd_is_refused(cluster: EmbeddedCluster) -> None:
    said, hint = refusal(ArgoCdStep(context(platform_of(cluster))).look, RefusedError)

    assert said == f"Argo CD is missing: the cluster serves no {APPLICATION}, {APP_PROJECT}"
    assert "into namespace argocd, then repeat" in hint


@pytest.mark.parametrize("install", ["chart", "none"])
def test_a_cluster_without_crossplane_is_refused_unless_a_layer_brings_it(
    install: Any, cluster: EmbeddedCluster
) -> None:
    installation = Installation(crossplane=CrossplaneSettings(install=install))
    step = CrossplaneStep(context(platform_of(cluster), installation=installation))

    if install == "chart":
        assert step.look().verdict is StepVerdict.WAIT
    else:
        said, hint = refusal(step.look, RefusedError)
        assert said.startswith("Crossplane is missing: the cluster serves no ")
        assert "let spec.crossplane.install of platform.yaml be 'chart'" in hint


def test_accounts_that_we_may_not_list_are_believed(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    place = {"name": "crossplane", "namespace": "elsewhere"}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}, owner="test"
    )
    cluster.apply({**account, "metadata": place}, owner="test")
    installation = Installation()

    said, _ = refusal(lambda: check_accounts(cluster, installation), RefusedError)
    check_accounts(refused.of(cluster, ["ServiceAccount"]), installation)

    assert "spec.crossplane.account: there is no " in said


@dataclass
class Reviewing(Plan):
    """Serves access reviews, which the embedded cluster lacks, with one answer."""

    answer: Falsehood
    group = "/apis/authorization.k8s.io/v1"

    def decide(self, method: str, path: str) -> Decision:
        if not path.startswith(self.group):
            return Decision()
        if method == "POST":
            return Decision(Fault.REFUSE_BEFORE, self.answer)
        review = {"name": "selfsubjectaccessreviews", "kind": "SelfSubjectAccessReview"}
        served = {
            "kind": "APIResourceList",
            "groupVersion": "authorization.k8s.io/v1",
            "resources": [{**review, "namespaced": False, "verbs": ["create"]}],
        }
        return Decision(Fault.REFUSE_BEFORE, Falsehood(200, json.dumps(served).encode()))


MAY_NOT = Falsehood(201, b'{"kind": "SelfSubjectAccessReview", "status": {"allowed": false}}')
UNHEARD = Falsehood(
    403, b'{"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "ask nothing"}'
)


@pytest.mark.parametrize(
    ("answer", "told"),
    [(MAY_NOT, "we may not get applications, create applications"), (UNHEARD, "ask nothing")],
    ids=["may not", "may not even ask"],
)
def test_a_cluster_that_lets_us_not_write_is_refused(
    answer: Falsehood, told: str, cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    client = refused.of(cluster)
    refused.proxy.plan = Reviewing(answer)

    said, _ = refusal(ClusterStep(context(platform_of(client))).look, AccessError)

    assert told in said


def test_a_forge_that_lets_us_not_write_is_refused_with_whose_token_it_is(forge: OwnForge) -> None:
    forge.repo(forge.ledger)
    blind = forge.client_of(scopes=("read:repository", "read:user"), source="a file")

    said, hint = refusal(ForgeStep(context(forge.platform(forge=blind))).look, AccessError)

    assert said.startswith("missing: scope write:")
    assert said.endswith("(credentials from a file)")
    assert "create a token with these scopes" in hint


def test_webhooks_that_we_may_not_read_are_left_out_and_told(forge: OwnForge) -> None:
    forge.repo(forge.ledger, {"teams/ae86.yaml": ""})
    team = forge.org("theirs", owner="eve")
    hook = Webhook("https://orderkit.example", ("push",), "secret")
    platform = forge.platform(teams=(team,), webhook=hook)

    look = WebhookStep(context(platform)).look()

    assert look.verdict is StepVerdict.SKIP
    assert team in look.detail


def test_a_seed_whose_namespace_is_missing_is_not_drawn(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    step = PasswordSeedStep(context(platform_of(refused.of(cluster))))

    said, hint = refusal(lambda: step.ensure(lambda _: None), RefusedError)

    assert said.endswith("where the seed of passwords is read, is missing")
    assert hint == "kubectl create namespace crossplane-system, and repeat"


def test_a_pack_without_root_is_refused() -> None:
    pack = {PurePosixPath("pack.yaml"): NO_KITS}
    site = BootstrapContext(platform_of(None), BootstrapRequest(pack, VALUES, "user:default/me"))

    said, _ = refusal(RootStep(site).look, InvalidInputError)

    assert said == "gitops/root.yaml is missing in the pack"


def test_settings_that_somebody_took_back_are_told_after_the_bootstrap(
    cluster: EmbeddedCluster,
) -> None:
    pack = read_folder(reference_pack())
    site = BootstrapContext(platform_of(cluster), BootstrapRequest(pack, VALUES, "user:default/me"))

    SettingsStep(site).ensure(lambda _: None)
    in_force = InForceStep(site).ensure(lambda _: None)
    cluster.patch(ARGOCD_CM, {"data": {TRACKING: "label"}}, owner="somebody")

    said, _ = refusal(lambda: InForceStep(site).ensure(lambda _: None), IncompleteError)
    assert in_force.verdict is StepVerdict.DONE
    assert said == f"something overwrote Argo CD's settings: argocd-cm: {TRACKING}"


def test_a_layer_that_is_not_healthy_names_the_first_object_that_is_not() -> None:
    synced = {"status": "Synced", "revision": "a" * 40}
    health = {"status": "Degraded", "message": "no Pods"}
    resources = [
        {"kind": "ConfigMap", "name": "a"},
        {"kind": "Deployment", "name": "d", "health": health},
    ]
    layer = {
        "spec": {"source": {"repoURL": "https://f.example/a/b.git"}},
        "status": {"sync": synced, "health": {"status": "Degraded"}, "resources": resources},
    }

    said = not_healthy(platform_of(None), layer)

    assert said == "its health is Degraded (Deployment d is Degraded: no Pods)"


@pytest.mark.parametrize(
    ("builds", "kind", "said"),
    [
        (None, RefusedError, "idpbuilder did not make this cluster: it serves no Localbuild"),
        ([], NotFoundError, "the cluster has no Localbuild of idpbuilder"),
        (
            [f"{OTHER_URL}/"],
            InvalidInputError,
            f"spec.forge.url: '{GITEA_URL}' is not the address of idpbuilder's Gitea, which is "
            + OTHER_URL,
        ),
        ([f"{GITEA_URL}/"], None, "localdev, "),
        ([""], None, "localdev, "),
    ],
    ids=["no idpbuilder", "not ended", "another address", "the address", "no address yet"],
)
def test_the_forges_address_is_idpbuilders(
    builds: list[str] | None, kind: type[OrderkitError] | None, said: str, cluster: EmbeddedCluster
) -> None:
    if builds is not None:
        served = crd(LOCALBUILD.kind, LOCALBUILD)
        cluster.apply({**served, "spec": {**served["spec"], "scope": "Cluster"}}, owner="test")
    for url in builds or ():
        head = {"apiVersion": LOCALBUILD.api_version, "kind": LOCALBUILD.kind}
        build = {**head, "metadata": {"name": "localdev"}, "spec": {}}
        cluster.apply(build, owner="test")
        told_by_it = {**build, "status": {"gitea": {"externalURL": url}}}
        cluster.apply(told_by_it, owner="test", status=True)
    with GiteaForge(GITEA_URL, token="t") as gitea:
        step = AddressesStep(context(platform_of(cluster, forge=gitea)))
        told = step.look().detail if kind is None else refusal(step.look, kind)[0]

    assert told.startswith(said)


@pytest.mark.parametrize("act", [published, lambda platform: plan_upgrade(platform, {})])
def test_a_platform_without_a_pack_has_nothing_to_plan_or_upgrade(
    act: Callable[[Platform], object], forge: OwnForge
) -> None:
    said, hint = refusal(lambda: act(forge.platform()), NotFoundError)

    assert said == f"{forge.pack}: no pack on {forge.client.base_url}"
    assert "bootstrapped" in hint


def test_a_repository_that_idpbuilder_makes_is_not_made_for_it(
    forge: OwnForge, cluster: EmbeddedCluster
) -> None:
    for each in argocd_crds():
        cluster.apply(each, owner="test")
    platform = forge.platform(cluster, ledger=RepoId(idpbuilder.ADMIN, "ledger"))

    said, hint = refusal(lambda: LedgerStep(context(platform)).ensure(lambda _: None), RefusedError)

    assert said == "giteaAdmin/ledger is missing: idpbuilder makes it from the package"
    assert "orderkit platform render --target idpbuilder" in hint


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({}, {"README.md": ""}, "is empty: there is nothing to move"),
        (
            {"teams/ae86.yaml": ""},
            {"README.md": "", "theirs.txt": ""},
            "holds other files already, such as theirs.txt",
        ),
    ],
    ids=["from an empty one", "over something else"],
)
def test_a_ledger_is_not_moved(
    old: dict[str, str], new: dict[str, str], told: str, forge: OwnForge
) -> None:
    before = RepoId(forge.org("platform"), "old")
    forge.repo(before, old) if old else forge.empty(before)
    head = forge.repo(forge.ledger, new)

    said, _ = refusal(
        lambda: move_ledger(forge.platform(), before, requester="user:default/me"), RefusedError
    )

    assert told in said
    assert forge.client.head(forge.ledger) == head
