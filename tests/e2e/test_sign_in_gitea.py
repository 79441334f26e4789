"""People sign in to the console with a real Gitea, in a real browser."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import mixedplatform
import pytest
import requests
from lab import realgitea
from lab.realgitea import Gitea, add_token, add_user
from platformsettings import settings_with
from published import Up
from realbrowser import RealBrowser, real_browser

from orderkit.adapters.folders.pack_folder import pack_commit, read_folder, reference_pack
from orderkit.cli.connecting import connect, service_options
from orderkit.core.platform.service_access import AccessSettings, SignInSettings
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit.ports.requesters import Requester
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.platform import BOT_SCOPES

OURS, THEIRS = "sign-in-ours", "sign-in-theirs"


@pytest.fixture(scope="module")
def real_gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    """A Gitea of our own: another platform may have its ledger on the shared one."""
    with realgitea.serving(tmp_path_factory.mktemp("gitea")) as gitea:
        yield gitea


@pytest.fixture(scope="module")
def person(real_gitea: Gitea) -> tuple[str, str]:
    """A user of the forge, with their password."""
    return add_user(real_gitea, f"keiichi-{secrets.token_hex(3)}")


@pytest.fixture(scope="module")
def site(
    real_gitea: Gitea, person: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Up]:
    """A platform on that forge, with an order of the person's team and one of another."""
    bot = add_user(real_gitea, f"orderkit-{secrets.token_hex(3)}")
    scopes = tuple(scope for scope in BOT_SCOPES if "admin" not in scope)
    forge_token = add_token(real_gitea.url, bot, scopes)
    folder = tmp_path_factory.mktemp("signing")
    files = read_folder(reference_pack())
    commit = pack_commit(reference_pack(), files)
    pack = BootstrapRequest(
        files, PlatformValues(real_gitea.url, commit, LOCAL_REGISTRY), "user:default/guest"
    )
    wanted = mixedplatform.Wanted(folder, reference_pack(), real_gitea.url, bot[0], forge_token)
    with mixedplatform.running(wanted) as up:
        bootstrap(up.platform, pack, on_step=lambda *_: None)
        for team, members in ((OURS, (person[0],)), (THEIRS, ())):
            change = TeamChange(members=members)
            add_team(up.platform, team, requester="user:default/test", change=change)
            values = {"team_name": team, "stage": "stage1"}
            run_task(up.platform, TaskRequest("garage", values, Requester("user:default/eve")))
        yield up


@pytest.fixture(scope="module")
def console(site: Up, real_gitea: Gitea, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console that is an OAuth2 application of that forge."""
    sock = bind("service", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    application = {
        "name": "Orderkit",
        "redirect_uris": [f"{url}/sign-in/callback"],
        "confidential_client": True,
    }
    answer = requests.post(
        f"{real_gitea.url}/api/v1/user/applications/oauth2",
        auth=(real_gitea.user, real_gitea.password),
        json=application,
        timeout=30,
    )
    assert answer.status_code == 201, answer.text
    secret = tmp_path_factory.mktemp("client") / "secret"
    secret.write_text(answer.json()["client_secret"])
    sign_in = SignInSettings(real_gitea.url, answer.json()["client_id"], Path(secret))
    settings = settings_with(
        site.settings, service__url=url, service__access=AccessSettings(sign_in=sign_in)
    )
    server = HttpServer(service_app(connect(settings), service_options(settings, audit=None)), sock)
    server.start()
    yield url
    server.stop()


def test_a_member_signs_in_with_gitea_and_sees_their_teams_orders(
    console: str, person: tuple[str, str], tmp_path: Path
) -> None:
    with real_browser(console, tmp_path) as browser:
        browser.open(javascript=False)  # the lab's Gitea is built without its scripts
        browser.goto("/")
        browser.press("Sign in with 127.0.0.1")
        enter(browser, *person)

        text = browser.shows(f"garage-{OURS}")

        assert f"garage-{THEIRS}" not in text
        assert person[0] in text
        browser.goto(f"/orders/garage-{OURS}")
        browser.shows("Everything in Git is delivered and works", timeout_s=120)
        browser.goto(f"/orders/garage-{THEIRS}")
        browser.shows("Not allowed")
        browser.goto("/platform")
        browser.shows("Not allowed")


def enter(browser: RealBrowser, name: str, password: str) -> None:
    """Sign in at Gitea, and let the console know who that is."""
    browser.shows("Username")
    browser.fill("Username or Email Address", name)
    browser.fill("Password", password)
    browser.step("submit")
    browser.shows("Authorize")
    browser.press("Authorize Application")
