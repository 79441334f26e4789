"""
Orderkit's plugin in a real Backstage: what people see on the pages of orders and teams.

The front end has the plugin from its packed tarball and names it nowhere but in its dependencies.
"""

from __future__ import annotations

import contextlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from agentsite import Provider, agents_platform, spend
from commands import Command
from lab.loopback import free_ports
from lab.portal import PLATFORM_GROUP
from lab.realbackstage import GUEST, HOST, INSTALLED, Backstage, Wanted, serving
from portalsides import eventually
from published import Up
from pusher import Pusher
from realbrowser import RealBrowser, enter, guest_browser

from orderkit.cli.connecting import token
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import BOT, PortalOptions

PROFILE = "cards"
TEAM, OTHER = "ae86", "rx7"
ORDER = f"garage-{TEAM}"
PAGE = f"/catalog/default/component/{ORDER}"
CARD = "[data-testid=orderkit-card]"
LEAD = Requester(GUEST, groups=frozenset({f"group:default/{TEAM}"}))


@pytest.fixture(scope="module")
def browser(
    backstage: Backstage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealBrowser]:
    with guest_browser(backstage.url, tmp_path_factory.mktemp("chromium")) as found:
        yield found
        seen = found.step("seen")
    assert seen["foreign"] == []


def shoot(browser: RealBrowser, name: str) -> None:
    browser.shoot(name, of="plugin")


def test_the_tarball_has_what_backstage_discovers_plugins_by() -> None:
    """Without ``./package.json`` among its exports a plugin is skipped silently."""
    (tarball,) = INSTALLED.parent.glob("plugins/backstage-plugin-orderkit-*.tgz")
    with tarfile.open(tarball) as packed:
        names = packed.getnames()
        described = packed.extractfile("package/package.json")
        assert described is not None
        package = json.load(described)
    app = json.loads((INSTALLED / "frontend" / "app-with-orderkit" / "package.json").read_text())

    assert package["exports"]["./package.json"] == "./package.json"
    assert package["exports"]["."]["backstage"] == "@backstage/FrontendPlugin"
    assert package["backstage"]["role"] == "frontend-plugin"
    assert package["backstage"]["pluginPackages"] == [package["name"]]
    assert not any("node_modules" in name or name.endswith(".test.js") for name in names)
    assert app["dependencies"][package["name"]].endswith(".tgz")


def test_an_order_becomes_ready_on_its_card_without_a_reload(
    browser: RealBrowser, orderkit: Command
) -> None:
    entered = {"stage": "stage2", "budget": 5, "level": "low"}
    browser.goto(f"/create/templates/default/garage?formData={quote(json.dumps(entered))}")
    browser.shows("Next", timeout_s=120)
    browser.shows("Who gets the bay", timeout_s=60)
    assert "Platform team" not in browser.text, "the platform's group is no team that may order"
    browser.step("choose", label="Team", option=TEAM)
    for _ in range(2):
        browser.tap("Next")
    assert ORDER in browser.shows("What that does", timeout_s=60)
    shoot(browser, "plan")
    for button in ("Review", "Order"):
        browser.tap(button)
    text = browser.shows("How it is", timeout_s=180)
    assert f"{ORDER} is Ready" in text
    browser.find(PAGE, "Parts")
    browser.step("mark")
    browser.shows("● Ready", timeout_s=120)
    shoot(browser, "ready")

    commit = orderkit("change", ORDER, "budget=6", "--json").json["commit"]

    browser.shows(commit[:8], timeout_s=60)
    browser.shows("● Ready", timeout_s=120)
    assert browser.step("marked"), "nobody loaded the page again"
    assert browser.step("attribute", selector=CARD, name="data-live") == "true"


def test_parts_and_events_are_shown(browser: RealBrowser) -> None:
    browser.goto(f"{PAGE}/order")

    text = browser.shows("XGarage", timeout_s=60)

    assert "Events" in text
    shoot(browser, "parts")


def test_a_page_without_a_connection_says_since_when_and_recovers(
    browser: RealBrowser, orderkit: Command
) -> None:
    browser.goto(PAGE)
    browser.shows("● Ready", timeout_s=60)
    browser.step("offline", cut=True)

    text = browser.shows("Not up to date since", timeout_s=120)

    assert "● Ready" in text, "what was read stays"
    shoot(browser, "stale")
    commit = orderkit("change", ORDER, "budget=7", "--json").json["commit"]
    browser.step("offline", cut=False)
    browser.shows(commit[:8], timeout_s=60)
    browser.loses("Not up to date")


