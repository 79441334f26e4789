"""What the console shows, without JavaScript: filters, ordering, the end with its proof, teams."""

from __future__ import annotations

import http.client
import re
import time
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from bays import TEAM, Bay, ask, new_bay, set_
from consolebrowser import Answer, Browser
from tests.component.console.conftest import LEAD, PLATFORM, Site, serving

from ground.names import TeamName
from ground.objects.kube_objects import Kind, ObjectKey
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.order.ledger import team_path, tombstones
from orderkit.flows.approval.pending import pending
from orderkit.flows.platform import ledger_snapshot, write_ledger
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit.ports.forge import Operation
from orderkit_standins.commands.up import welcome


def until(browser: Browser, path: str, words: str, *, timeout_s: float = 60) -> Answer:
    end = time.monotonic() + timeout_s
    while True:
        answer = browser.get(path)
        if words in answer.page.text:
            return answer
        assert time.monotonic() < end, answer.page.text
        time.sleep(0.3)


def pause(bay: Bay) -> None:
    xr = ObjectKey(Kind("blog.opsbogus.dev", "v1alpha1", "XGarage"), bay.order)
    paused = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
    bay.platform.cluster.patch(xr, paused, owner="admin")


def test_filters_stand_in_the_address(lead: Browser, quiet_bay: Bay) -> None:
    form = until(lead, "/", quiet_bay.order).form("/")
    here = lead.submit(form, text=quiet_bay.order)

    assert here.url.endswith(f"text={quiet_bay.order}")
    assert quiet_bay.order in here.page.text
    nothing = lead.get("/?text=nothing-has-this")
    assert "No order matches" in nothing.page.text
    assert quiet_bay.order not in nothing.page.text
    assert lead.get("/?phase=Failing&team=&kit=&owner=&text=").status == 200
    assert lead.get("/?colour=red").status == 400


def test_two_clicks_show_which_order_fails_and_why(site: Site) -> None:
    """The team has no other orders: other modules leave failing ones, and a page shows 50."""
    other, bay = (new_bay(site.running.platform, "clickers") for _ in range(2))
    lead = site.browser(replace(LEAD, groups=frozenset({"group:default/clickers"})))
    for each in (other, bay):
        until(lead, f"/orders/{each.order}", "Everything in Git is delivered and works")
    pause(bay)
    start = until(lead, "/", "Attention")
    rows = start.text.partition("<tbody>")[2]
    assert rows.index(f"/orders/{bay.order}") < 700, "what needs a look stands first"
    assert rows.index(f"/orders/{bay.order}") < rows.index(f"/orders/{other.order}")

    order = lead.get(f"/orders/{bay.order}")
    assert "is paused (annotation crossplane.io/paused)" in order.page.text


def test_a_kit_is_ordered_with_its_plan_before_the_button(engineer: Browser, site: Site) -> None:
    name = f"new-{time.monotonic_ns() % 10**6}"
    add_team(site.running.platform, name, requester="user:default/test")
    assert "garage" in engineer.get("/kits").text
    form = engineer.get("/kits/garage").form("/kits/garage")
    entered = {"v.team_name": name, "v.stage": "stage2"}

    planned = engineer.submit(form, "plan", **entered)
    assert f"What garage-{name} would be" in planned.page.text
    assert "ConfigMap" in planned.page.text
    assert site.running.platform.forge.head is not None

    missing = engineer.submit(form, "order", **{"v.team_name": name})
    assert missing.status == 400
    assert "stage" in missing.page.text

    ordered = engineer.submit(form, "order", **entered)
    assert ordered.page.h1 == f"garage-{name}"
    assert "It is ordered" in ordered.page.text
    until(engineer, f"/orders/garage-{name}", "Everything in Git is delivered and works")
    again = engineer.submit(form, "order", **entered)
    assert again.page.h1 == f"garage-{name}"


