"""
Campaigns over many orders on the embedded platform, which runs as a process of its own.

A change of fields, direct, with all gates, until every order is Ready, and its requests to the
forge; the drift of the same orders; and the status of a campaign with ten thousand.
"""

from __future__ import annotations

import http.client
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.change import directly
from bench.figure import Figure, size, timed_s
from bench.platform import REQUESTER
from ground.names import BlobSha, blob_sha
from orderkit.core.campaign.definition import path_of
from orderkit.core.campaign.record import CampaignRecord, OrderOutcome, WaveRecord, record_path
from orderkit.flows.campaign import planning, starting
from orderkit.flows.campaign.running import run
from orderkit.flows.campaign.showing import campaign_view
from orderkit.flows.order import order_report, placing
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester

ORDERS, RECORDED = size((1_000, 10_000), (3, 20))
WHO = Requester(REQUESTER)
FILE = """\
apiVersion: orderkit.dev/v1alpha1
kind: Campaign
metadata: {name: NAME}
spec:
  reason: bench
  what: {fields: {set: {stage: stage2}}}
  which: {kit: garage}
  how: direct
  waves: [{name: canary, count: 3}]
  pace: {perMinute: 10000, inFlight: 100}
"""


def figures(orders: int = ORDERS) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, directly(Path(name)) as platform:
        _fill(platform, orders)
        yield Figure(
            f"campaign.drift.{orders}",
            timed_s(lambda: planning.drift(platform, ["garage"])),
            "s",
            aim="<= 20",
        )
        _put(platform, "tune")
        with counted(platform) as requests:
            starting.start(platform, "tune", WHO)
            took_s = timed_s(lambda: run(platform, "tune", WHO, timeout_s=3_600, is_new=True))
        yield Figure(f"campaign.fields.{orders}", took_s, "s", aim="<= 300")
        yield Figure("campaign.requests-an-order", len(requests) / orders, "", aim="<= 4")
        _record(platform)
        yield Figure(
            f"campaign.status.{RECORDED}",
            timed_s(lambda: campaign_view(platform, "recorded")),
            "s",
            aim="<= 2",
        )


def _fill(platform: Platform, orders: int) -> None:
    """Place so many orders, and wait until they are Ready."""
    for number in range(orders):
        team = f"fleet-{number:04d}"
        add_team(platform, team, requester=REQUESTER)
        values = {"team_name": team, "stage": "stage1"}
        wanted = placing.OrderRequest("garage", values, REQUESTER, wait=False)
        placing.order(platform, wanted, on_step=lambda *_: None)
    until(
        SystemClock(),
        lambda: order_report.list_orders(platform),
        lambda reports: all(report.state.ready for report in reports),
        timeout_s=600,
        goal="all orders Ready",
    )


def _put(platform: Platform, name: str) -> BlobSha:
    data = FILE.replace("NAME", name).encode()
    starting.put(platform, starting.CampaignText.read(data, name=str(path_of(name))), WHO)
    return blob_sha(data)


def _record(platform: Platform) -> None:
    """Write the record of a campaign that ten thousand orders went through."""
    definition = _put(platform, "recorded")
    orders = tuple(f"garage-{number:05d}" for number in range(RECORDED))
    outcomes = {order: OrderOutcome("ready", "0" * 40) for order in orders}
    wave = WaveRecord("all", orders, "2026-11-28T03:00:00Z", outcomes)
    record = CampaignRecord(
        "recorded", "recorded-1", definition, "done", "2026-11-28T03:00:00Z", (wave,)
    )
    change = FileChange(record_path("recorded"), record.to_text().encode(), None)
    platform.forge.write(platform.ledger, [change], Operation("recorded", WHO.ref, "recorded"))


@contextmanager
def counted(platform: Platform) -> Iterator[list[str]]:
    """List the requests of this process to the forge."""
    port, send = urlsplit(platform.forge.base_url).port, http.client.HTTPConnection.putrequest
    requests: list[str] = []

    def putrequest(
        connection: http.client.HTTPConnection, method: str, url: str, *more: Any, **named: Any
    ) -> None:
        if connection.port == port:
            requests.append(f"{method} {url}")
        send(connection, method, url, *more, **named)

    http.client.HTTPConnection.putrequest = putrequest  # type: ignore[assignment, method-assign]
    try:
        yield requests
    finally:
        http.client.HTTPConnection.putrequest = send  # type: ignore[method-assign]
