"""The dashboard of the documentation: fifty lines of JavaScript on the list and the stream."""

from __future__ import annotations

from pathlib import Path

from platformsettings import settings_with
from realbrowser import real_browser
from starlette.responses import FileResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ground.objects.kube_objects import Kind, ObjectKey
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import service_options
from orderkit.core.platform.service_access import AccessSettings, Client, digest_of, write_clients
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.ports.requesters import Requester
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

PAGE = Path(__file__).parents[2] / "docs" / "dashboard.html"
TOKEN = "okt_dashboard_0123456789"
LINES_MAX = 50


def with_dashboard(service: ASGIApp) -> ASGIApp:
    """Serve the page under the service's own address, as docs/service.md says."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["path"] == "/dashboard.html"
        await (FileResponse(PAGE) if is_page else service)(scope, receive, send)

    return app


def test_the_dashboard_shows_orders_and_what_happens_to_them(tmp_path: Path) -> None:
    clients = tmp_path / "clients.yaml"
    clients.write_text(
        write_clients(
            [Client("wall", digest_of(TOKEN), "user:default/wall", ("ae86",), frozenset({"read"}))]
        )
    )
    request = EmbeddedRunRequest(tmp_path / "state", reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as site:
        settings = settings_with(site.settings, service__access=AccessSettings(tokens_file=clients))
        service = service_app(site.platform, service_options(settings, audit=None))
        server = HttpServer(with_dashboard(service), bind("service", 0))
        server.start()
        try:
            follow(site, server.url, tmp_path)
        finally:
            server.stop()


def follow(site: Running, url: str, folder: Path) -> None:
    with real_browser(url, folder / "profile") as browser:
        browser.open()
        browser.goto("/dashboard.html")
        assert browser.serious() == []
        browser.fill("Token", "okt_not_a_token_0123456789")
        browser.step("enter")
        browser.shows("no client of this service has this token")
        browser.goto("/dashboard.html")
        browser.fill("Token", TOKEN)
        browser.step("enter")
        browser.shows("live")
        browser.step("mark")

        values = {"team_name": "ae86", "stage": "stage1"}
        run_task(site.platform, TaskRequest("garage", values, Requester("user:default/eve")))
        browser.shows("garage-ae86 ae86 Ready 2/2", timeout_s=120)
        xr = ObjectKey(Kind("blog.opsbogus.dev", "v1alpha1", "XGarage"), "garage-ae86")
        paused = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
        site.platform.cluster.patch(xr, paused, owner="admin")
        browser.shows("garage-ae86 ae86 Attention 2/2")
        assert browser.step("marked"), "the page was never loaded again"
        assert browser.step("seen") == {"problems": [], "foreign": []}


def test_the_dashboard_is_short() -> None:
    assert len(PAGE.read_text().splitlines()) <= LINES_MAX
