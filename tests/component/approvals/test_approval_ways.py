"""The ways to agree: the forge with the service's help, the command, the API and the console."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import hookattacks
import pytest
import requests
import yaml
from approvaldesk import Desk, new_desk, published_approval
from bays import Bay, ask, set_
from commands import Command
from forgeusers import ForgeUser
from rivals import Rival

from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.order.end_record import Phase
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.approval.settling import settle, settle_all
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest, begin_withdrawal
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running


def await_phase(desk: Desk, entry: OrderEntry, *phases: str) -> None:
    until(
        desk.platform.clock,
        lambda: desk.phase(entry),
        lambda phase: phase in phases,
        timeout_s=60,
        goal=f"{entry.order}: {phases}",
    )


class CutError(Exception):
    """The process that ended the order is gone."""


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


def test_the_hooks_of_an_order_whose_proposal_is_closed_make_nothing(desk: Desk) -> None:
    """Nothing of a proposed order is delivered, so there is nothing that would run them."""
    entry = desk.order().entry
    objects = hookattacks.outside(hookattacks.ALL, f"closed-{desk.team}")
    head = desk.platform.forge.head(entry.repository)
    assert head is not None
    file = FileChange(MANIFESTS / "hooks.yaml", yaml.safe_dump_all(objects).encode(), None)
    operation = Operation("by-hand", hookattacks.MALLORY, "by hand")
    desk.platform.forge.write(entry.repository, [file], operation)

    desk.platform.forge.close_pull(desk.platform.ledger, desk.proposal(entry).number)

    await_phase(desk, entry, "Ended")
    assert hookattacks.made_outside(desk.platform, objects) == []
    assert desk.platform.cluster.get(application_key(entry.order)) is None


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
    assert f"{entry.order} is not approved: " in done.err
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
    assert "nothing proves who approves" in claimed.text
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


def test_a_change_that_waits_is_listed_shown_and_told(
    desk: Desk, orderkit: Command, site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.order(stage="stage1")
    bay = Bay(desk.platform, desk.team, desk.team)
    eve = Requester(f"user:default/{desk.eve.login}")
    pull = ask(bay, set_("stage", "stage3"), requester=eve).pull
    assert pull is not None
    why = "group finance, because stage 3 is expensive"
    service, headers = site.settings.service, {SECRET_HEADER: token(site.settings.service)}

    def row() -> dict[str, object]:
        answer = requests.get(
            f"{service.url}/v1/orders?team={desk.team}", headers=headers, timeout=60
        )
        rows = answer.json()["orders"]
        return rows[0] if rows else {}

    shown = until(
        desk.platform.clock,
        row,
        lambda row: bool(row.get("changeApproval")),
        timeout_s=90,
        goal="the change in the live model",
    )
    waiting = requests.get(f"{service.url}/v1/approvals", headers=headers, timeout=60).json()
    listed = orderkit("approvals").out
    sign_as(monkeypatch, desk.frank)
    for_frank, done = orderkit("approvals"), orderkit("approve", bay.order, "--pull", "1")
    sign_as(monkeypatch, desk.carol)
    for_carol = orderkit("approvals").out

    assert shown["changeApproval"] == f"#1 at {pull.head_commit[:8]} waits for {why}"
    (entry,) = [entry for entry in waiting["approvals"] if entry["order"] == bay.order]
    assert (entry["number"], entry["approval"], entry["head"]) == (1, why, pull.head_commit)
    for text in (listed, for_frank.out):
        (line,) = [line for line in text.splitlines() if line.startswith(f"{bay.order} ")]
        assert line.split()[1] == "#1"
    assert why in for_frank.out
    assert done.code == 0, done.err
    for text, is_yours in ((for_frank.out, "yes"), (for_carol, "no")):
        (line,) = [line for line in text.splitlines() if line.startswith(f"{bay.order} ")]
        assert f"   {is_yours}   " in line


def test_a_plan_says_beforehand_who_has_to_approve(desk: Desk, orderkit: Command) -> None:
    asked = ("garage", f"team_name={desk.team}")
    why = "by group finance, because stage 3 is expensive"

    new = orderkit("order", *asked, "stage=stage3", "--plan")
    as_json = orderkit("order", *asked, "stage=stage3", "--plan", "--json").json
    free = orderkit("order", *asked, "stage=stage1", "--plan")
    order = desk.order(stage="stage1").entry.order
    change = orderkit("plan", order, "stage=stage3")

    assert f"approval    {why}" in new.out
    assert as_json["plan"]["approval"] == why.removeprefix("by ")
    assert "approval  " not in free.out
    assert f"approval    {why}" in change.out


def test_an_order_warns_if_no_one_could_approve_it(desk: Desk) -> None:
    rule = {"when": "true", "by": [f"user:default/{desk.eve.login}"], "because": "of the bay"}
    with published_approval(desk.platform, [rule]):
        report = desk.order(stage="stage1")

    warning = f"only {desk.eve.login}, who asks for it, is asked"
    assert warning in report.row().approval
    assert warning in report.state.reason


def test_the_command_says_whether_an_approval_counts(
    desk: Desk, orderkit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = desk.order(by=desk.frank).entry.order, new_desk(desk.platform, desk.admin)
    entry = other.order().entry
    with monkeypatch.context() as patched:
        sign_as(patched, other.carol)
        not_asked = orderkit("approve", entry.order)
    with monkeypatch.context() as patched:
        sign_as(patched, desk.frank)
        behind = orderkit("approve", own)
        counts = orderkit("approve", entry.order, "--json")

    assert behind.code == 4
    assert f"does not count: {desk.frank.login} asked for it" in behind.out
    assert counts.code == 0, counts.err
    assert counts.json["counts"] is True
    assert not_asked.code == 4
    assert f"does not count: {other.carol.login} is not asked" in not_asked.out


@pytest.mark.parametrize(
    ("by", "counts"), [("team", "carol"), ("platform", "frank"), ("user", "carol")]
)
def test_the_command_knows_whom_a_rule_means(
    desk: Desk, orderkit: Command, monkeypatch: pytest.MonkeyPatch, by: str, counts: str
) -> None:
    """Carol writes to the order's repository, and frank to the ledger."""
    path = f"/repos/{desk.platform.ledger}/collaborators/{desk.frank.login}"
    desk.admin.api("PUT", path, {"permission": "write"})
    approver = f"user:default/{desk.carol.login.upper()}" if by == "user" else by
    rule = {"when": "true", "by": [approver], "because": "of the bay", "count": 2}
    told = {}
    with published_approval(desk.platform, [rule]):
        entry = desk.order(stage="stage1").entry
        for user in (desk.carol, desk.frank):
            with monkeypatch.context() as patched:
                sign_as(patched, user)
                told[user.login] = orderkit("approve", entry.order).out

    asked, other = (desk.carol, desk.frank) if counts == "carol" else (desk.frank, desk.carol)
    assert "does not count" not in told[asked.login]
    assert f"does not count: {other.login} is not asked" in told[other.login]