def test_a_change_shows_its_plan_and_is_committed(browser: RealBrowser, orderkit: Command) -> None:
    browser.goto(f"{PAGE}/order")
    begin_change(browser, "Change details")
    browser.fill("Note", "mine")
    browser.shows("not set → mine", timeout_s=60)
    shoot(browser, "change")
    orderkit("change", ORDER, "note=theirs")

    browser.tap("Change it")

    browser.shows("Someone changed the same meanwhile", timeout_s=60)
    shoot(browser, "conflict")
    browser.tap("Keep mine")
    browser.shows("theirs → mine", timeout_s=60)
    browser.tap("Change it")
    browser.shows("Committed as", timeout_s=60)


def begin_change(browser: RealBrowser, title: str) -> None:
    browser.shows("Parts", timeout_s=60)
    browser.tap("Change")
    browser.shows("What to change", timeout_s=60)
    browser.step("choose", label="What to change", option=title)


def test_a_refusal_says_why_and_what_to_do(browser: RealBrowser) -> None:
    browser.goto(f"{PAGE}/order")
    begin_change(browser, "Change budget")
    browser.fill("Budget", "3")

    text = browser.shows("may only grow", timeout_s=60)

    assert "Unable to complete request" not in text
    shoot(browser, "refused")


def test_the_history_takes_a_change_back(browser: RealBrowser) -> None:
    browser.goto(f"{PAGE}/order")
    browser.shows("Parts", timeout_s=60)
    browser.tap("History")
    browser.shows("theirs → mine", timeout_s=60)
    shoot(browser, "history")
    browser.tap("Take back")
    browser.shows("Take it back", timeout_s=60)
    browser.shows("mine → theirs", timeout_s=60)
    browser.tap("Take it back")
    browser.shows("Committed as", timeout_s=60)


def test_a_failing_order_looks_failing(browser: RealBrowser, orderkit: Command) -> None:
    """The station refuses 99 bays without a lift, which no form can know."""
    order = f"garage-{OTHER}"
    values = (f"team_name={OTHER}", "stage=stage2", 'pit={"bays": 99}')
    assert orderkit("order", "garage", *values, "--no-wait").code == 0

    browser.find(f"/catalog/default/component/{order}", "✕ Failing")

    browser.shows("99 bays need a lift", timeout_s=60)
    shoot(browser, "failing")
    browser.goto(f"/catalog/default/group/{OTHER}")
    text = browser.shows("✕ Failing", timeout_s=60)
    assert "Failing 1" in text
    assert "99 bays need a lift" in text
    shoot(browser, "team")


def test_the_page_of_orders_shows_the_failing_ones(browser: RealBrowser) -> None:
    browser.goto("/catalog")
    browser.tap("Orders")
    browser.shows(f"garage-{OTHER}", timeout_s=60)
    assert ORDER in browser.text
    browser.step("choose", label="State", option="Failing")

    browser.shows("1 order", timeout_s=60)
    browser.loses(ORDER)

    assert "state=failing" in str(browser.step("url"))
    assert "99 bays need a lift" in browser.text
    shoot(browser, "orders")
    browser.tap(f"garage-{OTHER}")
    browser.shows("✕ Failing", timeout_s=60)


def test_the_catalogs_own_list_filters_by_the_state(browser: RealBrowser) -> None:
    browser.goto("/catalog?filters[kind]=component&filters[user]=all&filters[tags]=failing")

    text = browser.shows(f"garage-{OTHER}", timeout_s=60)

    assert ORDER not in text


PAGES = {
    "orders": ("/orderkit/orders", "Ordered by"),
    "approvals": ("/orderkit/approvals", "for others"),
    "card": (PAGE, "Ordered by"),
    "parts": (f"{PAGE}/order", "Events"),
    "change": (f"{PAGE}/order?panel=change", "What to change"),
    "history": (f"{PAGE}/order?panel=history", "theirs"),
    "end": (f"{PAGE}/order?panel=end", "What stays"),
    "team": (f"/catalog/default/group/{OTHER}", "Failing 1"),
}


@pytest.mark.parametrize("look", [(1440, "light"), (390, "dark")], ids=str)
def test_pages_can_be_read(browser: RealBrowser, look: tuple[int, str]) -> None:
    """What axe finds within the plugin's own parts; the rest of the page is Backstage's."""
    width, theme = look
    browser.open(dark=theme == "dark")
    enter(browser)
    browser.step("size", width=width)
    found = {}
    for name, (path, words) in PAGES.items():
        browser.goto(path)
        browser.shows(words, timeout_s=60)
        assert name == "team" or not browser.step("wide"), f"{name} needs to be scrolled sideways"
        shoot(browser, f"look-{name}-{width}-{theme}")
        found[name] = browser.serious(within="[data-testid^=orderkit-]")
    browser.open()
    enter(browser)

    assert {name: problems for name, problems in found.items() if problems} == {}


