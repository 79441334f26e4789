"""Change an order in the console, without JavaScript: plan, change, conflict, refusal, revert."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
import yaml
from bays import EVE, XR, Bay, ask, set_
from consolebrowser import Answer, Browser
from faultproxy import Decision, Falsehood, Fault, Listed, open_proxy
from forgehands import client_at
from packcopies import published
from tests.component.console.conftest import LEAD, Site, serving

from orderkit.core.order.change import FieldEdit
from orderkit.core.portal.profile import NATURAL_FILE
from orderkit.flows.order.expiry_note import note_expiry
from orderkit.ports.forge import REQUESTER_TRAILER

KIT = PurePosixPath("templates/garage/kit.yaml")


def change_form(browser: Browser, bay: Bay, change: str) -> Answer:
    return browser.get(f"/orders/{bay.order}/change?change={change}")


def action(bay: Bay) -> str:
    return f"/orders/{bay.order}/change"


def test_the_plan_stands_beside_the_form_and_writes_nothing(lead: Browser, bay: Bay) -> None:
    before = bay.head
    opened = change_form(lead, bay, "stage")
    assert "What the change would do" in opened.page.text

    form = opened.form(action(bay))
    planned = lead.submit(form, "plan", **{"v.stage": "stage2"})

    assert planned.status == 200
    assert "stage1" in planned.page.text
    assert "stage2" in planned.page.text
    assert "In the order" in planned.page.text
    assert bay.head == before


def test_a_change_is_one_signed_commit_of_whoever_is_signed_in(lead: Browser, bay: Bay) -> None:
    form = change_form(lead, bay, "stage").form(action(bay))
    entered = {"v.stage": "stage2", "reason": "<b>faster</b>"}
    done = lead.submit(form, "change", **entered)

    assert done.page.h1 == bay.order
    assert bay.spec()["stage"] == "stage2"
    newest = bay.commits()[0]
    assert newest.trailers[REQUESTER_TRAILER] == "user:default/keiichi"
    history = lead.get(f"/orders/{bay.order}/history")
    assert "<b>faster</b>" in history.page.text

    again = lead.submit(form, "change", **entered)
    assert (again.status, bay.commits()[0].id) == (200, newest.id)


def test_what_nobody_touched_stays_as_others_left_it(lead: Browser, bay: Bay) -> None:
    form = change_form(lead, bay, "details").form(action(bay))
    ask(bay, set_("laps", 7))
    lead.submit(form, "change", **{"v.note": "mine"})

    assert (bay.spec()["laps"], bay.spec()["note"]) == (7, "mine")


@pytest.mark.parametrize(("way", "note"), [("mine", "mine"), ("theirs", "theirs")])
def test_a_conflict_shows_all_three_values_and_both_ways_out(
    way: str, note: str, lead: Browser, bay: Bay
) -> None:
    form = change_form(lead, bay, "details").form(action(bay))
    ask(bay, set_("note", "theirs"), set_("laps", 3), requester=EVE)
    head = bay.head
    conflict = lead.submit(form, "change", **{"v.note": "mine", "v.guests": "eve\nbob"})

    assert (conflict.status, bay.head) == (409, head)
    text = conflict.page.text
    assert "You saw not set Now theirs Yours mine Changed by eve" in text

    resolved = lead.submit(conflict.form(action(bay)), way)
    assert resolved.status == 200
    assert "Plan" in resolved.page.text
    assert bay.head == head

    lead.submit(resolved.form(action(bay)), "change")
    spec = bay.spec()
    assert (spec["note"], spec["guests"], spec["laps"]) == (note, ["eve", "bob"], 3)


def test_a_value_that_the_kit_refuses_is_marked_at_its_field(lead: Browser, bay: Bay) -> None:
    ask(bay, set_("budget", 10))
    form = change_form(lead, bay, "budget").form(action(bay))
    refused = lead.submit(form, "change", **{"v.budget": "5"})

    assert refused.status in {400, 403}
    assert "budget" in refused.page.text
    assert ("v.budget", "5") in refused.form(action(bay)).fields
    assert bay.spec()["budget"] == 10

    no_number = lead.submit(form, "plan", **{"v.budget": "much"})
    assert no_number.status == 400
    assert "is not a number" in no_number.page.text


def test_several_errors_stand_each_at_its_field_and_the_first_is_focused(
    lead: Browser, bay: Bay
) -> None:
    path = f"/orders/{bay.order}/change"
    form = lead.get(f"{path}?change=details").form(path)

    refused = lead.submit(form, "change", **{"v.laps": "many", "v.serial": "x" * 200})

    assert refused.status == 400
    assert refused.text.count("autofocus") == 1
    assert refused.text.count('aria-invalid="true"') >= 1
    assert "Nothing was written." in refused.page.text
    assert 'href="#f-laps"' in refused.text, "the note leads to the field"
    assert bay.commits()[0].id == bay.head


def test_the_history_folds_notes_of_the_lease_and_says_why(lead: Browser, bay: Bay) -> None:
    ask(bay, set_("stage", "stage2"), reason="more power")
    for expires in ("2099-01-01T00:00:00Z", "2099-01-02T00:00:00Z"):
        note_expiry(bay.platform, bay.order, expires, EVE)

    shown = lead.get(f"/orders/{bay.order}/history")

    assert "Why: more power" in shown.page.text
    assert "2 notes of the lease" in shown.page.text
    assert shown.text.count("Plan and take back") == 1, "only the change has fields"


def test_a_change_that_wants_a_review_is_proposed_with_its_plan(lead: Browser, bay: Bay) -> None:
    form = change_form(lead, bay, "paint").form(action(bay))
    proposed = lead.submit(form, "change", **{"v.colour": "<i>red</i>"})

    assert "What merging #1 would do" in proposed.page.text
    assert "<i>red</i>" in proposed.page.text
    assert "colour" not in bay.spec()
    merge = f"/orders/{bay.order}/pulls/1/merge"
    assert "It cannot be merged yet" in proposed.page.text
    assert merge not in [form.action for form in proposed.forms]
    csrf = dict(proposed.form("/sign-out").fields)["csrf"]
    refused = lead.send("POST", merge, data={"csrf": csrf})  # whatever the page shows
    assert refused.status == 403
    assert "is not merged" in refused.page.text


def test_a_proposal_whose_reviews_cannot_be_read_says_so_and_offers_no_merge(
    site: Site, bay: Bay
) -> None:
    ask(bay, set_("colour", "red"))
    settings, signatures = site.running.settings, bay.platform.signatures
    hidden = Decision(Fault.REFUSE_BEFORE, Falsehood(403, b'{"message": "token lacks a scope"}'))
    plan = Listed([hidden], lambda _, path: path.partition("?")[0].endswith("/pulls/1/reviews"))

    with (
        open_proxy(settings.forge.url) as proxy,
        client_at(proxy.url, settings.forge, signatures, read_timeout_s=60) as forge,
        serving(site, forge=forge) as url,
    ):
        proxy.plan = plan
        browser = Browser(url)
        browser.sign_in(site.secret, LEAD)
        shown = browser.get(f"/orders/{bay.order}/pulls/1")

    assert shown.status == 200
    assert "It cannot be merged yet" in shown.page.text
    assert "It cannot be merged yet no right: read the reviews of " in shown.page.text
    assert "/merge" not in "".join(form.action for form in shown.forms)


def test_a_commit_shows_its_plan_and_is_taken_back(lead: Browser, bay: Bay) -> None:
    ask(bay, set_("stage", "stage2"))
    commit = lead.get(f"/orders/{bay.order}/history/{bay.head}")
    assert "What that did" in commit.page.text

    form = commit.form(f"/orders/{bay.order}/history/{bay.head}/revert")
    planned = lead.submit(form, "plan")
    assert bay.spec()["stage"] == "stage2"
    assert "stage2 → stage1" in planned.page.text

    done = lead.submit(form, "revert", reason="too fast")
    assert done.page.h1 == bay.order
    assert bay.spec()["stage"] == "stage1"


def test_a_commit_whose_plan_cannot_be_made_says_why(lead: Browser, bay: Bay) -> None:
    text = bay.text()
    bay.put({XR: "spec: ["})
    mended = bay.put({XR: text})

    shown = lead.get(f"/orders/{bay.order}/history/{mended}")

    assert shown.status == 200
    assert "No plan: " in shown.page.text


def test_an_order_whose_fields_never_change_offers_no_form(
    lead: Browser, quiet_bay: Bay, site: Site
) -> None:
    platform = site.running.platform
    kit = platform.forge.read(platform.pack_repo, KIT, "main")
    assert kit is not None
    found = yaml.safe_load(kit.text)
    for change in found["spec"]["changes"]:
        change["direction"] = "never"

    with published(platform, KIT, yaml.safe_dump(found, sort_keys=False)):
        shown = lead.get(action(quiet_bay))

    assert shown.status == 200
    assert "Its kit offers no change of a live order" in shown.page.text
    assert action(quiet_bay) not in [form.action for form in shown.forms]


def test_a_kit_without_a_template_cannot_be_ordered(engineer: Browser, site: Site) -> None:
    platform = site.running.platform
    paths = [KIT.with_name(name) for name in ("template.yaml", NATURAL_FILE)]
    with published(platform, paths[0], None), published(platform, paths[1], None):
        refused = engineer.get("/kits/garage")

    assert refused.status == 400
    assert "templates/garage/template.yaml is missing in pack" in refused.page.text


@pytest.mark.parametrize("number", ["abc", "1" * 10])
def test_what_is_no_number_of_a_proposal_is_not_found(
    number: str, lead: Browser, quiet_bay: Bay
) -> None:
    answer = lead.get(f"/orders/{quiet_bay.order}/pulls/{number}")

    assert answer.status == 404
    assert f"{quiet_bay.order} has no pull request {number}" in answer.page.text


def test_what_was_emptied_and_a_part_of_an_object_survive_a_conflict(
    lead: Browser, bay: Bay
) -> None:
    ask(bay, set_("note", "old"))
    form = change_form(lead, bay, "details").form(action(bay))
    ask(bay, set_("note", "theirs"), FieldEdit("pit.lift", "set", value=True))
    conflict = lead.submit(form, "change", **{"v.note": "", "v.pit.bays": "3"})
    assert conflict.status == 409, conflict.page.text

    resolved = lead.submit(conflict.form(action(bay)), "mine")
    lead.submit(resolved.form(action(bay)), "change")

    assert "note" not in bay.spec()
    assert bay.spec()["pit"] == {"bays": 3, "lift": True}
