"""What people do in the console, in a real browser, with JavaScript and without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from agentsite import Provider, agents_platform, spend
from bays import new_bay
from changingpack import changing_pack
from forgeusers import PASSWORD, embedded_admin, new_user
from realbrowser import RealBrowser, real_browser

from ground.objects.kube_objects import Kind, ObjectKey
from orderkit.cli.connecting import token
from orderkit.core.order.change import FieldEdit
from orderkit.flows.campaign import running as running_campaign
from orderkit.flows.campaign import starting
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit.ports.requesters import Requester
from orderkit.web.console.sessions import link_token
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

WAYS = pytest.mark.parametrize("way", ["scripts", "plain"])
"""With JavaScript, and with JavaScript switched off."""
WAYS_SAMPLED = pytest.mark.parametrize(
    "way", ["scripts", pytest.param("plain", marks=pytest.mark.soak)]
)
"""Both in a soak: these pages have the forms of the journeys that are always taken both ways."""
LEAD = Requester("user:default/keiichi", "a one-time link", frozenset({"group:default/ae86"}))
ENGINEER = Requester("user:default/ryosuke", "a one-time link", everywhere=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("journeys")
    request = EmbeddedRunRequest(
        folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), ("ae86", "rx7")
    )
    with running(request, on_step=lambda *_: None) as platform:
        add_team(
            platform.platform,
            "ae86",
            requester="user:default/test",
            change=TeamChange(limits={"orders": "9"}),
        )
        admin = embedded_admin(platform.settings.forge.url, folder / "state")
        person = {"username": "keiichi", "password": PASSWORD, "email": "keiichi@example.org"}
        admin.api("POST", "/admin/users", person)
        yield platform


@pytest.fixture(scope="module")
def browser(site: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBrowser]:
    with real_browser(site.settings.service.url, tmp_path_factory.mktemp("profile")) as found:
        yield found
        seen = found.step("seen")
    assert seen == {"problems": [], "foreign": []}, "a page broke, or asked another host"


def enter(site: Running, browser: RealBrowser, person: Requester, path: str = "/") -> None:
    secret = token(site.settings.service)
    browser.goto(f"/sign-in/link?token={link_token(secret, person)}")
    browser.goto(path)


def judge(browser: RealBrowser, name: str) -> None:
    """Take a page's picture; nothing of it may be hard to reach, or wider than the window."""
    browser.shoot(name)
    assert not browser.step("wide"), name
    if browser.javascript:
        assert browser.serious() == [], name


def by_hand(site: Running, order: str, path: str, value: object) -> None:
    """Change an order as somebody else at the command line."""
    request = ChangeRequest(
        order=order,
        edits=(FieldEdit(path, "set", value),),
        requester=Requester("user:default/takumi"),
    )
    change(site.platform, request)


@WAYS
def test_a_life_from_the_order_to_the_proof_of_its_end(
    way: str, site: Running, browser: RealBrowser
) -> None:
    team = f"team-{way}"
    order = f"garage-{team}"
    add_team(site.platform, team, requester="user:default/test")
    browser.open(javascript=way == "scripts")
    enter(site, browser, replace(LEAD, groups=frozenset({f"group:default/{team}"})))
    browser.shows("No orders yet")

    place(browser, way, team)
    change_past_a_conflict(site, browser, way, order)
    change_that_is_refused(browser, way)
    propose_and_merge(site, browser, way, team)
    look_back(browser, way)
    end(browser, way, order)


def planned(browser: RealBrowser, words: str) -> None:
    """See the plan beside the form: it comes by itself, or a button shows it."""
    if not browser.javascript:
        browser.press("Show plan")
    browser.shows(words)


def place(browser: RealBrowser, way: str, team: str) -> None:
    browser.press("Choose a kit")
    judge(browser, f"{way}-kits")
    browser.press("Order Stage Kit")
    browser.fill("Team", team)
    browser.fill("Kit", "stage2")
    planned(browser, f"What garage-{team} would be")
    judge(browser, f"{way}-new-order")
    browser.press("Order it")
    browser.shows("It is ordered")
    browser.step("mark")
    browser.shows("Everything in Git is delivered and works")
    if browser.javascript:
        assert browser.step("marked"), "it became Ready without being reloaded"
    judge(browser, f"{way}-order")
    browser.press("Parts")
    browser.shows("ConfigMap")
    judge(browser, f"{way}-parts")


def change_past_a_conflict(site: Running, browser: RealBrowser, way: str, order: str) -> None:
    browser.press("Change")
    browser.press("Change details")
    browser.fill("Note", "mine")
    planned(browser, "In the order")
    judge(browser, f"{way}-change")
    by_hand(site, order, "note", "theirs")
    browser.press("Change it")
    browser.shows("Somebody else was faster")
    judge(browser, f"{way}-conflict")
    browser.press("Go on with yours")
    browser.shows("In the order")
    browser.press("Change it")
    browser.shows("It is committed")


