"""Sign in to the console with GitHub and with GitLab, over HTTP, and who is not let in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from bays import TEAM, Bay
from consolebrowser import Browser
from githuboauth import GitHubOAuth, github_oauth
from openid import providing
from tests.component.console.conftest import Site, console_of

from ground.errors import InvalidInputError
from orderkit.core.platform.service_access import AccessSettings, SignInSettings

MEMBERS_OF = (f"group:default/{TEAM}", "group:default/platform")


@dataclass(frozen=True)
class Signing:
    """A console whose people sign in with GitHub."""

    url: str
    github: GitHubOAuth


@pytest.fixture(scope="module")
def signing(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signing]:
    folder = tmp_path_factory.mktemp("github")
    more: dict[str, Any] = {"kind": "github", "members_of": MEMBERS_OF}
    with github_oauth() as github, console_of(site, github, folder, **more) as url:
        yield Signing(url, github)


@pytest.fixture(autouse=True)
def nothing_is_left(signing: Signing) -> Iterator[None]:
    """No access token survives a sign-in, whatever came of it."""
    signing.github.organisations, signing.github.is_failing = {TEAM: "active"}, False
    yield
    assert signing.github.tokens == set()


def test_a_member_signs_in_and_is_led_back(signing: Signing, quiet_bay: Bay) -> None:
    browser = Browser(signing.url)
    sign_in = browser.get(f"/orders/{quiet_bay.order}")
    begin = next(link for link in sign_in.page.links if link.startswith("/sign-in/begin"))

    order = browser.get(begin)

    assert order.page.h1 == quiet_bay.order
    assert "Signed in as eve" in order.page.text
    assert browser.get("/platform").status == 403
    assert signing.github.agents == {"orderkit"}


def test_the_organisations_decide_and_all_pages_of_them_are_read(signing: Signing) -> None:
    many = {f"o{number}": "active" for number in range(230)}
    signing.github.organisations = {**many, "Platform": "active"}

    assert Browser(signing.url).get("/sign-in/begin?onward=/platform").page.h1 == "Platform"


def test_only_memberships_and_no_right_to_write_are_asked_for(signing: Signing) -> None:
    answer = Browser(signing.url).get("/sign-in/begin", allow_redirects=False)
    asked = parse_qs(urlsplit(answer.headers["Location"]).query)

    assert asked["scope"] == ["read:org"]
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["state"][0]) >= 32


@pytest.mark.parametrize(
    "organisations",
    [{}, {"strangers": "active"}, {TEAM: "pending"}, {f"{TEAM}-x": "active"}],
    ids=["in none", "in another", "only invited", "of a similar name"],
)
def test_who_is_no_member_is_not_signed_in(organisations: dict[str, str], signing: Signing) -> None:
    """Anybody may have an account of GitHub, also one called like an approver."""
    signing.github.organisations = organisations
    browser = Browser(signing.url)

    answer = browser.get("/sign-in/begin")

    assert answer.status == 401
    assert "is in none of the groups that may sign in" in answer.page.text
    assert not browser.cookies or not any("session" in name for name in browser.cookies)


def test_a_code_counts_once_and_for_its_own_browser(signing: Signing) -> None:
    browser, other = Browser(signing.url), Browser(signing.url)
    asked = browser.get("/sign-in/begin", allow_redirects=False).headers["Location"]
    back = requests.get(asked, allow_redirects=False, timeout=10).headers["Location"]
    path = back.removeprefix(signing.url)

    stolen = other.get(path, allow_redirects=False).status
    first = browser.get(path, allow_redirects=False).status
    again = browser.get(path, allow_redirects=False).status

    assert first == 303
    assert {stolen, again} <= {400, 401, 403}


def test_a_github_that_fails_signs_nobody_in(signing: Signing) -> None:
    signing.github.is_failing = True

    answer = Browser(signing.url).get("/sign-in/begin")

    assert answer.status in (502, 503)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"members_of": MEMBERS_OF}, "clientSecretFile"),
        ({"client_secret_file": Path("secret")}, "membersOf"),
    ],
)
def test_github_open_to_everybody_or_without_a_secret_is_refused(
    more: dict[str, Any], field: str
) -> None:
    sign_in = SignInSettings("https://github.com", "id", kind="github", **more)

    with pytest.raises(InvalidInputError, match=field):
        AccessSettings(sign_in=sign_in).check()


GITLAB: dict[str, Any] = {
    "scopes": ("openid", "profile", "email"),
    "groups_claim": "groups_direct",
    "group_prefix": "acme/platform/",
    "members_of": MEMBERS_OF,
}


def test_gitlab_signs_in_members_of_the_subgroups_that_are_teams(
    site: Site, tmp_path: Path
) -> None:
    """GitLab's ID token has full paths, in its own claim (openid_connect_provider.md)."""
    with providing() as provider, console_of(site, provider, tmp_path, **GITLAB) as url:
        provider.claims = {"groups": None, "groups_direct": [f"acme/platform/{TEAM}"]}
        page = Browser(url).get("/sign-in/begin?onward=/").page
        provider.claims = {"groups": None, "groups_direct": [f"others/{TEAM}", TEAM]}
        stranger = Browser(url).get("/sign-in/begin?onward=/")

    assert "Signed in as eve" in page.text
    assert stranger.status == 401
