"""``GET /v1/stream`` over HTTP: who sees what, coming back, bounds, and how streams end."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests
from openid import AUDIENCE, providing
from platformsettings import settings_with
from portalsides import eventually

from orderkit.cli.connecting import SECRET_HEADER, service_options, token
from orderkit.core.platform.service_access import (
    AccessSettings,
    Client,
    OidcSettings,
    digest_of,
    write_clients,
)
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.team.teams import add_team
from orderkit.ports.requesters import Requester
from orderkit.web.event_stream import StreamBounds
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

OURS, THEIRS = "stream-ours", "stream-theirs"
TOKEN = "okt_stream_0123456789"
BLIND = "okt_blind_0123456789"
EVE = "user:default/eve"
TIMEOUT_S = 120
QUICK = StreamBounds(heartbeat_s=0.05, of_caller=3)


@dataclass(frozen=True)
class Event:
    """What came: an event, or a comment without a name."""

    name: str
    id: str
    data: Any


@dataclass(frozen=True)
class Site:
    """A service on the shared platform, and its portal's secret."""

    url: str
    secret: str
    server: HttpServer

    def ask(self, path: str, **headers: str) -> requests.Response:
        headers = headers or {SECRET_HEADER: self.secret}
        with requests.Session() as session:
            session.trust_env = False
            return session.get(f"{self.url}{path}", headers=headers, timeout=TIMEOUT_S)

    @contextlib.contextmanager
    def stream(self, query: str = "", **headers: str) -> Iterator[Iterator[Event]]:
        """Open a stream; without headers as the portal."""
        if not {"Authorization", SECRET_HEADER} & headers.keys():
            headers = {SECRET_HEADER: self.secret, **headers}
        with requests.Session() as session:
            session.trust_env = False
            with session.get(
                f"{self.url}/v1/stream{query}", headers=headers, stream=True, timeout=TIMEOUT_S
            ) as answer:
                assert answer.status_code == 200, answer.text
                assert answer.headers["content-type"].startswith("text/event-stream")
                yield events(answer)


def events(answer: requests.Response) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        data = json.loads(fields["data"]) if "data" in fields else None
        yield Event(fields.get("event", ""), fields.get("id", ""), data)
        fields = {}


def named(stream: Iterator[Event], name: str) -> Event:
    """Return the next event of that name."""
    return next(event for event in stream if event.name == name)


@contextlib.contextmanager
def serving(platform: Running, folder: Path, bounds: StreamBounds) -> Iterator[Site]:
    clients = folder / "clients.yaml"
    ours = Client("ours", digest_of(TOKEN), "user:default/ours", (OURS,), frozenset({"read"}))
    blind = Client("blind", digest_of(BLIND), "user:default/b", (OURS,), frozenset({"order"}))
    clients.write_text(write_clients([ours, blind]))
    access = AccessSettings(tokens_file=clients, requests_per_minute=100_000)
    settings = settings_with(platform.settings, service__access=access)
    options = replace(service_options(settings, audit=None), streams=bounds)
    server = HttpServer(service_app(platform.platform, options), bind("service", 0))
    server.start()
    try:
        yield Site(server.url, token(settings.service), server)
    finally:
        server.stop()