def change_that_is_refused(browser: RealBrowser, way: str) -> None:
    for amount, answer in (("9", "It is committed"), ("3", "may only grow")):
        browser.press("Change")
        browser.press("Change budget")
        browser.fill("Budget", amount)
        browser.press("Change it")
        browser.shows(answer)
    judge(browser, f"{way}-refused")


def propose_and_merge(site: Running, browser: RealBrowser, way: str, team: str) -> None:
    browser.press("Change paint")
    browser.fill("Colour", "red")
    browser.press("Propose it")
    browser.shows("What merging #1 would do")
    judge(browser, f"{way}-pull")
    approve(site, team, f"garage-{team}")
    browser.goto(f"/orders/garage-{team}/pulls/1")  # only now is merging offered
    browser.press("Merge")
    browser.shows("It is merged")


def look_back(browser: RealBrowser, way: str) -> None:
    browser.press("History")
    browser.shows("What happened, from Git")
    judge(browser, f"{way}-history")
    browser.press("Plan and take back")
    browser.shows("What that did")
    judge(browser, f"{way}-commit")


def end(browser: RealBrowser, way: str, order: str) -> None:
    browser.press("End")
    browser.shows("What stays")
    judge(browser, f"{way}-end")
    browser.fill(f"Type {order} to confirm", order)
    browser.press(f"End {order}")
    browser.shows("Proof of its end", timeout_s=120)
    judge(browser, f"{way}-proof")


def approve(site: Running, team: str, order: str) -> None:
    """Approve pull request 1 as somebody else on the forge."""
    state = site.embedded.state.folder
    reviewer = new_user(embedded_admin(site.settings.forge.url, state), "reviewer")
    members = TeamChange(members=(reviewer.login,))
    add_team(site.platform, team, requester="user:default/test", change=members)
    approval = {"event": "APPROVED", "body": ""}
    reviewer.api("POST", f"/repos/{team}/{order}/pulls/1/reviews", approval)


@WAYS_SAMPLED
def test_a_team_lead_and_an_engineer_see_what_is_wrong_in_two_clicks(
    way: str, site: Running, browser: RealBrowser
) -> None:
    browser.open(javascript=way == "scripts")
    enter(site, browser, ENGINEER, "/kits/garage")
    team = f"wrong-{way}"
    add_team(site.platform, team, requester="user:default/test")
    browser.fill("Team", team)
    browser.fill("Kit", "stage1")
    browser.press("Order it")
    browser.shows("Everything in Git is delivered and works")
    xr = ObjectKey(Kind("blog.opsbogus.dev", "v1alpha1", "XGarage"), f"garage-{team}")
    paused = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
    site.platform.cluster.patch(xr, paused, owner="admin")

    browser.goto("/")
    browser.shows("Attention")
    judge(browser, f"{way}-orders")
    browser.press(f"garage-{team}")
    browser.shows("is paused")
    browser.press("Platform")
    browser.shows("What is wrong")
    judge(browser, f"{way}-platform")
    browser.press("Teams")
    judge(browser, f"{way}-teams")
    browser.press(team)
    browser.shows("Needs a look")
    judge(browser, f"{way}-team")


@WAYS
def test_an_order_waits_until_another_person_agrees_or_declines(
    way: str, site: Running, browser: RealBrowser
) -> None:
    admin = embedded_admin(site.settings.forge.url, site.embedded.state.folder)
    approver = new_user(admin, "ryoko")
    path = f"/repos/{site.platform.ledger}/collaborators/{approver.login}"
    admin.api("PUT", path, {"permission": "write"})
    teams = [f"asks-{way}", f"declined-{way}"]
    for team in teams:
        limits = TeamChange(limits={"orders": "0"}, over="ask")
        add_team(site.platform, team, requester="user:default/test", change=limits)
    lead = replace(LEAD, groups=frozenset(f"group:default/{team}" for team in teams))
    agrees = Requester(f"user:default/{approver.login}", "a one-time link")
    browser.open(javascript=way == "scripts")
    for team in teams:
        enter(site, browser, lead, "/kits/garage")
        browser.fill("Team", team)
        browser.fill("Kit", "stage1")
        browser.press("Order it")
        browser.shows("waits for approval by the platform team")
        judge(browser, f"{way}-waiting")

    enter(site, browser, agrees, "/approvals")
    browser.shows(f"team {teams[0]} has reached its limit of 0 orders")
    judge(browser, f"{way}-approvals")
    browser.press("Approve")
    browser.shows("You approved it, and it is being delivered.")
    browser.fill("Reason", "not this month")
    browser.press("Decline")
    browser.shows("It is withdrawn, and nothing of it was delivered.")
    browser.shows("Nothing waits for an approval.")

    enter(site, browser, lead, f"/orders/garage-{teams[0]}")
    browser.shows("Everything in Git is delivered and works")
    browser.goto(f"/orders/garage-{teams[1]}")
    browser.shows("Proof of its end")


