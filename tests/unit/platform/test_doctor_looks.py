"""What a check of doctor says where it cannot look, and which checks that leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bareplatform import platform_of
from clusteralone import Refusing
from heldfiles import HeldFiles

from ground.errors import AccessError, OrderkitError, RefusedError, UnreachableError
from ground.names import RepoId
from orderkit.core.platform.neighbours import ReleaseVerdict
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
from orderkit_standins.cluster import EmbeddedCluster

LEDGER = RepoId("platform", "ledger")


@dataclass
class Capabilities:
    kind: str = "gitea"
    report: str = "all of them"
    title: str = "Gitea"


@dataclass
class Forge(HeldFiles):
    """A forge that answers, or does not."""

    error: OrderkitError | None = None
    missing: tuple[str, ...] = ()
    capabilities: Capabilities = field(default_factory=Capabilities)
    credentials_source: str = "a file"

    def version(self) -> str:
        if self.error:
            raise self.error
        return "1.25.0"

    def user(self) -> str:
        return "orderkit"

    def missing_rights(self, _repo: RepoId) -> tuple[str, ...]:
        return self.missing

    def judge_release(self) -> ReleaseVerdict:
        return ReleaseVerdict("1.25.0", "tested", "1.25.0 is tested")  # type: ignore[arg-type]  # a word


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    opened = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield opened
    opened.close()


def forge(*paths: str, **parts: Any) -> Forge:
    return Forge({LEDGER: dict.fromkeys(paths, "")}, **parts)


def said(finding: DoctorFinding) -> tuple[str, str, str]:
    return finding.verdict, finding.detail, finding.advice


@pytest.mark.parametrize(
    ("name", "of", "told"),
    [
        ("forge", forge(), ("ok", "https://forge.example.com, version 1.25.0, as orderkit", "")),
        (
            "forge",
            forge(error=AccessError("you may not", hint="make a token")),
            ("fail", "you may not", "make a token"),
        ),
        (
            "forge",
            forge(error=UnreachableError("no answer", hint="start it")),
            ("fail", "no answer", "start it"),
        ),
        ("capabilities", forge(), ("ok", "all of them", "")),
        ("rights", forge(), ("ok", "may write to platform/ledger", "")),
        (
            "rights",
            forge(missing=("a", "b")),
            (
                "fail",
                "missing: a, b",
                "create a token with these scopes for a user who may write there (docs/forge.md)",
            ),
        ),
        ("ledger", forge("apps/a/garage-x.yaml"), ("ok", "platform/ledger at cccccccc", "")),
        (
            "ledger",
            forge("apps/a/garage-x.yaml", "apps/b/garage-x.yaml", "apps/b/garage-y.yaml"),
            (
                "fail",
                "several teams have the same order: garage-x",
                "repeat 'orderkit order' for the team that came second: that takes its entry back",
            ),
        ),
        (
            "ledger",
            Forge({}),
            (
                "fail",
                "platform/ledger: no ledger on https://forge.example.com",
                "the platform is not bootstrapped: 'orderkit up' does it for the embedded one",
            ),
        ),
    ],
)
def test_a_check_of_the_forge_says_what_it_found(
    name: str, of: Forge, told: tuple[str, str, str]
) -> None:
    assert said(found(name, platform_of(None, forge=of))) == told


def test_whose_credentials_failed_is_told_of_those_only() -> None:
    refused = found("forge", platform_of(None, forge=forge(error=AccessError("no"))))
    silent = found("forge", platform_of(None, forge=forge(error=UnreachableError("no"))))
    weak = found("rights", platform_of(None, forge=forge(missing=("a",))))

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


def test_what_needs_a_forge_that_cannot_be_used_is_left_out(cluster: EmbeddedCluster) -> None:
    of = forge(error=UnreachableError("no answer"))

    findings = {
        each.check: each
        for each in check(platform_of(cluster, forge=of), without=("portal", "service"))
    }

    assert findings["forge"].detail == "no answer; what needs the forge is not checked"
    assert "rights" not in findings
    assert findings["cluster"].verdict == "fail"
    assert said(findings["portal"]) == ("ok", "platform.yaml has no spec.portal", "")
    assert "gitea-release" not in findings
    assert "backstage-release" in findings


WEBHOOK = ChannelSettings("webhook", url="https://ci.example.com/hook")


def test_what_was_given_up_is_told_by_channel(cluster: EmbeddedCluster) -> None:
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
    silent = platform_of(Refusing(cluster, {"ConfigMap"}))
    assert said(check_notifications(silent.cluster, settings))[:2] == (
        "warn",
        "ConfigMap: cannot be read",
    )
    none = check_notifications(silent.cluster, NotificationSettings())
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
