"""Lists of the console: what happened to all orders, and many orders at once."""

from __future__ import annotations

from bays import Bay, ask, set_
from consolebrowser import Browser
from tests.component.console.test_console_pages import until

from orderkit.flows.order.delivering import await_commit


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
