"""
Campaigns over many orders on the embedded platform, which runs as a process of its own.

A change of fields, direct, with all gates, until every order is Ready, its requests to the forge,
and how much of it delivering takes anyway; drift and a template update of the same orders; a
migration to another version; and the status of a campaign with ten thousand.
"""

from __future__ import annotations

import http.client
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from bench.campaign_files import template_figures, ten_files, version_figures
from bench.change import directly
from bench.figure import Figure, size, timed_s
from bench.platform import REQUESTER
from ground.names import BlobSha, CommitSha, OrderId, RepoId, TeamName, blob_sha
from orderkit.core.campaign.definition import path_of
from orderkit.core.campaign.record import CampaignRecord, OrderOutcome, WaveRecord, record_path
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.campaign import planning, starting
from orderkit.flows.campaign.running import run
from orderkit.flows.campaign.showing import campaign_view
from orderkit.flows.order import order_report, placing
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester

ORDERS, RECORDED, ALONE = size((1_000, 10_000, 200), (3, 20, 2))
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from version_figures(folder)
        with directly(folder, ten_files) as platform:
            _fill(platform, orders)
            yield from _ledger_size(platform, orders)
            yield Figure(
                f"campaign.drift.{orders}",
                timed_s(lambda: planning.drift(platform, ["garage"])),
                "s",
                aim="<= 20",
            )
            yield from _fields(platform, orders)
            yield from template_figures(platform, folder, orders, WHO)
            yield from _recorded(platform)


def _fields(platform: Platform, orders: int) -> Iterator[Figure]:
    """Carry a campaign out, and compare it with what delivering its edits alone takes."""
    _put(platform, "tune")
    with counted(platform) as requests:
        starting.start(platform, "tune", WHO)
        took_s = timed_s(lambda: run(platform, "tune", WHO, timeout_s=3_600, is_new=True))
    yield Figure(f"campaign.fields.{orders}", took_s, "s", aim="<= 300")
    yield Figure("campaign.requests-an-order", len(requests) / orders, "", aim="<= 4")
    alone = min(orders, ALONE)
    an_order_s, alone_s = took_s / orders, _alone_s(platform, alone) / alone
    yield Figure(
        "campaign.delivery-share",
        alone_s / an_order_s * 100,
        "%",
        peer=f"{alone} of the edits written to the forge, until all are Ready; ms an order",
        peer_value=alone_s * 1000,
        ratio=an_order_s / alone_s,
        aim="<= 60",
    )


def _alone_s(platform: Platform, orders: int) -> float:
    """Time what so many edits take without a campaign: written, delivered and assembled."""
    path = PurePosixPath("manifests/xgarage.yaml")
    names = [order_name(number) for number in range(orders)]
    repos = {f"garage-{name}": RepoId(name, f"garage-{name}") for name in names}
    files = {order: platform.forge.read(repo, path, "main") for order, repo in repos.items()}

    def write(order: str) -> CommitSha:
        file = files[order]
        assert file is not None
        change = FileChange(path, file.data.replace(b"stage2", b"stage1"), file.sha)
        operation = Operation(f"alone-{order}", WHO.ref, "by hand")
        return platform.forge.write(repos[order], [change], operation).commit

    def deliver() -> None:
        with ThreadPoolExecutor(4) as pool:
            commits = dict(zip(repos, pool.map(write, repos), strict=True))
        for order, commit in commits.items():
            assert await_commit(platform, order, commit, timeout_s=600).ready

    return timed_s(deliver)


def _ledger_size(platform: Platform, orders: int) -> Iterator[Figure]:
    """Say what an order takes of the ledger; each has a team of its own here."""
    snapshot = ledger_snapshot(platform)
    own = [path for path in snapshot.blobs if order_name(0) in str(path)]
    entry = OrderEntry(TeamName(order_name(0)), OrderId(f"garage-{order_name(0)}"))
    file = platform.forge.read(platform.ledger, entry.application_path, snapshot.commit)
    assert file is not None
    yield Figure("campaign.ledger.entry", len(file.data), "B")
    yield Figure("campaign.ledger.files-a-team", len(own) - 1, "")
    yield Figure("campaign.ledger.files", len(snapshot.blobs), f"for {orders} orders")


def _recorded(platform: Platform) -> Iterator[Figure]:
    size_bytes = _record(platform)
    yield Figure("campaign.record.bytes-an-order", size_bytes / RECORDED, "B")
    yield Figure(
        f"campaign.status.{RECORDED}",
        timed_s(lambda: campaign_view(platform, "recorded")),
        "s",
        aim="<= 2",
    )


def order_name(number: int) -> str:
    """Return the team of an order, after which the order is named."""
    return f"fleet-{number:04d}"


def _fill(platform: Platform, orders: int) -> None:
    """Place so many orders, and wait until they are Ready."""
    for number in range(orders):
        team = order_name(number)
        add_team(platform, team, requester=REQUESTER)
        values = {"team_name": team, "stage": "stage1"}
        wanted = placing.TaskRequest("garage", values, Requester(REQUESTER))
        placing.order(platform, wanted, wait_s=None)
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


def _record(platform: Platform) -> int:
    """Write the record of a campaign that ten thousand orders went through; return its size."""
    definition = _put(platform, "recorded")
    orders = tuple(f"garage-{number:05d}" for number in range(RECORDED))
    outcomes = {order: OrderOutcome("ready", "0" * 40) for order in orders}
    wave = WaveRecord("all", orders, "2026-11-28T03:00:00Z", outcomes)
    record = CampaignRecord(
        "recorded", "recorded-1", definition, "done", "2026-11-28T03:00:00Z", (wave,)
    )
    data = record.to_text().encode()
    change = FileChange(record_path("recorded"), data, None)
    platform.forge.write(platform.ledger, [change], Operation("recorded", WHO.ref, "recorded"))
    return len(data)


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
