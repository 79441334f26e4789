"""The page of the workspaces' pack: create, list and end, in a browser, on the service's API."""

from __future__ import annotations

from pathlib import Path

from platformsettings import settings_with
from realbrowser import RealBrowser, real_browser
from starlette.responses import FileResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from orderkit.cli.connecting import service_options
from orderkit.core.platform.service_access import (
    AccessSettings,
    Client,
    Right,
    digest_of,
    write_clients,
)
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

PACK = Path(__file__).parents[2] / "packs" / "workspaces"
PAGE = PACK / "docs" / "workspaces.html"
TOKEN = "okt_workspaces_0123456789"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoKeyOfNobodyDemoKeyOfNobodyDemoKeyOf"
RIGHTS: frozenset[Right] = frozenset({"read", "order", "end"})
LINES_MAX = 110


def with_page(service: ASGIApp) -> ASGIApp:
    """Serve the page under the service's own address, as an ingress would."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["path"] == "/workspaces.html"
        await (FileResponse(PAGE) if is_page else service)(scope, receive, send)

    return app


def test_a_workspace_is_created_listed_and_ended_on_the_page(tmp_path: Path) -> None:
    clients = tmp_path / "clients.yaml"
    client = Client("vision", digest_of(TOKEN), "user:default/eve", ("vision",), RIGHTS)
    clients.write_text(write_clients([client]))
    request = EmbeddedRunRequest(tmp_path / "state", PACK, Ports(0, 0, 0, 0), ("vision",))
    with running(request, on_step=lambda *_: None) as site:
        settings = settings_with(site.settings, service__access=AccessSettings(tokens_file=clients))
        service = service_app(site.platform, service_options(settings, audit=None))
        server = HttpServer(with_page(service), bind("service", 0))
        server.start()
        try:
            with real_browser(server.url, tmp_path / "profile") as browser:
                use(browser)
        finally:
            server.stop()


def use(browser: RealBrowser) -> None:
    browser.open()
    browser.goto("/workspaces.html")
    assert browser.serious() == []
    browser.fill("Token", TOKEN)
    browser.step("enter")
    browser.shows("live")
    browser.step("mark")

    for label, value in {
        "Name": "cv",
        "Team": "vision",
        "Owner": "eve",
        "Machine": "g5.xlarge",
        "Public key": KEY,
        "Networks that may connect": "0.0.0.0/0",
    }.items():
        browser.fill(label, value)
    browser.tap("Create workspace")
    browser.shows("does not match")
    browser.fill("Networks that may connect", "203.0.113.0/24, 198.51.100.0/24")
    browser.tap("Create workspace")
    browser.shows("gpuworkspace-cv is ordered")
    browser.shows("eve g5.xlarge Ready ssh developer@", timeout_s=120)
    assert browser.serious() == []
    browser.shoot("page", of="workspaces")

    browser.tap("End gpuworkspace-cv")
    browser.tap("Lose the disk of gpuworkspace-cv")
    browser.loses("ssh developer@", timeout_s=120)
    assert browser.step("marked"), "the page was never loaded again"
    assert browser.step("seen") == {"problems": [], "foreign": []}


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text().splitlines()) <= LINES_MAX
