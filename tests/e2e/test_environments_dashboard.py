"""What remains of the document's dashboard: a page that orders environments and follows them."""

from __future__ import annotations

from pathlib import Path

from platformsettings import settings_with
from realbrowser import real_browser
from starlette.responses import FileResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from orderkit.cli.connecting import service_options
from orderkit.core.platform.service_access import AccessSettings, Client, digest_of, write_clients
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

PACK = Path(__file__).parents[2] / "packs" / "environments"
PAGE = PACK / "docs" / "dashboard.html"
VALUES = {"BUCKET_PREFIX": "acme-mfe", "PROJECT_ID": "acme-lab"}
TOKEN = "okt_dashboard_0123456789"
LINES_MAX = 70


def with_dashboard(service: ASGIApp) -> ASGIApp:
    """Serve the page under the service's own address."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["path"] == "/environments.html"
        await (FileResponse(PAGE) if is_page else service)(scope, receive, send)

    return app


def test_an_environment_is_ordered_on_the_page_and_followed_until_it_is_ready(
    tmp_path: Path,
) -> None:
    clients = tmp_path / "clients.yaml"
    client = Client(
        "wall", digest_of(TOKEN), "user:default/wall", ("ae86",), frozenset({"read", "order"})
    )
    clients.write_text(write_clients([client]))
    request = EmbeddedRunRequest(
        tmp_path / "state", PACK, Ports(0, 0, 0, 0), ("ae86",), values=VALUES
    )
    with running(request, on_step=lambda *_: None) as site:
        settings = settings_with(site.settings, service__access=AccessSettings(tokens_file=clients))
        service = service_app(site.platform, service_options(settings, audit=None))
        server = HttpServer(with_dashboard(service), bind("service", 0))
        server.start()
        try:
            follow(server.url, tmp_path)
        finally:
            server.stop()


def follow(url: str, folder: Path) -> None:
    with real_browser(url, folder / "profile") as browser:
        browser.open()
        browser.goto("/environments.html")
        assert browser.serious() == []
        browser.fill("Token", "okt_not_a_token_0123456789")
        browser.tap("Show")
        browser.shows("no client of this service has this token")
        browser.goto("/environments.html")
        browser.fill("Token", TOKEN)
        browser.tap("Show")
        browser.shows("live")
        browser.step("mark")
        browser.fill("Name", "feature-x-review-app")
        browser.tap("Create environment")

        browser.shows("Ready 8/8", timeout_s=300)
        shown = browser.text
        assert "appenvironment-feature-x-review-app" in shown
        assert "Cluster: 203.0.113.20" in shown
        assert "Database: 203.0.113.40" in shown
        assert "until 20" in shown
        assert browser.step("marked"), "the page was never loaded again"
        assert browser.step("seen") == {"problems": [], "foreign": []}


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text().splitlines()) <= LINES_MAX