def test_the_command_says_that_a_change_whose_base_was_changed_is_not_merged(
    desk: Desk, orderkit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = desk.order(stage="stage1").entry
    bay = Bay(desk.platform, desk.team, desk.team)
    pull = ask(bay, set_("stage", "stage3")).pull
    assert pull is not None
    desk.platform.forge.ensure_branch(bay.repo, "elsewhere", bay.head)
    for base in ("elsewhere", "main"):
        desk.eve.api("PATCH", f"/repos/{bay.repo}/pulls/{pull.number}", {"base": base})
    sign_as(monkeypatch, desk.carol)

    done = orderkit("approve", entry.order, "--pull", str(pull.number))

    assert done.code == 4
    assert "does not count: someone changed its base; close it, and propose it again" in done.out


def test_the_platforms_account_withdraws_an_order_that_waits(desk: Desk, orderkit: Command) -> None:
    entry = desk.order().entry

    done = orderkit("approve", entry.order, "--decline", "--reason", "too dear")

    assert done.code == 0, done.err
    assert desk.phase(entry) == "Ended"


def test_an_order_whose_proposal_is_not_opened_yet_cannot_be_approved(
    desk: Desk, orderkit: Command
) -> None:
    """Whoever ordered it was killed: repeating the order opens it, and so does the service."""

    def cut() -> None:
        raise CutError

    rival: Any = Rival(desk.platform.forge, "open_pull", cut)
    with pytest.raises(CutError):
        replace(desk, platform=replace(desk.platform, forge=rival)).order()
    order = f"garage-{desk.team}"

    early = orderkit("approve", order)
    desk.order()

    assert (early.code, f"{order} is not proposed yet" in early.err) == (1, True), early.err
    assert orderkit("approve", order).code == 4


def test_the_command_declines_with_ones_own_credentials(
    desk: Desk, orderkit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frank may not write to the ledger: his review blocks, and the platform closes."""
    entry = desk.order().entry
    with monkeypatch.context() as patched:
        sign_as(patched, desk.frank)
        done = orderkit("approve", entry.order, "--decline", "--reason", "too dear")
    assert done.code == 0, done.err
    assert f"{desk.frank.login} asked for changes" in done.out
    settled = settle(desk.platform, entry)
    assert settled is not None
    assert settled.missing == f"{desk.frank.login} asked for changes"

    path = f"/repos/{desk.platform.ledger}/collaborators/{desk.frank.login}"
    desk.admin.api("PUT", path, {"permission": "write"})
    sign_as(monkeypatch, desk.frank)
    done = orderkit("approve", entry.order, "--decline", "--reason", "too dear")

    assert "declined on the forge" in done.out
    await_phase(desk, entry, "Ended")


def test_an_interrupted_withdrawal_is_finished_by_the_same_command(
    desk: Desk, orderkit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = desk.order().entry
    begin_withdrawal(
        desk.platform, entry, requester="user:default/x", proof="", notes=(), repository=None
    )
    with monkeypatch.context() as patched:
        sign_as(patched, desk.frank)
        assert "the platform withdraws it" in orderkit("approve", entry.order, "--decline").out

    done = orderkit("approve", entry.order, "--decline")

    assert done.code == 0, done.err
    assert desk.phase(entry) == "Ended"
    assert desk.proposal(entry).state == "closed"


def test_who_declines_a_change_withdraws_no_order(desk: Desk, orderkit: Command) -> None:
    entry = desk.order().entry
    begin_withdrawal(
        desk.platform, entry, requester="user:default/x", proof="", notes=(), repository=None
    )

    done = orderkit("approve", entry.order, "--pull", "1", "--decline")

    assert done.code == 1, done.out
    assert desk.proposal(entry).state == "open"


def test_a_delivered_order_whose_end_has_begun_is_not_withdrawn(
    desk: Desk, orderkit: Command
) -> None:
    def cut(_step: Phase, _done: str) -> None:
        raise CutError

    entry = desk.order(stage="stage1").entry
    with pytest.raises(CutError):
        destroy(desk.platform, EndRequest(entry.order, "user:default/x"), on_step=cut)

    done = orderkit("approve", entry.order, "--decline")

    assert (done.code, "does not wait for approval" in done.err) == (1, True), done.err
    assert desk.phase(entry) == "Ending"


def test_an_interrupted_withdrawal_is_finished_by_the_service(desk: Desk) -> None:
    entry = desk.order().entry
    begin_withdrawal(
        desk.platform, entry, requester="user:default/x", proof="", notes=(), repository=None
    )

    class Later(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(minutes=3)

    settle_all(replace(desk.platform, clock=Later()))

    assert desk.phase(entry) == "Ended"


def test_the_platforms_account_closes_a_change(desk: Desk, orderkit: Command) -> None:
    entry = desk.order(stage="stage1").entry
    bay = Bay(desk.platform, desk.team, desk.team)
    assert ask(bay, set_("stage", "stage3")).pull is not None

    done = orderkit("approve", entry.order, "--pull", "1", "--decline", "--reason", "too dear")

    assert done.code == 0, done.err
    pull = desk.platform.forge.pull(bay.repo, 1)
    assert pull is not None
    assert pull.state == "closed"
