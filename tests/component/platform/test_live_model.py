"""The live model of a running platform: what people see of an order, without asking anybody."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import requests
from commands import Command

from ground.errors import InProgressError
from ground.names import OrderId, RepoId, TeamName
from ground.objects.kube_objects import CONFIG_MAP, ObjectKey
from orderkit.cli.connecting import SECRET_HEADER, service_options, token
from orderkit.core.order import ledger, ledger_applications, order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_view import OrderQuery, OrderRow
from orderkit.core.platform.webhook_key import HEADER, PATH, hook_key, signature
from orderkit.flows.argocd.commit_pinning import application_at
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.live.order_model import REREAD_S, OrderModel
from orderkit.flows.order import order_report
from orderkit.flows.order.order_watch import selected_orders
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import Platform, write_ledger
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running
from yamlfiles import yaml11

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

    def differing() -> set[tuple[str, ...]]:
        listed = {
            (report.entry.order, report.entry.team, report.kit, report.state.phase)
            for report in order_report.list_orders(platform.platform)
        }
        rows = {(r.row.order, r.row.team, r.row.kit, r.row.phase) for r in model.rows()}
        return {*map(tuple, listed ^ rows)}

    # events of an order that an earlier test left in trouble are looked at now and then only
    until(
        platform.platform.clock, differing, lambda found: not found,
        timeout_s=DEADLINE_S, goal="rows as listed", why_not=str,
    )  # fmt: skip
    delivered = {
        report.entry.order: report.delivered
        for report in order_report.list_orders(platform.platform)
    }
    assert {live.row.order: live.row.delivered for live in model.rows()} == delivered
    teams = [live.row.team for live in model.rows()]
    assert teams == sorted(teams)


def test_who_ordered_before_applications_said_so_is_known_from_the_ledgers_history(
    platform: Running, model: OrderModel, team: str, orderkit: Command
) -> None:
    """Not from the order's repository, where whoever pushes can write another name."""
    name = order(platform, team)
    row_when(model, name, is_ready)
    entry = OrderEntry(TeamName(team), OrderId(name))
    silent = application_at(platform.platform, entry) or {}
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
    assert ledger.requester_of(application_at(platform.platform, entry)) == EVE


def asked_for_lists(platform: Running) -> int:
    """How many lists of orders the service has answered."""
    service = platform.settings.service
    headers = {SECRET_HEADER: token(service)}
    figures = requests.get(f"{service.url}/metrics", headers=headers, timeout=30).text
    counts = re.findall(r'orderkit_requests_total\{operation="listOrders".*\} (\d+)', figures)
    return sum(map(int, counts))


def test_a_list_asks_the_service_and_is_the_same_without_it(
    platform: Running, model: OrderModel, team: str, orderkit: Command, tmp_path: Path
) -> None:
    row_when(model, order(platform, team), is_ready)
    before = asked_for_lists(platform)
    whole = orderkit("list", "--team", team, "--phase", "ready")
    assert asked_for_lists(platform) == before + 1
    dead = tmp_path / "platform.yaml"
    address = platform.settings.service.url
    dead.write_text(platform.settings.to_yaml().replace(address, "http://127.0.0.1:9"))

    alone = orderkit("list", "--team", team, "--phase", "ready", platform_file=dead)

    assert asked_for_lists(platform) == before + 1
    assert f"garage-{team}" in whole.out
    assert without_ages(alone.out) == without_ages(whole.out)


def test_a_list_does_not_wait_for_a_service_that_is_behind_the_ledger(
    platform: Running, model: OrderModel, team: str
) -> None:
    """Here it never gets there: it follows another ledger."""
    other = with_another_ledger(
        platform.platform, OrderEntry(TeamName(team), OrderId("garage-new"))
    )
    model.wait_complete()

    (row,) = selected_orders(other, OrderQuery(team=team))

    assert (row["order"], row["phase"]) == ("garage-new", "Written")


def with_another_ledger(platform: Platform, entry: OrderEntry) -> Platform:
    """Return the same platform with a ledger that Argo CD does not deliver, with one order."""
    other = replace(platform, ledger=RepoId(platform.ledger.owner, f"ledger-of-{entry.team}"))
    platform.forge.ensure_repo(other.ledger, description="another ledger")
    made = ledger_applications.order_application(
        entry, kit="garage", forge_url=platform.forge.base_url
    )
    change = FileChange(entry.application_path, yaml11.dump(made).encode(), None)
    platform.forge.write(other.ledger, [change], Operation("another", EVE, "another ledger"))
    return other


