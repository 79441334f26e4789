"""Approvals in the console, without JavaScript: who sees them, agrees, declines, and may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from approvaldesk import RULES, Desk, published_approval
from bays import Bay, ask, set_
from consolebrowser import Answer, Browser
from forgeusers import ForgeUser
from tests.component.approvals.test_approval_ways import await_phase
from tests.component.console.test_console_hostile import EVIL, NEVER

from orderkit.cli.connecting import token
from orderkit.core.order.ledger import OrderEntry
from orderkit.ports.forge import REASON_TRAILER
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

DELIVERED = ("Written", "Delivering", "Assembling", "Ready")
SignIn = Callable[..., Browser]


@pytest.fixture
def browser_of(site: Running, desk: Desk) -> SignIn:
    """Return the browser of somebody, who is of the team if that is said."""

    def browser_of(user: ForgeUser, *, of_team: bool = False) -> Browser:
        browser = Browser(site.settings.service.url)
        groups = frozenset({f"group:default/{desk.team}"} if of_team else ())
        person = Requester(f"user:default/{user.login}", "a one-time link", groups)
        assert browser.sign_in(token(site.settings.service), person).status == 200
        return browser

    return browser_of


def decide(browser: Browser, entry: OrderEntry, decision: str, **more: Any) -> Answer:
    """Send the form by hand, whatever the pages show."""
    csrf = dict(browser.get("/").form("/sign-out").fields)["csrf"]
    form = {"csrf": csrf, "decision": decision, **more}
    return browser.send("POST", f"/orders/{entry.order}/approval", data=form)


def test_who_is_asked_finds_the_order_and_agrees(desk: Desk, browser_of: SignIn) -> None:
    entry, frank = desk.order().entry, browser_of(desk.frank)

    shown = frank.get("/approvals")
    done = frank.submit(shown.form(f"/orders/{entry.order}/approval"), "approve")

    assert entry.order in shown.page.text
    assert "Waits for group finance, because stage 3 is expensive" in shown.page.text
    assert desk.eve.login in shown.page.text
    assert "You approved it, and it is being delivered." in done.page.text
    assert entry.order not in frank.get("/approvals").page.text.split("delivered.")[-1]
    await_phase(desk, entry, "Ready")


def test_who_is_asked_declines_and_says_why(desk: Desk, browser_of: SignIn) -> None:
    entry, frank = desk.order().entry, browser_of(desk.frank)
    form = frank.get("/approvals").form(f"/orders/{entry.order}/approval")

    done = frank.submit(form, "decline", reason=EVIL)

    assert "It is withdrawn, and nothing of it was delivered." in done.page.text
    assert desk.phase(entry) == "Ended"
    assert desk.proposal(entry).state == "closed"
    (withdrawn,) = desk.platform.forge.commits(desk.platform.ledger, path=entry.end_path, limit=1)
    assert "<script>alert(1)</script>" in withdrawn.trailers[REASON_TRAILER]
    end = browser_of(desk.carol, of_team=True).get(f"/orders/{entry.order}/end")
    assert "Its repository is archived" in end.page.text
    assert [bad for bad in NEVER if bad in end.text] == []


def test_who_is_not_asked_sees_what_waits_and_cannot_agree(desk: Desk, browser_of: SignIn) -> None:
    entry, carol = desk.order().entry, browser_of(desk.carol, of_team=True)

    listed = carol.get("/approvals")
    order = carol.get(f"/orders/{entry.order}")
    refused = decide(carol, entry, "approve")

    assert entry.order in listed.page.text
    why_not = f"{desk.carol.login} is not an approver of {entry.order}"
    assert f"You cannot approve it: {why_not}." in listed.page.text
    assert f"/orders/{entry.order}/approval" not in [form.action for form in listed.forms]
    assert "waits for approval by group finance" in order.page.text
    assert [form.action for form in order.forms if form.action.endswith("/approval")] == []
    assert refused.status == 403
    assert why_not in refused.page.text
    assert desk.phase(entry) == "Waiting"


def test_a_review_without_a_rule_waits_for_another_member(desk: Desk, browser_of: SignIn) -> None:
    entry = desk.order(stage="stage1").entry
    bay = Bay(desk.platform, desk.team, desk.team)
    team = frozenset({f"group:default/{desk.team}"})
    member = Requester(f"user:default/{desk.eve.login}", "a one-time link", team)
    pull = ask(bay, set_("colour", "red"), requester=member).pull
    assert pull is not None

    listed = browser_of(desk.carol, of_team=True).get("/approvals")

    why = f"nobody else has approved {pull.head_commit[:8]}"
    assert entry.order in listed.page.text
    assert f"Waits for another member of team {desk.team}: {why}" in listed.page.text


def test_a_waiting_order_offers_no_change(desk: Desk, browser_of: SignIn) -> None:
    entry = desk.order().entry

    listed = browser_of(desk.carol, of_team=True).get("/")

    assert f'href="/orders/{entry.order}/end"' in listed.text
    assert f'href="/orders/{entry.order}/change"' not in listed.text


def test_whoever_ordered_can_only_withdraw(desk: Desk, browser_of: SignIn) -> None:
    entry = desk.order(by=desk.frank).entry  # of finance, so asked, but not for this one
    frank = browser_of(desk.frank, of_team=True)

    listed = frank.get("/approvals")
    form = frank.get(f"/orders/{entry.order}").form(f"/orders/{entry.order}/approval")
    refused = decide(frank, entry, "approve")
    done = frank.submit(form, "decline")

    assert f"{desk.frank.login} asked for it or pushed to it" in listed.page.text
    assert f"/orders/{entry.order}/approval" not in [form.action for form in listed.forms]
    assert form.buttons == [("decision", "decline")]
    assert refused.status == 403
    assert f"{desk.frank.login} is behind {entry.order} and cannot approve" in refused.page.text
    assert "It is withdrawn" in done.page.text
    assert desk.phase(entry) == "Ended"


def test_two_people_have_to_press_the_button(desk: Desk, browser_of: SignIn) -> None:
    entry, carol = desk.order(stage="stage2").entry, browser_of(desk.carol, of_team=True)

    form = carol.get(f"/orders/{entry.order}").form(f"/orders/{entry.order}/approval")
    first = carol.submit(form, "approve")
    again = carol.submit(form, "approve")

    assert "Your approval is recorded; another approver still has to approve." in first.page.text
    assert again.status == 200
    assert desk.phase(entry) == "Waiting"


def test_a_page_from_before_a_change_agrees_to_nothing(desk: Desk, browser_of: SignIn) -> None:
    entry = desk.order().entry

    refused = decide(browser_of(desk.frank), entry, "approve", head="0" * 40)

    assert refused.status == 409
    assert "what is proposed changed" in refused.page.text
    assert desk.phase(entry) == "Waiting"


@pytest.mark.parametrize("fault", ["no csrf", "a wrong csrf", "another site", "nobody"])
def test_a_forged_form_decides_nothing(
    fault: str, desk: Desk, browser_of: SignIn, site: Running
) -> None:
    entry, frank = desk.order().entry, browser_of(desk.frank)
    path = f"/orders/{entry.order}/approval"
    form = {**dict(frank.get("/approvals").form(path).fields), "decision": "approve"}
    headers = {"Origin": "https://evil.example"} if fault == "another site" else None
    if fault == "no csrf":
        del form["csrf"]
    if fault == "a wrong csrf":
        form["csrf"] = form["csrf"][:-2] + "xx"
    sender = Browser(site.settings.service.url) if fault == "nobody" else frank

    refused = sender.send("POST", path, data=form, headers=headers)

    assert refused.status in (401, 403), refused.page.text
    assert desk.phase(entry) == "Waiting"


@pytest.mark.parametrize("decision", ["", "merge", EVIL])
def test_another_decision_is_refused(decision: str, desk: Desk, browser_of: SignIn) -> None:
    entry = desk.order().entry

    refused = decide(browser_of(desk.frank), entry, decision)

    assert refused.status in (400, 422)
    assert [bad for bad in NEVER if bad in refused.text] == []
    assert desk.phase(entry) == "Waiting"


def test_hostile_reasons_of_a_kit_are_text(desk: Desk, browser_of: SignIn) -> None:
    rule = {**RULES[0], "because": EVIL}
    with published_approval(desk.platform, [rule]):
        entry = desk.order().entry
        frank, eve = browser_of(desk.frank), browser_of(desk.eve, of_team=True)
        pages = [frank.get("/approvals"), eve.get("/"), eve.get(f"/orders/{entry.order}")]

        for answer in pages:
            assert answer.status == 200
            assert [bad for bad in NEVER if bad in answer.text] == [], answer.url
        assert "because <script>alert(1)</script>" in pages[0].page.text
        assert "because <script>alert(1)</script>" in pages[2].page.text
        decide(frank, entry, "decline")


def test_a_change_is_agreed_to_on_its_page(desk: Desk, browser_of: SignIn) -> None:
    desk.order(stage="stage1")
    bay = Bay(desk.platform, desk.team, desk.team)
    rule = {
        "when": "!order.isNew && old.stage != new.stage",
        "by": ["team"],
        "because": "the bay is shared",
    }
    with published_approval(desk.platform, [rule]):
        groups = frozenset({f"group:default/{desk.team}"})
        eve = Requester(f"user:default/{desk.eve.login}", "a token", groups)
        pull = ask(bay, set_("stage", "stage2"), requester=eve).pull
        assert pull is not None
        path = f"/orders/{bay.order}/pulls/{pull.number}"

        own = browser_of(desk.eve, of_team=True)
        form = own.get(path).form(f"/orders/{bay.order}/approval")
        shown = own.get(path)
        before = bay.spec()["stage"]
        carol = browser_of(desk.carol, of_team=True)
        done = carol.submit(carol.get(path).form(f"/orders/{bay.order}/approval"), "approve")

    assert form.buttons == [("decision", "decline")]
    assert "It cannot be merged yet" in shown.page.text
    assert f"/{pull.number}/merge" not in str([form.action for form in shown.forms])
    assert before == "stage1"
    assert "You approved it, and it is being delivered." in done.page.text
    assert bay.spec()["stage"] == "stage2"
