"""The ways to agree: the forge with the service's help, the command, the API and the console."""

from __future__ import annotations

import pytest
import requests
from approvaldesk import Desk
from commands import Command
from forgeusers import ForgeUser

from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.cli.serving.embedded_platform import Running
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.waiting import until


def await_phase(desk: Desk, entry: OrderEntry, *phases: str) -> None:
    until(
        desk.platform.clock,
        lambda: desk.phase(entry),
        lambda phase: phase in phases,
        timeout_s=60,
        goal=f"{entry.order}: {phases}",
    )


def sign_as(monkeypatch: pytest.MonkeyPatch, user: ForgeUser) -> None:
    monkeypatch.setenv("ORDERKIT_FORGE_USER", user.login)
    monkeypatch.setenv("ORDERKIT_FORGE_PASSWORD", user.password)


def test_a_review_on_the_forge_is_enough(desk: Desk) -> None:
    """The forge reports it to the service, which merges and delivers."""
    entry = desk.order().entry

    desk.approve(desk.proposal(entry), desk.frank)

    await_phase(desk, entry, "Written", "Delivering", "Assembling", "Ready")


def test_closing_on_the_forge_is_enough(desk: Desk) -> None:
    entry = desk.order().entry

    desk.platform.forge.close_pull(desk.platform.ledger, desk.proposal(entry).number)

    await_phase(desk, entry, "Ended")


def test_the_command_approves_with_ones_own_credentials(
    desk: Desk, orderkit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = desk.order().entry
    sign_as(monkeypatch, desk.frank)

    listed = orderkit("approvals")
    done = orderkit("approve", entry.order)

    assert entry.order in listed.out
    assert "group finance, because stage 3 is expensive" in listed.out
    assert done.code == 0, done.err
    assert f"{entry.order}: approved on the forge" in done.out
    await_phase(desk, entry, "Written", "Delivering", "Assembling", "Ready")


def test_the_platforms_own_account_proves_nobody(desk: Desk, orderkit: Command) -> None:
    entry = desk.order().entry

    done = orderkit("approve", entry.order)

    assert done.code == 4
    assert "is the platform's account and proves nobody" in done.err
    assert "ORDERKIT_FORGE_USER" in done.err
    assert entry.order in orderkit("approvals").out


def test_the_portals_secret_proves_nobody(desk: Desk, site: Running) -> None:
    entry, service = desk.order().entry, site.settings.service
    headers = {SECRET_HEADER: token(service)}
    url = f"{service.url}/v1/orders/{entry.order}/approval"

    refused = requests.post(
        url, json={"decision": "approve", "requester": "x"}, headers=headers, timeout=60
    )
    claimed = requests.post(url, json={"decision": "approve"}, headers=headers, timeout=60)
    listed = requests.get(f"{service.url}/v1/approvals", headers=headers, timeout=60)

    assert refused.status_code in (400, 422)
    assert claimed.status_code == 401
    assert "nothing proves who agrees" in claimed.text
    assert entry.order in [approval["order"] for approval in listed.json()["approvals"]]


def test_the_live_model_shows_who_has_to_agree(desk: Desk, site: Running) -> None:
    entry, service = desk.order().entry, site.settings.service

    def row() -> dict[str, object]:
        answer = requests.get(
            f"{service.url}/v1/orders", headers={SECRET_HEADER: token(service)}, timeout=60
        )
        rows = [row for row in answer.json()["orders"] if row["order"] == entry.order]
        return rows[0] if rows else {}

    shown = until(
        desk.platform.clock, row, bool, timeout_s=60, goal=f"{entry.order} in the live model"
    )

    assert (shown["phase"], shown["kit"]) == ("Waiting", "garage")
    assert shown["approval"] == "group finance, because stage 3 is expensive"
