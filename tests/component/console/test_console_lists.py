"""Lists of the console: what happened to all orders, and many orders at once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from bays import Bay, ask, new_bay, set_
from consolebrowser import Answer, Browser
from tests.component.console.conftest import LEAD, Site
from tests.component.console.test_console_pages import until

from ground.names import OrderId
from orderkit.core.kit.kit_file import How
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.team.teams import add_team
from orderkit.web.console.order_pages import FAVOURITES_MAX

OWN = "listed"
"""A team of this module's own: a page shows 50 orders, and other modules leave failing ones."""
MEMBER = replace(LEAD, groups=frozenset({f"group:default/{OWN}"}))


@pytest.fixture(scope="module")
def lead(site: Site) -> Browser:
    """Somebody of that team."""
    return site.browser(MEMBER)


@pytest.fixture
def bay(site: Site) -> Bay:
    """An order of that team."""
    return new_bay(site.running.platform, OWN)


@pytest.fixture
def three(site: Site) -> list[Bay]:
    """Three orders of that team."""
    return [new_bay(site.running.platform, OWN) for _ in range(3)]


def test_activity_shows_who_did_what_and_why_of_the_callers_teams(
    lead: Browser, stranger: Browser, bay: Bay
) -> None:
    outcome = ask(bay, set_("stage", "stage2"), reason="<b>more</b> power")
    assert outcome.commit is not None
    await_commit(bay.platform, bay.order, outcome.commit, timeout_s=30)

    here = until(lead, "/activity?since=24h", "more")

    row = here.page.text.partition(bay.order)[2][:200]
    assert "eve" in row
    assert "stage stage1 → stage2" in row
    assert "Why: <b>more</b> power" in row, "as text, not as markup"
    assert bay.order not in stranger.get("/activity").page.text
    form = here.form("/activity")
    assert "Nothing happened" in lead.submit(form, person="nobody").page.text
    assert bay.order in lead.submit(form, person="eve").page.text


def test_a_filter_that_cannot_be_is_explained_on_the_page(lead: Browser) -> None:
    answer = lead.get("/activity?since=yesterday")

    assert answer.status == 400
    assert "neither a time nor a duration" in answer.page.text
    assert "for example 7d" in answer.page.text


# --- the list of orders


def star(browser: Browser, there: Answer, button: str = "", **entered: str) -> Answer:
    """Press the star of an order."""
    return browser.submit(replace(there.form("/selected"), action="/favourites"), button, **entered)


def test_a_star_keeps_an_order_in_this_browser_without_any_script(
    site: Site, three: list[Bay]
) -> None:
    """The star is a form of its own; the filter shows what it marked, in no other browser."""
    mine = site.browser(MEMBER)
    first, second, _ = (str(bay.order) for bay in three)
    there = listed(mine, "/?sort=order", *three)
    assert "Favourites" not in there.page.text

    marked = star(mine, there, first)

    assert marked.url.endswith(f"/?sort=order#star-{first}"), "back where it was"
    only = mine.get("/?only=favourites")
    assert f"/orders/{first}" in only.text
    assert f"/orders/{second}" not in only.text
    assert 'aria-pressed="true"' in only.text
    assert 'name="only" value="favourites"' in only.text, "filtering keeps it"
    assert f"/orders/{first}" not in site.browser(MEMBER).get("/?only=favourites").text
    again = star(mine, only, first)
    assert f"/orders/{first}" not in mine.get("/?only=favourites").text
    assert again.status == 200


@pytest.mark.parametrize("name", ["x\r\nSet-Cookie: a=b", "A;Path=/x", "", "a" * 64])
def test_a_favourite_that_is_no_id_sets_no_cookie(name: str, site: Site, three: list[Bay]) -> None:
    mine = site.browser(MEMBER)

    answer = star(mine, listed(mine, "/", *three), favourite=name)

    assert answer.status == 400
    assert "favourite" in answer.page.text
    assert "Favourites" not in mine.get("/").page.text


def test_favourites_of_a_browser_stay_within_a_cookie(site: Site, three: list[Bay]) -> None:
    mine = site.browser(MEMBER)
    there = listed(mine, "/", *three)
    for number in range(FAVOURITES_MAX + 2):
        star(mine, there, favourite=f"{number:03d}-{'x' * 59}")
    assert mine.get("/").status == 200
    (kept,) = [c for c in mine.cookies if "favourites" in c]
    assert len(mine.cookies[kept].split(".")) == FAVOURITES_MAX


def test_a_star_leads_to_no_other_site(site: Site, three: list[Bay]) -> None:
    mine = site.browser(MEMBER)
    sent = star(mine, listed(mine, "/", *three), favourite="a", back="//evil.example/x")
    assert sent.url.endswith("/#star-a")


def listed(browser: Browser, path: str, *bays: Bay) -> Answer:
    """Return a list once it has these orders."""
    end = time.monotonic() + 20
    while True:
        answer = browser.get(path)
        if all(f"/orders/{bay.order}" in answer.text for bay in bays):
            return answer
        assert answer.status == 200, answer.page.text
        assert time.monotonic() < end, answer.page.text
        time.sleep(0.3)


def test_columns_sort_and_filters_stay_in_the_address(lead: Browser, three: list[Bay]) -> None:
    there = listed(lead, "/", *three)
    assert 'href="/?sort=order"' in there.text

    up, down = lead.get("/?sort=order"), lead.get("/?sort=-order")
    first, second = (f"/orders/{bay.order}" for bay in three[:2])
    assert up.text.index(first) < up.text.index(second)
    assert down.text.index(first) > down.text.index(second)
    assert 'aria-sort="descending"' in down.text
    assert 'name="sort" value="-order"' in down.text, "filtering keeps the order"
    none = lead.get(f"/?sort=-order&expires=7d&team={OWN}&cost=100")
    assert "No order matches" in none.page.text
    assert first in lead.get("/?expires=never&cost=unknown").text
    assert lead.get("/?sort=colour&expires=soon&cost=much").status == 200, "odd ones filter nothing"