def test_a_push_to_the_ledger_makes_an_order_appear_at_once(platform: Running, team: str) -> None:
    """Argo CD does not know this ledger: only the forge's webhook says that it moved."""
    entry = OrderEntry(TeamName(team), OrderId("garage-first"))
    other = with_another_ledger(platform.platform, entry)
    server = HttpServer(
        service_app(other, service_options(platform.settings, audit=None)), bind("service", 0)
    )
    server.start()
    try:
        assert listed(server, platform) == ["garage-first"]
        second = replace(entry, order=OrderId("garage-second"))
        made = ledger_applications.order_application(second, kit="garage", forge_url="http://forge")
        change = FileChange(second.application_path, yaml11.dump(made).encode(), None)
        other.forge.write(other.ledger, [change], Operation("second", EVE, "second"))
        assert listed(server, platform) == ["garage-first"], "nothing has said so yet"

        data = json.dumps(
            {"ref": "refs/heads/main", "repository": {"full_name": str(other.ledger)}}
        ).encode()
        signed = signature(hook_key(token(platform.settings.service)), data)
        headers = {HEADER: signed, "X-Gitea-Event": "push", "Content-Type": "application/json"}
        answer = requests.post(f"{server.url}{PATH}", data, headers=headers, timeout=30)

        assert answer.ok, answer.text
        until(
            other.clock,
            lambda: listed(server, platform),
            lambda orders: orders == ["garage-first", "garage-second"],
            timeout_s=REREAD_S / 2,
            goal="the order in the list",
        )
    finally:
        server.stop()


def listed(server: HttpServer, platform: Running) -> list[str]:
    headers = {SECRET_HEADER: token(platform.settings.service)}
    answer = requests.get(f"{server.url}/v1/orders", headers=headers, timeout=60)
    return [row["order"] for row in answer.json()["orders"]]


def without_ages(text: str) -> str:
    return re.sub(r" \d+[smhd] ", " - ", text)


def test_an_order_that_ends_is_gone(platform: Running, model: OrderModel, team: str) -> None:
    name = order(platform, team)
    row_when(model, name, is_ready)
    destroy(platform.platform, EndRequest(name, EVE), on_step=lambda *_: None)

    row_when(model, name, lambda row: row.phase == "Ended")


def test_who_asks_before_everything_was_read_is_told_to_ask_again(platform: Running) -> None:
    made = OrderModel(platform.platform)

    with pytest.raises(InProgressError, match="the list of orders is not complete yet: "):
        made.wait_complete(0)


def test_a_closed_model_leaves_no_thread(platform: Running) -> None:
    made = OrderModel(platform.platform)
    before = set(threading.enumerate())
    made.start()
    made.wait_complete(DEADLINE_S)

    made.close()

    left = {thread for thread in threading.enumerate() if thread.name.startswith("live ")}
    assert left <= before


def test_an_object_that_the_server_refused_fails_the_order_in_its_own_words(
    platform: Running, model: OrderModel, orderkit: Command, team: str
) -> None:
    """The XR says "Unsynced resources" only; an event of it has the server's sentence."""
    bay, cluster = f"garage-{team}", platform.platform.cluster
    cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bay}}, owner="test"
    )
    owner = {
        "apiVersion": "example.org/v1", "kind": "Other", "name": "other", "uid": "1",
        "controller": True,
    }  # fmt: skip
    taken = {"name": "spec-sheet", "namespace": bay, "ownerReferences": [owner]}
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": taken}, owner="test")

    name = order(platform, team)
    row = row_when(model, name, lambda row: "ownerReferences" in row.reason)

    assert row.phase == "Failing"
    for command in (("status", name), ("list", "--failing"), ("doctor",)):
        # a list leaves a new reason out until it is known to hold no Secret
        shown = until(
            platform.platform.clock, partial(orderkit, *command),
            lambda done: "ownerReferences" in done.out, timeout_s=DEADLINE_S, goal=str(command),
        )  # fmt: skip
        assert name in shown.out, command
    waited = orderkit("order", "garage", f"team_name={team}", "stage=stage1", "--timeout", "5")
    assert "ownerReferences" in waited.err
    cluster.delete(ObjectKey(CONFIG_MAP, "spec-sheet", bay))
    row_when(model, name, is_ready)
