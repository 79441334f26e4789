"""What a check of doctor says where it cannot look, and which checks that leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bareplatform import platform_of
from faultproxy import open_proxy
from ownforge import US, OwnForge
from refusedreads import RefusedReads, forbidden

from ground.errors import RefusedError, UnreachableError
from ground.objects.kube_objects import ARGOCD_NAMESPACE
from orderkit.adapters.gitea import GiteaForge
from orderkit.core.order.ledger import ORDER_LABEL
from orderkit.core.platform.forge_kinds import GITEA
from orderkit.core.platform.notification_settings import ChannelSettings, NotificationSettings
from orderkit.flows.install.doctor_checks import (
    check,
    check_notifications,
    check_requesters,
    found,
    is_known_without,
)
from orderkit.flows.install.findings import DoctorFinding
from orderkit.flows.notify.notified_events import GivenUp, NotifiedEvents
from orderkit.ports.requesters import Requester
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.forge.api.calls import VERSION


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    opened = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield opened
    opened.close()


def said(finding: DoctorFinding) -> tuple[str, str, str]:
    return finding.verdict, finding.detail, finding.advice


def test_the_forge_is_told_with_its_release_and_our_account(forge: OwnForge) -> None:
    platform = forge.platform()
    forge.repo(forge.ledger)
    url = platform.forge.base_url

    told = {name: said(found(name, platform)) for name in ("forge", "capabilities", "rights")}

    assert told == {
        "forge": ("ok", f"{url}, version {VERSION}, as {US}", ""),
        "capabilities": ("ok", GITEA.report, ""),
        "rights": ("ok", f"may write to {forge.ledger}", ""),
    }


def unknown(forge: OwnForge) -> GiteaForge:
    """Return a client with credentials that the forge does not know."""
    client = GiteaForge(forge.shared.url, token="nobody's", source="a file")
    return forge.undo.enter_context(client)


def blind(forge: OwnForge) -> GiteaForge:
    """Return a client whose token may only read."""
    return forge.client_of(scopes=("read:repository", "write:organization"), source="a file")


def stopped(forge: OwnForge) -> GiteaForge:
    """Return a client of a forge that does not run."""
    with open_proxy(forge.shared.url) as proxy:
        return forge.client_of(url=proxy.url)


def test_a_forge_that_cannot_be_used_is_told_with_what_to_do(forge: OwnForge) -> None:
    bad, gone = unknown(forge), stopped(forge)

    refused = said(found("forge", forge.platform(forge=bad)))
    silent = said(found("forge", forge.platform(forge=gone)))

    asking = f"ask {bad.base_url} for its version"
    assert refused == (
        "fail",
        f"bad credentials: {asking}: 401 invalid username, password or token",
        "check the token or password, and that it is not expired",
    )
    assert silent == (
        "fail",
        f"nobody answers at {gone.base_url}",
        "is the platform up? orderkit up",
    )


def test_rights_that_are_missing_are_named(forge: OwnForge) -> None:
    forge.repo(forge.ledger)

    assert said(found("rights", forge.platform(forge=blind(forge)))) == (
        "fail",
        "missing: scope write:repository, scope write:issue",
        "create a token with these scopes for a user who may write there (docs/forge.md)",
    )


@pytest.mark.parametrize(
    ("orders", "told"),
    [
        (["a/garage-x"], ("ok", "{ledger} at {commit}", "")),
        (
            ["a/garage-x", "b/garage-x", "b/garage-y"],
            (
                "fail",
                "several teams have the same order: garage-x",
                "repeat 'orderkit order' for the team that came second: that takes its entry back",
            ),
        ),
        (
            [],
            (
                "fail",
                "{ledger}: no ledger on {url}",
                "the platform is not bootstrapped: 'orderkit up' does it for the embedded one",
            ),
        ),
    ],
)
def test_a_ledger_is_told_by_its_head_unless_teams_share_an_order(
    orders: list[str], told: tuple[str, str, str], forge: OwnForge
) -> None:
    files = {f"apps/{order}.yaml": "" for order in orders}
    commit = forge.repo(forge.ledger, files)[:8] if files else ""

    verdict, detail, advice = told
    detail = detail.format(ledger=forge.ledger, url=forge.client.base_url, commit=commit)
    assert said(found("ledger", forge.platform())) == (verdict, detail, advice)


def test_whose_credentials_failed_is_told_of_those_only(forge: OwnForge) -> None:
    forge.repo(forge.ledger)
    refused = found("forge", forge.platform(forge=unknown(forge)))
    silent = found("forge", forge.platform(forge=stopped(forge)))
    weak = found("rights", forge.platform(forge=blind(forge)))

    sources = [finding.source for finding in (refused, silent, weak)]
    assert sources == ["credentials from a file", "", "credentials from a file"]


@pytest.mark.parametrize(
    ("name", "unusable", "is_known"),
    [
        ("rights", [], True),
        ("rights", ["forge"], False),
        ("forge", ["forge"], True),
        ("cluster", ["forge"], True),
        ("portal", ["forge", "cluster"], True),
        ("layers", ["forge"], True),
        ("layers", ["cluster"], False),
        ("layers", ["forge", "cluster"], False),
    ],
)
def test_a_check_is_made_if_it_can_tell_something_new(
    name: str, unusable: list[str], is_known: object
) -> None:
    assert is_known_without(name, unusable) is is_known


def test_what_needs_a_forge_that_cannot_be_used_is_left_out(
    cluster: EmbeddedCluster, forge: OwnForge
) -> None:
    platform = forge.platform(cluster, forge=stopped(forge))

    findings = {each.check: each for each in check(platform, without=("portal", "service"))}

    silence = f"nobody answers at {platform.forge.base_url}"
    assert findings["forge"].detail == f"{silence}; what needs the forge is not checked"
    assert "rights" not in findings
    assert findings["cluster"].verdict == "fail"
    assert said(findings["portal"]) == ("ok", "platform.yaml has no spec.portal", "")
    assert "gitea-release" not in findings
    assert "backstage-release" in findings


WEBHOOK = ChannelSettings("webhook", url="https://ci.example.com/hook")


def test_what_was_given_up_is_told_by_channel(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    settings = NotificationSettings(channels={"chat": WEBHOOK, "mail": WEBHOOK})
    platform = platform_of(cluster)
    quiet = check_notifications(platform.cluster, settings)
    for channel, orders in (("chat", "ab"), ("mail", "")):
        told = NotifiedEvents(platform, settings.namespace, channel)
        told.load()
        for order in orders:
            told.report(GivenUp(f"garage-{order}", "ready", "2026-11-24", "no answer"))

    lost = check_notifications(platform.cluster, settings)

    assert said(quiet) == ("ok", "2 channels, nothing given up", "")
    assert lost.verdict == "warn"
    assert lost.detail == (
        "not delivered for a day: chat: 2, last 'ready' of garage-b at 2026-11-24 (no answer)"
    )
    unread = refused.of(cluster, {"ConfigMap"})
    assert said(check_notifications(unread, settings))[:2] == (
        "warn",
        forbidden("configmaps"),
    )
    none = check_notifications(unread, NotificationSettings())
    assert said(none) == ("ok", "platform.yaml has no channels", "")


@dataclass
class Tokens:
    """Those who check tokens: by the keys of somebody, or without."""

    describe: Callable[[], str]

    def proved(self, authorization: str) -> Requester:
        raise RefusedError(authorization)


def refuse() -> str:
    raise UnreachableError("no keys", hint="start the portal")


@pytest.mark.parametrize(
    ("tokens", "groups", "told"),
    [
        (None, (), ("ok", "claims: portal.signedBy names no Backstage that proves them", "")),
        (Tokens(lambda: "keys"), (), ("ok", "keys; no group may act for every team", "")),
        (Tokens(lambda: "keys"), ("a", "b"), ("ok", "keys; a, b may act for every team", "")),
        (Tokens(refuse), (), ("fail", "no keys", "start the portal")),
    ],
)
def test_who_proves_requesters_is_told(
    tokens: Tokens | None, groups: tuple[str, ...], told: tuple[str, str, str]
) -> None:
    assert said(check_requesters(tokens, groups)) == told


def application(name: str, *delivers: tuple[str, str], **labels: str) -> dict[str, Any]:
    """Return an Application that is delivered and Degraded."""
    status = {
        "sync": {"status": "Synced", "revision": "c0ffee"},
        "health": {"status": "Degraded"},
        "resources": [{"kind": kind, "name": name} for kind, name in delivers],
    }
    where = {"name": name, "namespace": ARGOCD_NAMESPACE, "labels": labels}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": where,
        "spec": {"project": "default", "destination": {"name": "in-cluster"}},
        "status": status,
    }


@pytest.mark.parametrize(
    ("delivered", "verdict"), [(("Application", "x"), "ok"), (("ConfigMap", "x"), "fail")]
)
def test_a_layer_is_not_blamed_for_an_application_that_it_delivers(
    cluster: EmbeddedCluster, delivered: tuple[str, str], verdict: str
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGOCD_NAMESPACE}}
    for needed in (namespace, *argocd_crds()):
        cluster.create(needed, owner="test")
    cluster.create(application("layer", delivered), owner="test")
    cluster.create(application("x", **{ORDER_LABEL: "x"}), owner="test")

    finding = found("layers", platform_of(cluster))

    assert finding.verdict == verdict, finding
    assert verdict == "ok" or finding.detail.startswith("layer: Degraded")