def test_an_end_says_what_goes_and_leaves_its_proof(lead: Browser, bay: Bay) -> None:
    path = f"/orders/{bay.order}/end"
    until(lead, f"/orders/{bay.order}", "Everything in Git is delivered and works")
    shown = lead.get(path)
    assert "What goes" in shown.page.text
    assert "Its repository, archived" in shown.page.text

    refused = lead.submit(shown.form(path), confirm="garage")
    assert refused.status == 400
    assert "is not the order's id" in refused.page.text

    lead.submit(shown.form(path), confirm=bay.order, reason="<b>done</b>")
    proof = until(lead, path, "Proof of its end")
    assert f"XGarage {bay.order}" in proof.page.text
    assert lead.get(f"/orders/{bay.order}").url.endswith("/end")
    paths = ledger_snapshot(bay.platform).blobs
    (tombstone,) = tombstones(paths, bay.order)
    (commit,) = bay.platform.forge.commits(bay.platform.ledger, path=tombstone, limit=1)
    assert "<b>done</b>" in commit.trailers.values()


def test_a_team_page_shows_what_waits_and_the_limits(lead: Browser, site: Site) -> None:
    add_team(
        site.running.platform,
        TEAM,
        requester="user:default/test",
        change=TeamChange(limits={"orders": "90", "garage.budget": "50"}),
    )
    page = lead.get(f"/teams/{TEAM}").page

    assert "of 90" in page.text
    assert "garage: budget at most 50" in page.text
    assert "Namespaces" in page.text
    assert "AI agents may propose" in page.text


def test_a_team_that_is_not_there_is_not_found(engineer: Browser) -> None:
    answer = engineer.get("/teams/nobody")

    assert answer.status == 404
    assert "team 'nobody'" in answer.page.text


def test_a_platform_of_many_teams_shows_pages_of_them_and_a_search(
    engineer: Browser, site: Site
) -> None:
    """Those that need a look come first; the search and the page stand in the address."""
    there = site.running.platform
    names = [TeamName(f"many-{number:02d}") for number in range(60)]
    files: dict[PurePosixPath, str | None] = {team_path(name): "# a team\n" for name in names}
    write_ledger(there, files, Operation("many-teams", "user:default/test", "many teams"))

    first = until(engineer, "/teams", "1 of 2").page.text
    assert "many-00" in first
    assert "many-59" not in first
    assert "many-59" in engineer.get("/teams?page=2").page.text
    found = engineer.get("/teams?text=many-5").page.text
    assert "many-59" in found
    assert "many-49" not in found
    assert "No team has this in its name" in engineer.get("/teams?text=<b>").page.text
    write_ledger(there, dict.fromkeys(files), Operation("few", "user:default/test", "few teams"))


