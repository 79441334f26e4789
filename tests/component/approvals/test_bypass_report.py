"""``approval.bypass: report``: what got past an approval is delivered, and everybody sees it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
from approvaldesk import RULES, Desk, published_approval
from bays import Bay, ask, set_
from commands import Command
from tests.component.approvals.test_approval_ways import await_phase

from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.settling import settle
from orderkit.flows.order.order_report import status
from orderkit.ports.forge import FileChange, Operation


@pytest.fixture(autouse=True)
def reporting(desk: Desk) -> Iterator[None]:
    with published_approval(desk.platform, RULES, bypass="report"):
        yield


def register(orderkit: Command, desk: Desk, order: str) -> None:
    done = orderkit("register", order, "--kit", "garage", "--team", desk.team)
    assert done.code == 0, done.err


def write_in_ledger(desk: Desk, entry: OrderEntry, edit: Callable[[str], str]) -> None:
    """Edit an order's file in the ledger past Orderkit."""
    platform, path = desk.platform, entry.application_path
    file = platform.forge.read(platform.ledger, path, "main")
    assert file is not None
    change = FileChange(path, edit(file.data.decode()).encode(), file.sha)
    operation = Operation(f"edit-{secrets.token_hex(3)}", "user:default/mallory", "by hand")
    platform.forge.write(platform.ledger, [change], operation)


def assert_reported(orderkit: Command, desk: Desk, entry: OrderEntry, words: str) -> None:
    """Assert that the order works, and that status, list and doctor say what is wrong."""
    await_phase(desk, entry, "Attention")
    shown, listed = orderkit("status", entry.order), orderkit("list")
    findings = orderkit("doctor", "--json").json["findings"]
    (said,) = [finding for finding in findings if finding["what"] == "approvals"]

    assert status(desk.platform, entry.order).state.ready
    assert "It is delivered without approval" in shown.out
    assert words in shown.out
    (line,) = [line for line in listed.out.splitlines() if entry.order in line.split()]
    assert "Attention" in line
    assert said["verdict"] == "warn"
    assert entry.order in said["detail"]
    assert words in said["detail"]
    assert said["advice"]


def test_an_order_that_an_admin_merged_is_delivered_and_reported(
    desk: Desk, orderkit: Command
) -> None:
    entry = desk.order().entry
    pull, repo = desk.proposal(entry), desk.platform.ledger
    body = {"context": "orderkit/approval", "state": "success"}
    desk.admin.api("POST", f"/repos/{repo}/statuses/{pull.head_commit}", body)
    desk.admin.api("POST", f"/repos/{repo}/pulls/{pull.number}/merge", {"Do": "merge"})

    settle(desk.platform, entry)  # unless the service was faster

    words = f"#{pull.number} of {repo} was merged by bypassing Orderkit, without group finance"
    assert_reported(orderkit, desk, entry, words)
    register(orderkit, desk, entry.order)
    assert_reported(orderkit, desk, entry, words)


def test_a_ledger_that_could_not_be_read_for_a_while_hides_no_report(
    desk: Desk, orderkit: Command
) -> None:
    entry = desk.order(stage="stage1").entry
    bay = Bay(desk.platform, desk.team, desk.team)
    bay.edit("stage1", "stage3")
    register(orderkit, desk, entry.order)
    write_in_ledger(desk, entry, lambda text: f"{text}<<<<<<< HEAD\n")
    write_in_ledger(desk, entry, lambda text: text.replace("<<<<<<< HEAD\n", ""))
    ask(bay, set_("budget", 5))

    register(orderkit, desk, entry.order)

    assert_reported(orderkit, desk, entry, "without group finance, because stage 3 is expensive")


def test_a_change_by_hand_is_delivered_and_reported_until_it_is_taken_back(
    desk: Desk, orderkit: Command
) -> None:
    entry = desk.order(stage="stage1").entry
    bay = Bay(desk.platform, desk.team, desk.team)
    bay.edit("stage1", "stage3")
    register(orderkit, desk, entry.order)

    words = "without group finance, because stage 3 is expensive"
    assert_reported(orderkit, desk, entry, words)

    register(orderkit, desk, entry.order)  # says nothing about what was delivered before
    ask(bay, set_("budget", 5))
    register(orderkit, desk, entry.order)
    assert_reported(orderkit, desk, entry, words)

    ask(bay, set_("stage", "stage1"))
    register(orderkit, desk, entry.order)
    await_phase(desk, entry, "Ready")
    findings = orderkit("doctor", "--json").json["findings"]
    (said,) = [finding for finding in findings if finding["what"] == "approvals"]
    assert entry.order not in said["detail"]
