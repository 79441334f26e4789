"""Tokens made by strangers, slow identity providers, and names that only look like another's."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from attackedservice import TIMEOUT_S, AttackedService, attacked_service
from forgeusers import embedded_admin, new_user
from openid import AUDIENCE, Provider, providing
from signer import signing

from ground.errors import UnreachableError
from ground.shapes import changed
from orderkit.adapters.tokens import published_keys
from orderkit.adapters.tokens.bearers import BackstageRequesters, OidcRequesters
from orderkit.adapters.tokens.published_keys import WAITERS_MAX
from orderkit.core.platform.service_access import AccessSettings, OidcSettings
from orderkit.ports.requesters import UnprovedError
from orderkit_standins.serve_platform import Running

STRANGERS = 40
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]


@dataclass(frozen=True)
class Site:
    service: AttackedService
    provider: Provider
    access: AccessSettings

    def ask(self, path: str, token: str) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        answer = self.service.send("GET", path, headers=headers)
        return answer.status_code, answer.headers["X-Request-Id"]

    def line(self, request_id: str) -> dict[str, Any]:
        (line,) = (e for e in self.service.audit_lines() if e["request"] == request_id)
        return line


@pytest.fixture(scope="module")
def site(platform: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with providing() as provider:
        oidc = OidcSettings(provider.issuer, AUDIENCE, algorithms=("RS256",))
        access = AccessSettings(requests_per_minute=100_000, oidc=oidc)
        folder = tmp_path_factory.mktemp("identity")
        with attacked_service(platform, folder, access) as service:
            yield Site(service, provider, access)


def test_strangers_tokens_and_a_slow_provider_keep_nobody_waiting(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 tokens with unknown keys, and a provider that answers only when the test lets it."""
    monkeypatch.setattr(published_keys, "REFETCH_S", 0.0)
    monkeypatch.setattr(published_keys, "TIMEOUT_S", 600.0)
    known, unknown = site.provider.token("ae86"), site.provider.token("ae86", head={"kid": "x"})
    assert site.ask("/v1/orders", known)[0] == 200
    fetched_before = site.provider.fetched
    with ThreadPoolExecutor(STRANGERS) as pool:
        site.provider.answers.clear()
        try:
            strangers = [pool.submit(site.ask, "/v1/orders", unknown) for _ in range(STRANGERS)]
            busy = [stranger.result()[0] for stranger in _first_done(strangers)]
            meanwhile = [
                site.service.send("GET", "/healthz").status_code,
                site.ask("/v1/orders", known)[0],
                site.service.as_portal("GET", "/v1/orders").status_code,
            ]
            waiting = [stranger for stranger in strangers if not stranger.done()]
        finally:
            site.provider.answers.set()

    assert meanwhile == [200, 200, 200]
    assert waiting, "the provider answered before it was allowed to"
    assert set(busy) == {503}
    assert {stranger.result()[0] for stranger in strangers} <= {401, 503}
    assert site.provider.fetched <= fetched_before + 1 + WAITERS_MAX


def _first_done(strangers: list[Future[Any]]) -> list[Future[Any]]:
    """Wait until all have an answer but the one that asks the provider and those behind it."""
    done: set[Future[Any]] = set()
    while len(done) < STRANGERS - 1 - WAITERS_MAX:
        rest = [stranger for stranger in strangers if stranger not in done]
        finished = wait(rest, timeout=TIMEOUT_S, return_when=FIRST_COMPLETED).done
        assert finished, f"{len(rest)} strangers wait"
        done |= finished
    return list(done)


def test_a_failed_fetch_of_keys_is_remembered(site: Site) -> None:
    """A provider that is down is asked once in a while, however many tokens strangers make."""
    asked: list[int] = []

    def address() -> str:
        asked.append(1)
        return "http://127.0.0.1:9/keys"

    keys = published_keys.PublishedKeys(address, UnprovedError, hint="")
    token = site.provider.token("ae86", head={"kid": "x"})
    for _ in range(STRANGERS):
        with pytest.raises(UnreachableError):
            keys.verified(token, published_keys.ExpectedClaims(None, ["RS256"]))

    assert len(asked) == 1


def test_a_group_called_platform_acts_for_every_team_only_if_that_is_configured(
    site: Site, platform: Running, tmp_path: Path
) -> None:
    token = site.provider.token("platform")
    access = changed(site.access, platform_groups=("group:default/platform",))
    with attacked_service(platform, tmp_path, access) as configured:
        explicit = Site(configured, site.provider, access).ask("/metrics", token)[0]

    assert site.ask("/metrics", token)[0] == 403
    assert explicit == 200


