"""Who may look, how a person signs in, and what a page says to somebody who may not look."""

from __future__ import annotations

import pytest
import requests
from forgedesk import GUEST, OWNER, Desk


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/src/branch/main/a",
        "/raw/branch/main/a",
        "/commits/branch/main",
        "/branches",
        "/commit/{head}",
    ],
)
def test_pages_of_a_private_repository_are_for_those_who_may_read_it(desk: Desk, path: str) -> None:
    repo = desk.repo(private=True)
    address = f"/{repo}{path.replace('{head}', desk.write(repo, {'a': 'secret'}))}"
    missing = f"/{repo.owner}/none{path.replace('{head}', '0' * 40)}"

    assert desk.get(address, auth=OWNER).status_code == 200
    for auth in (None, GUEST):
        hidden, nothing = (desk.page(each, auth=auth, status=404) for each in (address, missing))
        assert hidden.text == nothing.text
        assert "secret" not in hidden.text


def test_a_browser_is_asked_once_for_all_addresses_and_led_back(desk: Desk) -> None:
    repo = desk.repo(private=True)
    desk.write(repo, {"a b": "1"})
    there = f"/{repo}/src/branch/main/a%20b"

    lost = desk.page(there, status=404)
    (way,) = {link for link in lost.links if "sign_in" in link}
    assert way.startswith("/?"), "credentials count for all below the address that asks"
    asked = desk.get(way)
    assert asked.status_code == 401
    assert asked.headers["WWW-Authenticate"].startswith('Basic realm="')

    led = desk.get(way, auth=OWNER)
    assert (led.status_code, led.headers["Location"]) == (303, there)
    assert "Signed in as warden" in desk.page(there, auth=OWNER).text


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", ""],
)
def test_signing_in_leads_to_no_other_host(desk: Desk, target: str) -> None:
    led = desk.get(f"/?sign_in={target}", auth=OWNER)

    assert (led.status_code, led.headers["Location"]) == (303, "/")


def test_wrong_credentials_are_asked_for_again(desk: Desk) -> None:
    refused = desk.get("/", auth=("warden", "wrong"))

    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Basic")
    assert desk.page("/", auth=("warden", "wrong"), status=401).h1.startswith("These credentials")


def test_a_token_without_the_scope_is_told_which(desk: Desk) -> None:
    name = GUEST[0]
    found = desk.forge.accounts.find(name)
    assert found is not None
    _, secret = desk.forge.accounts.create_token(found, "narrow", ("read:user",))

    shown = desk.page("/", auth=(name, secret), status=403)

    assert shown.h1 == "Not allowed"
    assert "read:repository" in shown.text


def test_programs_get_one_line_instead_of_a_page(desk: Desk) -> None:
    answer = desk.get("/none/none", accept="*/*")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.text == "Not Found\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_pages_only_show(desk: Desk, method: str) -> None:
    repo = desk.repo()
    for path in ("/", f"/{repo}", f"/{repo}/branches"):
        answer = requests.request(method, desk.url + path, timeout=10)
        assert answer.status_code in (404, 405), path


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_write_with_the_credentials_of_a_browser(desk: Desk, site: str) -> None:
    repo = desk.repo()
    writes = {f"/api/v1/repos/{repo}": "DELETE", f"/{repo}.git/git-receive-pack": "POST"}

    for path, method in writes.items():
        answer = requests.request(
            method, desk.url + path, auth=OWNER, headers={"Sec-Fetch-Site": site}, timeout=10
        )
        assert (answer.status_code, "another site" in answer.text) == (403, True), path
    assert desk.get(f"/{repo}").status_code == 200


def test_the_style_is_served_with_an_address_that_changes_with_it(desk: Desk) -> None:
    html = desk.get("/").text
    address = html.split('rel="stylesheet" href="')[1].split('"')[0]

    answer = desk.get(address)

    assert answer.headers["Content-Type"].startswith("text/css")
    assert "url(" not in answer.text
    assert "@import" not in answer.text
    assert desk.get("/assets/none.css").status_code == 404


def test_pages_of_old_names_lead_to_the_new_ones(desk: Desk) -> None:
    repo, hidden = desk.repo(), desk.repo(private=True)
    desk.write(repo, {"a b": "1"})
    for each in (repo, hidden):
        desk.api("PATCH", f"/repos/{each}", {"name": "later"})

    led = desk.get(f"/{repo}/src/branch/main/a%20b?page=1")

    assert led.status_code == 301
    assert led.headers["Location"] == f"/{repo.owner}/later/src/branch/main/a%20b?page=1"
    assert desk.page(led.headers["Location"]).h1 == "a b"
    assert desk.get(f"/{hidden}").status_code == 404