def test_an_open_proposal_is_marked(lead: Browser, bay: Bay) -> None:
    listed(lead, "/", bay)
    pull = ask(bay, set_("stage", "stage2"), how=How.REVIEW).pull
    assert pull is not None

    until(lead, f"/?text={bay.order}", f"proposal #{pull.number}")


def selected(browser: Browser, do: str, *orders: OrderId, **more: str) -> Answer:
    form = browser.get("/").form("/selected")
    return browser.submit(form, do, order=list(orders), **more)


def test_several_orders_are_changed_at_once_each_with_its_plan(
    lead: Browser, three: list[Bay]
) -> None:
    listed(lead, "/", *three)
    orders = [bay.order for bay in three]

    fields = selected(lead, "change", *orders)
    assert fields.page.h1 == "Change a field of 3 orders"
    assert "stage" in fields.form("/selected").choices["field"]
    entering = lead.submit(fields.form("/selected"), field="stage")
    planned = lead.submit(entering.form("/selected"), "plan", **{"v.stage": "stage2"})
    assert planned.text.count("ConfigMap") >= 3
    assert all("stage1" in bay.text() for bay in three), "a plan writes nothing"
    three[1].edit("stage1", "stage3")
    done = lead.submit(planned.form("/selected"), "go", reason="a race")

    assert "3 of 3 orders done" in done.page.text, done.page.text
    again = lead.submit(planned.form("/selected"), "go", reason="a race")
    assert again.status == 200, "sent twice, it is written once"
    assert all(len([c for c in bay.commits() if "race" in c.message]) <= 1 for bay in three)


def test_what_is_refused_stops_no_other_order(lead: Browser, three: list[Bay], site: Site) -> None:
    listed(lead, "/", *three)
    broken = three[0]
    broken.put({p: None for p in site.running.platform.forge.tree(broken.repo, broken.head)
                if p.name == "xgarage.yaml"})  # fmt: skip
    form = selected(lead, "change", *(bay.order for bay in three)).form("/selected")
    entering = lead.submit(form, field="stage").form("/selected")

    done = lead.submit(entering, "plan", **{"v.stage": "stage2"})

    assert done.text.count("chip bad") == 1
    assert done.text.count("ConfigMap") >= 2


def test_an_end_of_several_asks_for_words_and_ends_each(
    lead: Browser, three: list[Bay], site: Site
) -> None:
    listed(lead, "/", *three)
    orders = [bay.order for bay in three[:2]]
    form = selected(lead, "end", *orders).form("/selected")

    refused = lead.submit(form, "go", confirm="yes")
    assert "type end 2 orders" in refused.page.text
    done = lead.submit(form, "go", confirm="end 2 orders", reason="over")

    assert "2 of 2 orders done" in done.page.text, done.page.text
    for order in orders:
        until(lead, f"/orders/{order}/end", "Proof of its end", timeout_s=60)
    paths = {str(path) for path in ledger_snapshot(site.running.platform).blobs}
    assert f"apps/{OWN}/{three[2].order}.yaml" in paths, "the third was not selected"


def test_nobody_acts_on_orders_of_others(stranger: Browser, site: Site, quiet_bay: Bay) -> None:
    """The list of orders is whatever a browser sends."""
    add_team(site.running.platform, "rx7", requester="user:default/test")
    own = new_bay(site.running.platform, "rx7")
    listed(stranger, "/", own)
    head = quiet_bay.head

    for do in ("extend", "change", "end"):
        answer = selected(
            stranger, do, own.order, quiet_bay.order, step="go", confirm="end 2 orders"
        )
        assert answer.status == 404
        assert f"you have no order '{quiet_bay.order}'" in answer.page.text
    many = [OrderId(f"garage-{n}") for n in range(21)]
    assert "too many orders" in selected(stranger, "end", *many).page.text
    assert "no order is selected" in selected(stranger, "end").page.text
    assert selected(stranger, "explode", own.order).status == 400
    assert quiet_bay.head == head


def test_an_extension_of_orders_without_a_lease_is_explained_for_each(
    lead: Browser, three: list[Bay]
) -> None:
    listed(lead, "/", *three)
    form = selected(lead, "extend", *(bay.order for bay in three[:2])).form("/selected")

    done = lead.submit(form, "go", by="8h", reason="a race")

    assert done.page.text.count("expires 2") + done.page.text.count("refused") == 2


def test_several_orders_are_extended_for_a_reason_only(lead: Browser, three: list[Bay]) -> None:
    listed(lead, "/", *three)
    form = selected(lead, "extend", *(bay.order for bay in three[:2])).form("/selected")

    refused = lead.submit(form, "go", by="8h", reason=" ")

    assert refused.status == 400
    assert "reason: '' is missing" in refused.page.text


def test_a_value_that_fits_no_order_stands_at_its_field(lead: Browser, three: list[Bay]) -> None:
    listed(lead, "/", *three)
    form = selected(lead, "change", *(bay.order for bay in three)).form("/selected")
    entering = lead.submit(form, field="laps").form("/selected")

    refused = lead.submit(entering, "plan", **{"v.laps": "many"})

    assert refused.status == 400
    assert "is not a number" in refused.page.text
    assert "v.laps" in {name for name, _ in refused.form("/selected").fields}
    assert all("laps" not in bay.text() for bay in three)
