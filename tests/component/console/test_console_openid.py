"""Sign in with an OpenID Connect provider, over HTTP, and what must not sign anybody in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from answering import own_certificate
from bays import TEAM, Bay
from consolebrowser import Browser
from openid import AUDIENCE, Provider, providing
from platformsettings import settings_with
from tests.component.console.conftest import LEAD, PLATFORM, Site, console_of

from ground.errors import InvalidInputError
from ground.shapes import changed
from orderkit.cli.connecting import connect, service_options
from orderkit.core.platform.service_access import (
    AccessSettings,
    SignInSettings,
)
from orderkit.core.platform.settings import parse
from orderkit.web.console.sessions import link_token
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind


@dataclass(frozen=True)
class Signing:
    """A console whose people sign in with a provider."""

    url: str
    provider: Provider


@pytest.fixture(scope="module")
def signing(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signing]:
    folder = tmp_path_factory.mktemp("openid")
    with providing() as provider, console_of(site, provider, folder) as url:
        yield Signing(url, provider)


@pytest.fixture
def provider(signing: Signing) -> Iterator[Provider]:
    provider = signing.provider
    provider.groups, provider.claims = (TEAM, f"{TEAM}:owners"), {}
    yield provider
    provider.groups, provider.claims = (), {}


def test_the_provider_signs_in_and_leads_back(
    signing: Signing, provider: Provider, quiet_bay: Bay
) -> None:
    browser = Browser(signing.url)
    sign_in = browser.get(f"/orders/{quiet_bay.order}")
    begin = next(link for link in sign_in.page.links if link.startswith("/sign-in/begin"))
    order = browser.get(begin)

    assert order.page.h1 == quiet_bay.order
    assert "Signed in as eve" in order.page.text
    assert "Platform" not in order.page.text
    assert browser.get("/platform").status == 403
    assert [name.rpartition("-")[0] for name in browser.cookies] == ["orderkit-session"]
    assert provider.sign_ins == {}, "a code is redeemed once"


def test_the_groups_of_the_provider_decide(signing: Signing, provider: Provider) -> None:
    provider.groups = ("platform",)
    browser = Browser(signing.url)

    assert browser.get("/sign-in/begin?onward=/platform").page.h1 == "Platform"


def test_only_the_scopes_that_are_needed_are_asked_for(signing: Signing) -> None:
    answer = Browser(signing.url).get("/sign-in/begin", allow_redirects=False)
    asked = parse_qs(urlsplit(answer.headers["Location"]).query)

    assert asked["scope"] == ["openid profile email groups read:user"]
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["nonce"][0]) >= 32
    assert len(asked["state"][0]) >= 32


WRONG: dict[str, dict[str, Any]] = {
    "another nonce": {"nonce": "x"},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "grafana"},
    "one of several audiences, without azp": {"aud": [AUDIENCE, "grafana"]},
    "one of several audiences, for another client": {"aud": [AUDIENCE, "x"], "azp": "x"},
    "issued for another client": {"azp": "grafana"},
    "issued for no client": {"azp": ""},
    "another issuer": {"iss": "http://127.0.0.1:1"},
    "expired": {"iat": 1_500_000_000, "exp": 1_500_003_600},
    "nobody": {"preferred_username": None},
    "a name that is no reference": {"preferred_username": "eve\nX"},
}


@pytest.mark.parametrize("claims", WRONG.values(), ids=WRONG)
def test_a_wrong_token_signs_nobody_in(
    claims: dict[str, Any], signing: Signing, provider: Provider
) -> None:
    provider.claims = claims
    browser = Browser(signing.url)
    answer = browser.get("/sign-in/begin")

    assert (answer.status, answer.page.h1) == (401, "Not signed in")
    assert not any("session" in name for name in browser.cookies)


@pytest.mark.parametrize(
    "claims",
    [{"azp": AUDIENCE}, {"aud": [AUDIENCE, "grafana"], "azp": AUDIENCE}, {"aud": [AUDIENCE]}],
)
def test_a_token_issued_for_this_client_signs_in(
    claims: dict[str, Any], signing: Signing, provider: Provider
) -> None:
    provider.claims = claims

    assert Browser(signing.url).get("/sign-in/begin").page.h1 == "Orders"


@pytest.mark.usefixtures("provider")
def test_a_sign_in_that_another_browser_began_is_not_finished(signing: Signing) -> None:
    thief, victim = Browser(signing.url), Browser(signing.url)
    begun = thief.get("/sign-in/begin", allow_redirects=False)
    back = thief.get(begun.headers["Location"], allow_redirects=False).headers["Location"]

    answer = victim.get(back)
    assert (answer.status, victim.cookies) == (401, {})

    victim.get("/sign-in/begin", allow_redirects=False)
    assert victim.get(back).status == 401
    assert thief.get(back).page.h1 == "Orders"


def test_the_providers_refusal_is_a_page_with_the_way_back(signing: Signing) -> None:
    answer = Browser(signing.url).get("/sign-in/callback?error=access_denied&state=x")

    assert answer.status == 401
    assert "access_denied" in answer.page.text
    assert "/sign-in" in answer.page.links


def test_links_are_for_embedded_platforms_only(signing: Signing, site: Site) -> None:
    answer = Browser(signing.url).sign_in(site.secret, PLATFORM)

    assert answer.status == 403


def test_a_provider_behind_a_private_ca_is_trusted_by_its_file_alone(
    site: Site, tmp_path: Path
) -> None:
    """The journey goes on by hand: the browser of this test trusts no private CA either."""
    certificate = own_certificate(tmp_path)
    with providing(certificate) as provider:
        provider.groups = (TEAM,)
        with console_of(site, provider, tmp_path) as url:
            refused = Browser(url).get("/sign-in/begin")
        with console_of(site, provider, tmp_path, ca_file=certificate.authority) as url:
            browser = Browser(url)
            asked = browser.get("/sign-in/begin", allow_redirects=False).headers["Location"]
            query = {name: text for name, (text,) in parse_qs(urlsplit(asked).query).items()}
            provider.sign_ins["code-by-hand"] = query
            page = browser.get(f"/sign-in/callback?code=code-by-hand&state={query['state']}")

    assert "no trusted TLS connection" in refused.page.text
    assert "caFile" in refused.page.text
    assert (page.status, page.page.h1) == (200, "Orders")


def test_a_file_without_certificates_is_refused_at_the_start(site: Site, tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("")
    sign_in = SignInSettings("https://git.example.com", "orderkit", ca_file=empty)
    settings = settings_with(site.running.settings, service__access=AccessSettings(sign_in=sign_in))

    with pytest.raises(InvalidInputError, match=r"caFile.*is not a readable file of certificates"):
        service_options(settings, audit=None)


def test_settings_survive_platform_yaml(site: Site, tmp_path: Path) -> None:
    usual = SignInSettings(
        "https://git.example.com", "orderkit", group_prefix="ok-", ca_file=tmp_path / "ca"
    )
    secret = tmp_path / "secret"
    sign_in = changed(usual, client_secret_file=secret, scopes=("openid",), session_minutes=15)

    for wanted in (sign_in, usual):
        settings = settings_with(
            site.running.settings, service__access=AccessSettings(sign_in=wanted)
        )
        found = parse(settings.to_yaml(), folder=tmp_path).service.access.sign_in
        assert found == wanted
    assert "read:user" in usual.scopes


def test_behind_tls_the_cookie_is_for_this_host_alone(site: Site) -> None:
    settings = site.running.settings
    sock = bind("service", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    settings = settings_with(settings, service__url=url)
    options = service_options(settings, audit=None, links=True, behind_tls=True)
    server = HttpServer(service_app(connect(settings), options), sock)
    server.start()
    try:
        answer = Browser(url).get(
            f"/sign-in/link?token={link_token(site.secret, LEAD)}", allow_redirects=False
        )
    finally:
        server.stop()

    assert answer.headers["Set-Cookie"].startswith("__Host-orderkit-session=")
    assert "; Secure" in answer.headers["Set-Cookie"]