@pytest.fixture(scope="module")
def site(platform: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for team in (OURS, THEIRS):
        add_team(platform.platform, team, requester=EVE)
    with serving(platform, tmp_path_factory.mktemp("stream"), QUICK) as made:
        assert made.ask("/v1/orders").status_code == 200
        yield made


def order(platform: Running, team: str, stage: str = "stage1") -> str:
    values = {"team_name": team, "stage": stage}
    run_task(platform.platform, TaskRequest("garage", values, Requester(EVE)))
    return f"garage-{team}"


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_rows_of_another_team_never_appear(platform: Running, site: Site) -> None:
    with (
        site.stream(**bearer(TOKEN)) as ours,
        site.stream() as everything,
        site.stream(f"?team={OURS}&kit=garage") as asked,
    ):
        assert next(ours).name == next(everything).name == next(asked).name == "ready"
        theirs = order(platform, THEIRS)
        assert any(e.name == "order" and e.data["order"] == theirs for e in everything)
        own = order(platform, OURS)

        for event in ours:
            assert event.data is None or event.data["order"] == own
            if event.data and event.data["ready"]:
                break
        assert next(e for e in asked if e.data).data["order"] == own
    listed = site.ask("/v1/orders", **bearer(TOKEN)).json()
    assert [entry["order"] for entry in listed["orders"]] == [own]
    assert event.data == listed["orders"][0]


def test_a_client_that_comes_back_gets_what_it_missed(
    platform: Running, site: Site, team: str
) -> None:
    position = site.ask("/v1/orders").json()["position"]
    name = order(platform, team)
    with site.stream(f"?after={position}&order={name}") as stream:
        assert next(stream).id == position
        first = named(stream, "order")
        assert first.data["order"] == name
    with site.stream(f"?order={name}", **{"Last-Event-ID": position}) as stream:
        assert named(stream, "order") == first


@pytest.mark.parametrize("position", ["0badcafe-3", "x", "0badcafe-99999999999999999"])
def test_a_position_of_another_process_means_to_load_everything(position: str, site: Site) -> None:
    with site.stream(**{"Last-Event-ID": position}) as stream:
        event = next(stream)

    assert event.name == "reload"
    epoch = site.ask("/v1/orders").json()["position"].partition("-")[0]
    assert event.id.startswith(f"{epoch}-")


def test_a_silent_stream_says_that_it_lives_and_where_it_is(site: Site) -> None:
    with site.stream("?team=nobody") as stream:
        next(stream)
        beat = next(stream)

    assert (beat.name, beat.data) == ("", None)
    assert "-" in beat.id


def test_one_caller_may_not_open_too_many(site: Site) -> None:
    with contextlib.ExitStack() as opened:
        proofs = [bearer(TOKEN)] * QUICK.of_caller
        streams = [opened.enter_context(site.stream(**proof)) for proof in [*proofs, {}]]
        assert [next(stream).name for stream in streams] == ["ready"] * len(streams)
        refused = site.ask("/v1/stream", **bearer(TOKEN))
        assert f"orderkit_streams_open {QUICK.of_caller + 1}" in site.ask("/metrics").text

    assert refused.status_code == 503
    assert "too many open streams" in refused.json()["error"]["message"]


def test_the_right_to_read_is_needed(site: Site) -> None:
    assert site.ask("/v1/stream", **bearer(BLIND)).status_code == 403


def test_a_stream_ends_after_a_while(platform: Running, tmp_path: Path) -> None:
    with (
        serving(platform, tmp_path, StreamBounds(life_s=0.1)) as short,
        short.stream() as stream,
    ):
        names = {event.name for event in stream}
        assert names - {"order"} == {"ready", ""}, "other tests' orders may change meanwhile"
        eventually(lambda: "orderkit_streams_open 0" in short.ask("/metrics").text)


def test_a_stream_ends_when_its_callers_token_expires(platform: Running) -> None:
    with providing() as provider:
        access = AccessSettings(oidc=OidcSettings(provider.issuer, AUDIENCE))
        settings = settings_with(platform.settings, service__access=access)
        server = HttpServer(
            service_app(platform.platform, service_options(settings, audit=None)),
            bind("service", 0),
        )
        server.start()
        site = Site(server.url, token(settings.service), server)
        assert site.ask("/v1/orders").status_code == 200
        try:
            brief = provider.token("ae86", exp=int(time.time()) + 3)
            with site.stream(**bearer(brief)) as stream:
                assert next(stream).name == "ready"
                assert {event.name for event in stream} <= {"", "order"}, "and it ended by itself"
            with site.stream(**bearer(provider.token("ae86"))) as stream:
                assert next(stream).name == "ready"
        finally:
            server.stop()


def test_streams_end_with_the_service(platform: Running, tmp_path: Path) -> None:
    with serving(platform, tmp_path, StreamBounds()) as ending, ending.stream() as stream:
        next(stream)
        ending.server.stop()

        with contextlib.suppress(requests.exceptions.ChunkedEncodingError):
            assert list(stream) == []
