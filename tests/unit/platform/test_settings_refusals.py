"""platform.yaml whose settings contradict each other: what is refused, and what is not."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError, OrderkitError
from orderkit.core.platform.backup_file import MirroredRepository
from orderkit.core.platform.baking import VERSION
from orderkit.core.platform.mounted_settings import named_files
from orderkit.core.platform.notification_settings import seconds
from orderkit.core.platform.settings import PlatformSettings, parse, read_values, redacted

Spec = dict[str, Any]
URL = "http://127.0.0.1:{}"
SPEC: Spec = {
    "forge": {"url": URL.format(1), "tokenFile": "f"},
    "portal": {"url": URL.format(2), "tokenFile": "p"},
    "service": {"url": URL.format(3), "tokenFile": "s"},
    "cluster": {"kubeconfig": "k"},
}
FOLDER = PurePosixPath("/etc/orderkit")


def read(**more: Any) -> PlatformSettings:
    """Return the settings with some changed: maps merge one level deep, None removes."""
    spec = {
        key: {**SPEC.get(key, {}), **value} if isinstance(value, dict) else value
        for key, value in {**SPEC, **more}.items()
    }
    plain = {
        key: {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value
        for key, value in spec.items()
    }
    head = {"apiVersion": "orderkit.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "x"}}
    return parse(yaml.safe_dump({**head, "spec": plain}), folder=FOLDER, home=PurePosixPath("/me"))


APP = {"id": 7, "privateKeyFile": "key"}
GITHUB = {"signIn": {"issuer": "https://github.com", "clientId": "c", "kind": "github"}}
HTTPS = "https://orders.example.org"


def installed(install: Spec | None = None, **service: Any) -> Spec:
    return {
        "install": {"callers": ["any"], "route": {"kind": "none"}, **(install or {})},
        **service,
    }


REFUSED: list[tuple[str, Spec, str]] = [
    (
        "a portal without its token",
        {"portal": {"tokenFile": None}},
        "platform.yaml: spec.portal.tokenFile is missing",
    ),
    (
        "a service without its token",
        {"service": {"tokenFile": None}},
        "platform.yaml: spec.service.tokenFile is missing",
    ),
    (
        "a group of another forge",
        {"forge": {"group": "company"}},
        "forge.group: 'company' is for GitLab, and forge.kind is gitea",
    ),
    (
        "a group that leaves its place",
        {"forge": {"kind": "gitlab", "group": "a/../b"}},
        "forge.group: 'a/../b' is no path of a group",
    ),
    (
        "an app of another forge",
        {"forge": {"app": APP}},
        "forge.app: '7' is for GitHub, and forge.kind is gitea",
    ),
    (
        "Argo CD's app of another forge",
        {"forge": {"kind": "gitlab", "argocdApp": APP}},
        "forge.argocdApp: '7' is for GitHub, and forge.kind is gitlab",
    ),
    (
        "templates that publish to Gitea",
        {"forge": {"kind": "github"}, "portal": {"profile": "natural"}},
        "portal.profile: 'natural' does not work on github yet",
    ),
    (
        "credentials of a Gitea",
        {"forge": {"kind": "gitlab", "credentials": "idpbuilder"}},
        "forge.credentials: 'idpbuilder' are those of a Gitea, and forge.kind is gitlab",
    ),
    (
        "a pack in a subgroup",
        {"packRepository": "a/b/c"},
        "repository: 'a/b/c' has more than two parts, and gitea two",
    ),
    ("a pack that is no repository", {"packRepository": "a/.."}, "packRepository: 'a/..' names no"),
    (
        "GitHub without a secret",
        {"service": {"access": GITHUB}},
        "service.access.signIn.clientSecretFile is missing, and GitHub has no public clients",
    ),
    (
        "GitHub for everybody",
        {"service": {"access": {"signIn": {**GITHUB["signIn"], "clientSecretFile": "x"}}}},
        "service.access.signIn.membersOf: [] is empty, and anybody may have an account of GitHub",
    ),
    (
        "a proxy that is no address",
        {"service": {"access": {"trustedProxies": ["proxy"]}}},
        "service.access.trustedProxies: 'proxy' is not an address or a network",
    ),
    (
        "a proxy with bits of a host",
        {"service": {"access": {"trustedProxies": ["10.0.0.1/8"]}}},
        "service.access.trustedProxies: '10.0.0.1/8' is not an address or a network",
    ),
    (
        "every proxy",
        {"service": {"access": {"trustedProxies": ["127.0.0.1", "::/0"]}}},
        "service.access.trustedProxies: '::/0' trusts everybody to say where a request comes from",
    ),
    (
        "a service in no cluster",
        {"target": "embedded", "service": installed()},
        "service.install: 'embedded' needs a cluster",
    ),
    (
        "a service without an address",
        {"service": installed(url=None)},
        "platform.yaml:14: spec.service: {'install': {'callers': ['any'], 'route': {'kind'",
    ),
    (
        "a service without credentials of the forge",
        {"forge": {"tokenFile": None}, "service": installed()},
        "forge.tokenFile is missing, and service.install needs it",
    ),
    (
        "a route without TLS",
        {"service": installed({"route": {"kind": "Ingress"}})},
        "service.publicUrl: 'http://127.0.0.1:3' is not https, and service.install.route is an In",
    ),
    (
        "a route without its gateway",
        {"service": installed({"route": {"kind": "HTTPRoute"}}, publicUrl=HTTPS)},
        "service.install.route.gateway: '' is missing",
    ),
    (
        "a gateway of another route",
        {"service": installed({"route": {"kind": "Ingress", "gateway": "a/b"}}, publicUrl=HTTPS)},
        "service.install.route.gateway: 'a/b' is not for an Ingress",
    ),
    (
        "monitoring without a token",
        {"service": installed({"monitoring": True})},
        "service.access.tokensFile is missing, and service.install.monitoring needs a token",
    ),
    (
        "a channel without its address",
        {"notifications": {"channels": {"a": {"type": "webhook"}}}},
        "notifications.channels.a.url is missing; webhook needs it",
    ),
    (
        "a channel with another's address",
        {"notifications": {"channels": {"a": {"type": "backstage", "urlFile": "x"}}}},
        "notifications.channels.a: 'backstage' takes no urlFile",
    ),
    (
        "an address with a password",
        {"notifications": {"channels": {"a": {"type": "webhook", "url": "https://u:p@h/x"}}}},
        "notifications.channels.a.url: '***' is not an http(s) address without user",
    ),
    (
        "an address with a wrong port",
        {"notifications": {"channels": {"a": {"type": "webhook", "url": "https://h:99999/x"}}}},
        "notifications.channels.a.url: '***' names no host with a port from 1 to 65535",
    ),
    (
        "a route to no channel",
        {"notifications": {"routes": [{"to": ["b"]}]}},
        "notifications.routes[0].to: 'b' is not a channel",
    ),
    (
        "a network that is none",
        {"notifications": {"allowedNetworks": ["10.0.0.1/8"]}},
        "notifications.allowedNetworks: '10.0.0.1/8' is not a network",
    ),
    (
        "quiet hours in no zone",
        {"notifications": {"quietHours": [{"from": "20:00", "to": "06:00", "zone": "Berlin"}]}},
        "notifications.quietHours.zone: 'Berlin' is not a time zone",
    ),
    (
        "quiet hours in a folder of zones",
        {"notifications": {"quietHours": [{"from": "20:00", "to": "06:00", "zone": "Europe"}]}},
        "notifications.quietHours.zone: 'Europe' is not a time zone",
    ),
]


@pytest.mark.parametrize(
    ("more", "told"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_setting_that_cannot_work_is_refused_by_name(more: Spec, told: str) -> None:
    with pytest.raises(OrderkitError) as refused:
        read(**more)

    assert str(refused.value).startswith(told)


FINE: list[tuple[str, Spec]] = [
    ("nothing more", {}),
    ("a group of GitLab", {"forge": {"kind": "gitlab", "group": "company/orders"}}),
    ("a pack in a subgroup of GitLab", {"forge": {"kind": "gitlab"}, "packRepository": "a/b/c"}),
    ("an app of GitHub", {"forge": {"kind": "github", "app": APP, "argocdApp": APP}}),
    ("natural templates on Gitea", {"portal": {"profile": "natural"}}),
    ("credentials of idpbuilder's Gitea", {"forge": {"credentials": "idpbuilder"}}),
    ("proxies", {"service": {"access": {"trustedProxies": ["127.0.0.1", "10.0.0.0/8", "::1"]}}}),
    (
        "GitHub for members",
        {
            "service": {
                "access": {
                    "signIn": {
                        **GITHUB["signIn"],
                        "clientSecretFile": "x",
                        "membersOf": ["group:default/a"],
                    }
                }
            }
        },
    ),
    (
        "another provider for everybody",
        {"service": {"access": {"signIn": {"issuer": "https://id.example.org", "clientId": "c"}}}},
    ),
    ("an installed service without a route", {"service": installed()}),
    (
        "an installed service with an app",
        {"forge": {"kind": "github", "tokenFile": None, "app": APP}, "service": installed()},
    ),
    (
        "a gateway",
        {"service": installed({"route": {"kind": "HTTPRoute", "gateway": "a/b"}}, publicUrl=HTTPS)},
    ),
    (
        "monitoring with a token",
        {"service": installed({"monitoring": True}, access={"tokensFile": "t"})},
    ),
    (
        "a webhook with a port",
        {"notifications": {"channels": {"a": {"type": "webhook", "url": "https://h:65535/x"}}}},
    ),
]


@pytest.mark.parametrize("more", [row[1] for row in FINE], ids=[row[0] for row in FINE])
def test_settings_that_fit_each_other_are_read(more: Spec) -> None:
    assert read(**more).name == "x"


def test_a_file_lies_beside_platform_yaml_or_at_home() -> None:
    found = read(forge={"tokenFile": "~/token"}, portal={"tokenFile": "/abs"})

    assert found.forge.token_file == PurePosixPath("/me/token")
    assert found.portal.token_file == PurePosixPath("/abs")
    assert found.service.token_file == FOLDER / "s"
    assert named_files(found) == {
        "forge.tokenFile": PurePosixPath("/me/token"),
        "portal.tokenFile": PurePosixPath("/abs"),
        "service.tokenFile": FOLDER / "s",
        "cluster.kubeconfig": FOLDER / "k",
    }


@pytest.mark.parametrize(
    ("assignments", "told"),
    [
        (["A=b", "B=c:d/e.f-g_h"], ""),
        (["A="], "A: '' may hold letters, digits"),
        (["A"], "--value: 'A' is not a NAME=TEXT"),
        (["=b"], "--value: '=b' is not a NAME=TEXT"),
        (["a=b"], "--value: 'a=b' is not a NAME=TEXT"),
        (["A=b c"], "A: 'b c' may hold letters, digits and . _ : / - only"),
        ([f"{VERSION}X=1"], f"--value: '{VERSION}X=1' is not a NAME=TEXT"),
    ],
)
def test_a_value_of_a_platform_is_a_name_and_a_plain_text(
    assignments: list[str], told: str
) -> None:
    if not told:
        assert read_values(assignments) == {"A": "b", "B": "c:d/e.f-g_h"}
        return
    with pytest.raises(InvalidInputError) as refused:
        read_values(assignments)
    assert str(refused.value).startswith(told)


def test_what_may_be_secret_is_cut_from_a_shown_file() -> None:
    text = yaml.safe_dump(
        {
            "spec": {
                "forge": {"url": "https://user:pw@forge.example.org/path", "token": "t", "n": 1},
                "portal": {"url": "https://portal.example.org/path", "apiKey": "k"},
                "docs": {"url": "https://docs.example.org/x?sig=1"},
                "notifications": {"channels": [{"url": "https://hooks.example.org/T0/B0"}]},
                "bare": ["https://hooks.example.org", "no address"],
            }
        }
    )

    assert yaml.safe_load(redacted(text, name="platform.yaml"))["spec"] == {
        "forge": {"url": "https://forge.example.org/***", "token": "***", "n": 1},
        "portal": {"url": "https://portal.example.org/path", "apiKey": "***"},
        "docs": {"url": "https://docs.example.org/***"},
        "notifications": {"channels": [{"url": "https://hooks.example.org/***"}]},
        "bare": ["https://hooks.example.org", "no address"],
    }


@pytest.mark.parametrize(
    ("text", "length_s"), [("10s", 10), ("10m", 600), ("2h", 7200), ("1d", 86_400)]
)
def test_a_duration_has_a_number_and_a_unit(text: str, length_s: float) -> None:
    assert seconds(text) == length_s


@pytest.mark.parametrize("text", ["10", "m", "-1m", "1.5m", "1234567m", "1w"])
def test_another_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not a duration"):
        seconds(text)


def test_a_backup_names_repositories_of_the_forge() -> None:
    assert str(MirroredRepository("a/b").id) == "a/b"
    with pytest.raises(InvalidInputError, match="is no OWNER/NAME"):
        _ = MirroredRepository("b").id