@WAYS_SAMPLED
def test_a_paused_agent_is_seen_and_gets_a_larger_budget(
    way: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agent = "free-bot"
    profile = tmp_path_factory.mktemp("profile")
    with agents_platform(tmp_path) as site:
        provider = Provider(site)
        provider.start()
        spend(site, agent, "7.00")
        values = {"agent_name": agent, "budget_usd": 5, "owner": "group:default/ae86"}
        run_task(site.platform, TaskRequest("agentbudget", values, LEAD))
        with real_browser(site.settings.service.url, profile) as browser:
            browser.open(javascript=way == "scripts")
            enter(site, browser, LEAD)
            browser.shows("The agent is paused")
            judge(browser, f"{way}-agents")
            browser.press("Raise the budget")
            browser.fill("Budget in US dollars", "20")
            planned(browser, "In the order")
            judge(browser, f"{way}-raise")
            browser.press("Change it")
            browser.shows("It is committed")
            browser.goto("/")
            text = browser.shows("Ready 1", timeout_s=120)
            assert "The agent is paused" not in text
        provider.stop()


@pytest.mark.parametrize("look", ["phone-light", "phone-dark", "wide-dark"])
def test_pages_are_right_on_a_phone_and_in_the_dark(
    look: str, site: Running, browser: RealBrowser
) -> None:
    browser.open(width=390 if "phone" in look else 1280, dark="dark" in look)
    browser.goto("/")
    judge(browser, f"{look}-sign-in")
    enter(site, browser, ENGINEER)
    for name, path in {
        "orders": "/", "kits": "/kits", "kit": "/kits/garage", "teams": "/teams",
        "team": "/teams/ae86", "platform": "/platform", "none": "/orders/none",
        "approvals": "/approvals",
    }.items():  # fmt: skip
        browser.goto(path)
        judge(browser, f"{look}-{name}")


def test_the_keyboard_reaches_everything(site: Running, browser: RealBrowser) -> None:
    browser.open()
    enter(site, browser, ENGINEER)

    assert browser.step("tab", times=1) == "Skip to content"
    assert browser.step("tab", times=2) == "Orders"
    assert browser.step("tab", times=1) == "Activity"
    assert browser.step("tab", times=1) == "New order"
    browser.step("enter")
    time.sleep(1)
    assert "Stage Kit" in browser.text


def test_pictures_for_the_documentation_are_small(browser: RealBrowser) -> None:
    del browser
    pictures = list((Path(__file__).parents[2] / "docs").glob("console-*.png"))

    assert len(pictures) >= 4
    assert all(picture.stat().st_size < 150_000 for picture in pictures)


@WAYS_SAMPLED
def test_a_campaign_is_looked_at(way: str, site: Running, browser: RealBrowser) -> None:
    """Waves, counts and the reason, wide and on a phone."""
    bays, name = [new_bay(site.platform) for _ in range(3)], f"plates-{way}"
    document = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Campaign",
        "metadata": {"name": name},
        "spec": {
            "reason": "new plates for all",
            "what": {"fields": {"set": {"plate": "A 1"}}},
            "which": {"kit": "garage", "orders": [bay.order for bay in bays]},
            "waves": [{"name": "canary", "count": 2}, {"name": "rest", "approve": True}],
            "stop": {"failed": 1},
        },
    }
    text = starting.CampaignText.read(yaml.safe_dump(document).encode(), name=name)
    starting.put(site.platform, text, ENGINEER)
    starting.start(site.platform, name, ENGINEER)
    running_campaign.run(site.platform, name, ENGINEER, timeout_s=60)

    browser.open(javascript=way == "scripts")
    enter(site, browser, ENGINEER)
    browser.press("Campaigns")
    browser.shows("new plates for all")
    judge(browser, f"console-campaigns-{way}")
    browser.press(name)
    browser.shows("2 failed")
    browser.shows("this field never changes")
    judge(browser, f"console-campaign-{way}")
    browser.open(javascript=way == "scripts", width=390, dark=True)
    enter(site, browser, ENGINEER, f"/campaigns/{name}")
    browser.shows("2 failed")
    judge(browser, f"console-campaign-phone-{way}")
