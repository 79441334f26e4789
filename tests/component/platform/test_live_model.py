"""The live model of a running platform: what people see of an order, without asking anybody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from commands import Command

from orderkit.cli.serving.embedded_platform import Running
from orderkit.core.names import OrderId, TeamName
from orderkit.core.order import ledger, order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_view import OrderRow
from orderkit.core.yaml import yaml11
from orderkit.flows.argocd.commit_pinning import recorded
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.end.destroying import EndRequest, destroy
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.order import order_report
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import write_ledger
from orderkit.flows.waiting import until
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester

DEADLINE_S = 120.0
EVE = "user:default/eve"


@pytest.fixture(scope="module")
def model(platform: Running) -> Iterator[OrderModel]:
    """A model of the shared platform."""
    made = OrderModel(platform.platform)
    made.start()
    made.wait_complete(DEADLINE_S)
    yield made
    made.close()


def order(platform: Running, team: str) -> str:
    values = {"team_name": team, "stage": "stage1"}
    run_task(platform.platform, TaskRequest("garage", values, Requester(EVE)))
    return f"garage-{team}"


def row_when(model: OrderModel, name: str, is_met: Callable[[OrderRow], bool]) -> OrderRow:
    """Wait for the model alone, with the log of changes as the signal."""
    changed = threading.Event()
    unsubscribe = model.log.subscribe(changed.set)
    deadline_s = time.monotonic() + DEADLINE_S
    try:
        while True:
            changed.clear()
            live = model.row(name)
            row = live.row if live else OrderRow(name, "", "", "Ended")
            if is_met(row):
                return row
            assert changed.wait(max(0.0, deadline_s - time.monotonic())), live
    finally:
        unsubscribe()


def is_ready(row: OrderRow) -> bool:
    return row.phase == "Ready"


def test_an_order_appears_and_becomes_ready(
    platform: Running, model: OrderModel, team: str
) -> None:
    name = order(platform, team)

    row = row_when(
        model, name, lambda row: is_ready(row) and row.parts.ready == row.parts.total > 0
    )

    assert (row.order, row.team, row.kit) == (name, team, "garage")
    assert row.owner == EVE
    assert row.reason == ""
    assert row.repository.endswith(f"/{team}/{name}")


def test_rows_are_what_a_list_reads(platform: Running, model: OrderModel, team: str) -> None:
    row_when(model, order(platform, team), is_ready)

    listed = {
        report.entry.order: (report.entry.team, report.kit, report.state.phase, report.delivered)
        for report in order_report.list_orders(platform.platform)
    }
    rows = {
        live.row.order: (live.row.team, live.row.kit, live.row.phase, live.row.delivered)
        for live in model.rows()
    }

    assert rows == listed
    teams = [live.row.team for live in model.rows()]
    assert teams == sorted(teams)


def test_who_ordered_before_applications_said_so_is_known_from_the_ledgers_history(
    platform: Running, model: OrderModel, team: str, orderkit: Command
) -> None:
    """Not from the order's repository, where whoever pushes can write another name."""
    name = order(platform, team)
    row_when(model, name, is_ready)
    entry = OrderEntry(TeamName(team), OrderId(name))
    silent = recorded(platform.platform, entry) or {}
    del silent["metadata"]["annotations"][ledger.REQUESTER_ANNOTATION]
    changed = Operation(f"silence-{name}", "user:default/operator", "an older version wrote it")
    write_ledger(platform.platform, {entry.application_path: yaml11.dump(silent)}, changed)
    record = platform.platform.forge.read(entry.repository, order_file.PATH, "main")
    assert record is not None
    forged = FileChange(order_file.PATH, record.data.replace(b"eve", b"mallory"), record.sha)
    platform.platform.forge.write(entry.repository, [forged], Operation("forge", EVE, "mine now"))
    key = application_key(entry.order)
    until(
        platform.platform.clock,
        lambda: platform.platform.cluster.get(key),
        lambda application: not ledger.requester_of(application),
        timeout_s=DEADLINE_S,
        goal="Argo CD taking the annotation away",
    )

    row_when(model, name, lambda row: row.owner == EVE)
    fresh = OrderModel(platform.platform)
    fresh.start()
    try:
        row_when(fresh, name, lambda row: row.owner == EVE)
    finally:
        fresh.close()
    assert [row["owner"] for row in orderkit("list", "--team", team, "--json").json["orders"]] == [
        EVE
    ]
    register(
        platform.platform,
        Registration(entry.order, "garage", entry.team, "user:default/mallory"),
    )
    assert ledger.requester_of(recorded(platform.platform, entry)) == EVE


def test_an_order_that_ends_is_gone(platform: Running, model: OrderModel, team: str) -> None:
    name = order(platform, team)
    row_when(model, name, is_ready)
    destroy(platform.platform, EndRequest(name, EVE), on_step=lambda *_: None)

    row_when(model, name, lambda row: row.phase == "Ended")


def test_a_closed_model_leaves_no_thread(platform: Running) -> None:
    made = OrderModel(platform.platform)
    before = set(threading.enumerate())
    made.start()
    made.wait_complete(DEADLINE_S)

    made.close()

    left = {thread for thread in threading.enumerate() if thread.name.startswith("live ")}
    assert left <= before
