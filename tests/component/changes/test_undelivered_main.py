"""A protected main that is ahead of what is delivered: each view of the order says the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from bays import Bay, new_bay
from commands import Command
from faultproxy import open_proxy
from portalsides import eventually

from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import token
from orderkit.core.order.order_view import OrderRow
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.order import order_report
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.platform import Platform
from orderkit_standins.serve_platform import Running

FIRST = "aaa-told"
"""A list without the service looks at twenty orders, by the names of their teams."""


@pytest.fixture(scope="module")
def model(site: Running) -> Iterator[OrderModel]:
    made = OrderModel(site.platform)
    made.start()
    made.wait_complete(120)
    yield made
    made.close()


def listed(platform: Platform, bay: Bay) -> OrderReport:
    return next(r for r in order_report.list_orders(platform) if r.entry.order == bay.order)


def row(model: OrderModel, bay: Bay) -> OrderRow | None:
    live = model.row(bay.order)
    return live.row if live else None


def is_ready(platform: Platform, bay: Bay) -> bool:
    return order_report.status(platform, bay.order).state.phase == "Ready"


def test_list_status_and_the_live_model_say_it_alike_and_the_hint_works(
    platform: Platform, orderkit: Command, model: OrderModel
) -> None:
    """Somebody who administers the forge pushes, or a command is killed before it delivers."""
    bay = new_bay(platform, FIRST)
    eventually(lambda: is_ready(platform, bay))
    bay.edit("stage1", "stage2")
    model.look_at(bay.repo)

    state = order_report.status(platform, bay.order).state
    eventually(lambda: (found := row(model, bay)) is not None and found.phase == "Failing")
    seen, in_list = row(model, bay), listed(platform, bay).state
    assert seen is not None
    assert state.reason.startswith(f"main is at {bay.head[:8]}, and the ledger has ")
    assert (seen.phase, seen.reason, seen.remedy) == ("Failing", state.reason, state.advice)
    assert (in_list.phase, in_list.reason, in_list.advice) == (
        state.phase,
        state.reason,
        state.advice,
    )
    eventually(lambda: bay.order in orderkit("list", "--failing").out)  # the service was told

    _, _, command = state.advice.rpartition("orderkit ")
    assert orderkit(*command.split()).code == 0

    eventually(lambda: is_ready(platform, bay))
    eventually(lambda: (found := row(model, bay)) is not None and found.phase == "Ready")
    assert listed(platform, bay).state.phase == "Ready"


def test_a_change_that_is_being_delivered_is_not_called_failing(
    platform: Platform, orderkit: Command, model: OrderModel
) -> None:
    bay = new_bay(platform)
    eventually(lambda: is_ready(platform, bay))
    phases: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            found = row(model, bay)
            phases.update({found.phase} if found else ())

    thread = threading.Thread(target=watch)
    thread.start()
    changed = orderkit("change", bay.order, "note=blue")
    done.set()
    thread.join()

    assert changed.code == 0, changed.err
    assert phases <= {"Ready", "Delivering", "Assembling"}, changed.out


def test_a_list_without_the_service_looks_at_a_bounded_number_of_heads(
    site: Running, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    bays = [new_bay(platform) for _ in range(3)]
    eventually(lambda: all(is_ready(platform, bay) for bay in bays))
    monkeypatch.setattr(order_report, "_HEADS_MAX", 2)
    with (
        open_proxy(site.settings.forge.url) as proxy,
        GiteaForge(proxy.url, token=token(site.settings.forge)) as forge,
    ):
        order_report.list_orders(replace(platform, forge=forge))

    looked = [line for line in proxy.log if "/branches/" in line and "/garage-" in line]
    assert len(looked) == 2, looked