def test_a_broken_push_is_said_on_the_card(browser: RealBrowser, up: Up, tmp_path: Path) -> None:
    """Nothing of it is delivered, so only the forge knows."""
    browser.goto(f"/catalog/default/component/garage-{OTHER}")
    browser.shows("99 bays need a lift", timeout_s=60)
    browser.step("mark")

    push_rubbish(up, tmp_path)

    browser.shows("xgarage.yaml:", timeout_s=120)
    assert browser.step("marked"), "nobody loaded the page again"
    shoot(browser, "broken")


def push_rubbish(up: Up, folder: Path) -> None:
    url = f"{up.settings.forge.url}/{OTHER}/garage-{OTHER}.git"
    pusher = Pusher.cloned(folder, url, BOT, token(up.settings.forge))
    (path,) = pusher.clone.rglob("xgarage.yaml")
    name = str(path.relative_to(pusher.clone))
    pusher.commit("break it", {name: f"{path.read_text()}  broken: [\n"})
    pusher.push()


def test_a_panel_has_an_address(browser: RealBrowser) -> None:
    browser.goto(f"{PAGE}/order?panel=history")

    browser.shows("theirs → mine", timeout_s=60)


def test_who_is_asked_approves_on_a_page_of_the_portal(
    browser: RealBrowser, orderkit: Command
) -> None:
    """The team may have no order unless the platform's people agree."""
    team, order = "rally", "garage-rally"
    assert orderkit("team", "add", team, "--limit", "orders=0", "--over", "ask").code == 0
    asking = (f"team_name={team}", "stage=stage2", "--requester", "user:default/eve")
    assert orderkit("order", "garage", *asking, "--no-wait").code == 0
    browser.goto("/catalog")
    browser.tap("Approvals")
    browser.shows("1 request for you", timeout_s=60)
    shoot(browser, "approvals")

    browser.tap(f"Approve {order}")

    browser.shows("it is on its way", timeout_s=60)
    browser.shows("Nothing waits for your approval", timeout_s=60)
    eventually(lambda: orderkit("status", order).code == 0)


def test_an_end_says_what_stays_and_proves_itself(browser: RealBrowser) -> None:
    browser.goto(f"{PAGE}/order")
    browser.shows("Parts", timeout_s=60)
    browser.tap("End")
    browser.shows("What stays", timeout_s=60)
    shoot(browser, "end")
    browser.fill(f"Type {ORDER} to confirm", "garage-other")
    browser.tap(f"End {ORDER}")
    browser.shows("is not the order's id", timeout_s=60)
    browser.fill(f"Type {ORDER} to confirm", ORDER)
    browser.tap(f"End {ORDER}")

    text = browser.shows("has ended", timeout_s=180)

    assert "XGarage" in text
    shoot(browser, "ended")


def test_a_paused_agent_is_seen_and_its_budget_raised_from_the_card(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agent = "free-bot"
    order = f"agentbudget-{agent}"
    (port,) = free_ports(1)
    url = f"http://{HOST}:{port}"
    options = PortalOptions(signed_by=url, platform_groups=(PLATFORM_GROUP,), catalog=url)
    with contextlib.ExitStack() as undo:
        site = undo.enter_context(agents_platform(tmp_path, options))
        provider = Provider(site)
        provider.start()
        undo.callback(provider.stop)
        spend(site, agent, "7.00")
        wanted = Wanted(
            site.settings, tmp_path / "portal", front_end=True, cards=True, port=port, reread_s=20
        )
        portal = undo.enter_context(serving(wanted))
        values = {"agent_name": agent, "budget_usd": 5, "owner": f"group:default/{TEAM}"}
        run_task(site.platform, TaskRequest("agentbudget", values, LEAD))
        browser = undo.enter_context(guest_browser(portal.url, tmp_path_factory.mktemp("profile")))

        browser.find(f"/catalog/default/component/{order}", "The agent is paused")
        shoot(browser, "paused")
        browser.tap("Raise the budget")
        browser.fill("Budget in US dollars", "20")
        text = browser.shows("5 → 20", timeout_s=60)
        assert "even if data is lost" not in text, "it only runs again"
        shoot(browser, "raise")
        browser.tap("Change it")
        browser.shows("Committed as", timeout_s=60)
        browser.step("escape")
        browser.shows("● Ready", timeout_s=120)
        assert "The agent is paused" not in browser.text