def test_an_organisation_of_a_stranger_is_no_group_of_the_platform(
    site: Site, platform: Running, tmp_path: Path
) -> None:
    """Where the forge signs people in, its organisations are their groups."""
    forge = platform.settings.forge.url
    admin = embedded_admin(forge, platform.embedded.state.folder)
    stranger, mark = new_user(admin), secrets.token_hex(3)
    for creator, name in ((admin, f"ops-{mark}"), (stranger, f"sre-{mark}")):
        creator.api("POST", "/orgs", {"username": name})
    groups = (f"group:default/ops-{mark}", f"group:default/sre-{mark}")
    elsewhere = changed(site.access, platform_groups=groups)
    keys = f"{site.provider.issuer}/keys"
    oidc = OidcSettings(forge, AUDIENCE, jwks_url=keys, algorithms=("RS256",))

    def asked(access: AccessSettings, group: str, **claims: Any) -> int:
        folder = tmp_path / f"{group}-{len(claims)}"
        folder.mkdir()
        token = site.provider.token(group, preferred_username=stranger.login, **claims)
        with attacked_service(platform, folder, access) as service:
            return Site(service, site.provider, access).ask("/metrics", token)[0]

    of_forge = changed(elsewhere, oidc=oidc)
    assert asked(of_forge, f"sre-{mark}", iss=forge) == 403
    assert asked(of_forge, f"ops-{mark}", iss=forge) == 200
    assert asked(elsewhere, f"sre-{mark}") == 200, "the group of another provider is its own"


@pytest.mark.parametrize(
    "name", ["mi\u212ae", "\uff4dike", "mike\u200b", "mi\u0131e", "mike\n", "\ud800", "mike\x00"]
)
def test_a_name_that_only_looks_like_anothers_proves_nobody(name: str, site: Site) -> None:
    """`str.lower` turns U+212A, the Kelvin sign, into k; half a surrogate pair broke the log."""
    status, request_id = site.ask("/v1/orders", site.provider.token(preferred_username=name))

    assert status == 401
    assert site.line(request_id)["status"] == 401


@pytest.mark.parametrize("name", ["unknown", "Unknown", "e" * 10_000, "e" * 288])
def test_a_name_without_a_bound_and_the_word_for_no_requester_prove_nobody(
    name: str, site: Site
) -> None:
    """Each issuer may call its users as it likes."""
    status, request_id = site.ask("/v1/orders", site.provider.token(preferred_username=name))
    with signing() as signer:
        token, backstage = signer.user(sub=f"user:default/{name}"), BackstageRequesters(signer.url)
        with pytest.raises(UnprovedError) as refused:
            backstage.proved(f"Bearer {token}")

    assert status == 401
    assert len(str(site.line(request_id))) < 1_500
    assert len(str(refused.value)) < 1_000
    assert site.ask("/v1/orders", site.provider.token(preferred_username="e" * 287))[0] == 200


def test_groups_have_a_bound(site: Site) -> None:
    with signing() as signer:
        token = signer.user(ent=["group:default/ae86", f"group:default/{'e' * 300}"])
        requester = BackstageRequesters(signer.url).proved(f"Bearer {token}")
    long = "e" * 64
    person = OidcRequesters(OidcSettings(site.provider.issuer, AUDIENCE)).proved(
        f"Bearer {site.provider.token('ae86', long)}"
    )

    assert requester.groups == person.groups == {"group:default/ae86"}


def test_a_group_that_only_looks_like_anothers_is_no_group(site: Site) -> None:
    with signing() as signer:
        token = signer.user(ent=["group:default/bac\u212aend"])
        requester = BackstageRequesters(signer.url).proved(f"Bearer {token}")

    assert "group:default/backend" not in requester.groups
    assert site.ask("/v1/orders/garage-x", site.provider.token("bac\u212aend"))[0] == 403


@pytest.mark.parametrize("claims", [{"groups": DEEP}, {"preferred_username": DEEP}, {"x": DEEP}])
def test_a_deeply_nested_claim_is_no_bug(claims: dict[str, Any], site: Site) -> None:
    status, request_id = site.ask("/v1/orders", site.provider.token(**claims))

    assert status in {200, 401}
    assert "bug" not in str(site.line(request_id))