def test_the_forge_is_asked_for_proposals_only_of_teams_that_may_need_an_approval(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With kits without rules of approval: a page for 400 teams took 400 requests."""
    there, asked = site.running.platform, list[str]()
    send = http.client.HTTPConnection.putrequest

    def listening(self: Any, method: str, url: str, *more: Any, **named: Any) -> None:
        asked.append(url)
        send(self, method, url, *more, **named)

    monkeypatch.setattr(http.client.HTTPConnection, "putrequest", listening)
    assert list(pending(there, teams=None)) == []
    quiet = [url for url in asked if "owner=" in url]
    change = TeamChange(over="ask")
    add_team(there, "rx7", requester="user:default/test", change=change)
    asked.clear()
    assert list(pending(there, teams=None)) == []

    assert quiet == []
    assert len([url for url in asked if "owner=rx7" in url]) == 1
    assert not [url for url in asked if "owner=ae86" in url]


def test_the_platform_page_shows_health_and_why_orders_fail(engineer: Browser, bay: Bay) -> None:
    until(engineer, f"/orders/{bay.order}", "Everything in Git is delivered and works")
    pause(bay)
    page = until(engineer, "/platform", bay.order).page

    assert "What is wrong" in page.text
    assert "ledger" in page.text
    kits = engineer.get("/platform").text.partition('id="kits-title"')[2]
    (count,) = re.findall(r'href="/\?kit=garage">.*?>(\d+) orders?<', kits)
    assert int(count) >= 1


def test_the_platform_page_names_the_portal_that_does_not_answer(site: Site) -> None:
    gone = "http://127.0.0.1:9"
    with serving(site, portal_url=gone) as url:
        browser = Browser(url)
        browser.sign_in(site.secret, PLATFORM)
        answer = until(browser, "/platform", "fail portal")  # at first its check may still run

    assert answer.status == 200
    assert gone in answer.page.text


def test_the_platform_page_does_not_name_the_file_of_a_credential(
    engineer: Browser, site: Site
) -> None:
    """`orderkit doctor` names it, for the person who can read it."""
    token_file = site.running.settings.forge.token_file
    assert token_file is not None
    page = until(engineer, "/platform", f"{site.running.settings.forge.url}, version").page

    assert token_file.name not in page.text
    assert str(site.running.embedded.state.folder) not in page.text


MARKUP = "<script>alert(1)</script><i>&amp;"
EVIL = f"{MARKUP}\u202e\x07"


def test_markup_in_every_field_is_text_on_every_page(
    lead: Browser, engineer: Browser, bay: Bay, site: Site
) -> None:
    ask(bay, set_("motto", MARKUP), set_("colour", MARKUP), reason=MARKUP)
    ask(bay, set_("note", MARKUP[:40]), reason=MARKUP)
    bay.edit('stage: "stage1"', f"stage: '{MARKUP}'\n  plate: '{MARKUP}'")
    site.running.platform.forge.head(bay.repo)
    order = f"/orders/{bay.order}"
    until(lead, order, "<script>")
    newest = bay.commits()[0].id
    paths = [
        "/", f"/?text={MARKUP}&owner={MARKUP}&phase={MARKUP}&done={MARKUP}", order,
        f"{order}/parts", f"{order}/history", f"{order}/history/{newest}", f"{order}/change",
        f"{order}/change?change={MARKUP}", f"{order}/pulls/1", f"{order}/end",
        f"{order}/part?at={MARKUP}", f"/teams/{TEAM}", "/teams", f"/sign-in?onward={MARKUP}",
        f"/sign-in/callback?error={MARKUP}", f"/orders/{MARKUP}", f"/kits/{MARKUP}",
    ]  # fmt: skip
    for path in paths:
        for browser in (lead, engineer):
            answer = browser.get(path)
            assert "<script>alert" not in answer.text, path
            assert "<i>" not in answer.text, path
            assert answer.status != 500, path
            assert answer.page.title

    answer = lead.submit(
        lead.get(f"{order}/change?change=details").form(f"{order}/change"),
        "plan",
        **{"v.note": EVIL, "v.guests": EVIL, "reason": EVIL},
    )
    assert "<script>alert" not in answer.text
    assert "\u202e" not in answer.text
    refused = engineer.submit(
        engineer.get("/kits/garage").form("/kits/garage"), "plan", **{"v.team_name": EVIL}
    )
    assert refused.status == 400
    assert "<script>alert" not in refused.text


def test_every_page_links_to_the_documentation_which_is_of_another_origin(
    site: Site, lead: Browser
) -> None:
    """Its scripts may not act in the console, and it needs no sign-in."""
    docs = site.running.docs
    assert urlsplit(docs).netloc != urlsplit(site.url).netloc
    for path in ("/", "/kits", "/orders/none"):
        assert f'href="{docs}"' in lead.get(path).text
    assert "The documentation" in requests.get(docs, timeout=10).text
    assert requests.get(f"{docs}../clients.yaml", timeout=10).status_code == 404
    stranger = requests.get(docs, headers={"Host": "evil.example"}, timeout=10)
    assert stranger.status_code != 200


def test_a_platform_says_where_its_documentation_is_or_how_to_build_it(site: Site) -> None:
    folder = reference_pack()
    assert site.running.docs in welcome(site.running, folder)
    assert "make docs" in welcome(replace(site.running, docs=""), folder)
