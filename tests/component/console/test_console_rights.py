"""Rights x pages x actions over HTTP: every page and every form of the console, for everybody."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from bays import TEAM, Bay, ask, new_bay, set_
from consolebrowser import Browser
from tests.component.console.conftest import LEAD, PLATFORM, STRANGER, Site

from orderkit.core.platform.service_access import RIGHTS
from orderkit.ports.requesters import Requester
from orderkit.web.callers import CallerAccess
from orderkit.web.console.console import Console
from orderkit.web.operation_table import operations
from orderkit.web.operations import ServiceOptions

READER = replace(LEAD, rights=frozenset({"read"}))
CHANGER = replace(LEAD, rights=frozenset({"read", "change"}))
WATCHER = Requester("user:default/itsuki", "x", rights=frozenset({"observe"}), everywhere=True)
PEOPLE = {
    "nobody": None,
    "another team": STRANGER,
    "a reader": READER,
    "who may change": CHANGER,
    "the team": LEAD,
    "the platform": PLATFORM,
    "who may only observe": WATCHER,
}
IN, OUT, MISSING = 200, 403, 404
SIGN_IN = 0
"""Led to the sign-in."""


@dataclass(frozen=True)
class Place:
    """A page, or a form with its fields, and what it answers to `PEOPLE`, in their order."""

    operation: str
    path: str
    answers: tuple[int, ...]
    form: dict[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.operation} {' '.join(self.form or ())}".strip()


OF_TEAM = (SIGN_IN, OUT, IN, IN, IN, IN, OUT)
OF_ANY = (SIGN_IN, IN, IN, IN, IN, IN, OUT)
WRITE = 401
CHANGES = (WRITE, OUT, OUT, IN, IN, IN, OUT)
PLACES = [
    Place("ordersPage", "/", OF_ANY),
    Place("activityPage", "/activity", OF_ANY),
    Place("selectedSubmit", "/selected", (WRITE, *(400,) * 5, OUT), {"do": "end"}),
    Place("favouriteSubmit", "/favourites", (WRITE, *(400,) * 5, OUT), {"favourite": "A"}),
    Place("orderPage", "/orders/{order}", OF_TEAM),
    Place("partsPage", "/orders/{order}/parts", OF_TEAM),
    Place("partPage", "/orders/{order}/part?at={part}", OF_TEAM),
    Place("historyPage", "/orders/{order}/history", OF_TEAM),
    Place("commitPage", "/orders/{order}/history/{commit}", OF_TEAM),
    Place("changePage", "/orders/{order}/change", OF_TEAM),
    Place("pullPage", "/orders/{order}/pulls/1", OF_TEAM),
    Place("leasePage", "/orders/{order}/lease", OF_TEAM),
    Place("endPage", "/orders/{order}/end", OF_TEAM),
    Place("teamsPage", "/teams", OF_ANY),
    Place("teamPage", f"/teams/{TEAM}", OF_TEAM),
    Place("platformPage", "/platform", (SIGN_IN, OUT, OUT, OUT, OUT, IN, OUT)),
    Place("kitsPage", "/kits", OF_ANY),
    Place("kitPage", "/kits/garage", (SIGN_IN, IN, OUT, OUT, IN, IN, OUT)),
    Place(
        "changeSubmit",
        "/orders/{order}/change",
        (WRITE, OUT, IN, IN, IN, IN, OUT),
        {"change": "stage", "v.stage": "stage3", "do": "plan"},
    ),
    Place(
        "changeSubmit",
        "/orders/{order}/change",
        CHANGES,
        {"change": "stage", "v.stage": "stage2", "do": "change"},
    ),
    Place("commitRevert", "/orders/{order}/history/{commit}/revert", CHANGES, {"do": "plan"}),
    Place("pullMerge", "/orders/{order}/pulls/1/merge", (WRITE, *(OUT,) * 6), {}),
    Place(
        "outputReveal",
        "/orders/{order}/output",
        (WRITE, OUT, OUT, 400, 400, 400, OUT),
        {"output": "x"},
    ),
    Place(
        "leaseExtend",
        "/orders/{order}/lease",
        (WRITE, OUT, OUT, 400, 400, 400, OUT),
        {"by": "soon", "reason": "a race"},
    ),
    Place(
        "endSubmit",
        "/orders/{order}/end",
        (WRITE, OUT, OUT, OUT, 400, 400, OUT),
        {"confirm": "another"},
    ),
    Place(
        "kitSubmit",
        "/kits/garage",
        (WRITE, OUT, OUT, OUT, IN, IN, OUT),
        {"v.team_name": TEAM, "v.stage": "stage1", "do": "plan"},
    ),
    Place("approvalsPage", "/approvals", OF_ANY),
    Place("campaignsPage", "/campaigns", OF_ANY),
    Place("campaignPage", "/campaigns/none", (SIGN_IN, *(MISSING,) * 5, OUT)),
    Place(
        "approvalDecide",
        "/orders/{order}/approval",
        (WRITE, OUT, OUT, OUT, MISSING, MISSING, OUT),
        {"decision": "approve"},
    ),
    Place("signInPage", "/sign-in", (IN,) * 7),
    Place("signInBegin", "/sign-in/begin", (OUT,) * 7),
    Place("signInFinish", "/sign-in/callback?state=a&code=b", (401,) * 7),
    Place("signInLink", "/sign-in/link?token=a", (401,) * 7),
    Place("signOut", "/sign-out", (OUT, IN, IN, IN, IN, IN, IN), {}),
]


@pytest.fixture(scope="module")
def proposed(site: Site) -> Bay:
    """An order with a commit to take back and a pull request that nobody approved."""
    bay = new_bay(site.running.platform)
    ask(bay, set_("stage", "stage2"))
    ask(bay, set_("colour", "red"))
    return bay


@pytest.fixture(scope="module")
def browsers(site: Site) -> dict[str, Browser]:
    found = {name: site.browser() for name in PEOPLE}
    for name, person in PEOPLE.items():
        if person is not None:
            found[name].sign_in(site.secret, person)
    return found


def part_of(browser: Browser, order: str) -> str:
    text = browser.get(f"/orders/{order}/parts").text
    return text.partition("/part?at=")[2].partition('"')[0]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_everybody_gets_what_they_may_have(
    place: Place,
    site: Site,
    proposed: Bay,
    browsers: dict[str, Browser],
    engineer: Browser,
) -> None:
    path = place.path.format(
        order=proposed.order,
        commit=proposed.commits()[0].id,
        part=part_of(engineer, proposed.order) if "{part}" in place.path else "",
    )
    answers = {}
    for name, person in PEOPLE.items():
        browser = browsers[name]
        if place.operation == "signOut":
            browser = site.browser()
            if person is not None:
                browser.sign_in(site.secret, person)
        if place.form is None:
            answer = browser.get(path)
            is_led = answer.page.h1 == "Sign in" and not path.startswith("/sign-in")
            answers[name] = SIGN_IN if is_led else answer.status
            continue
        form = {"csrf": csrf_of(browser), "key": "k1", **place.form}
        answers[name] = browser.send("POST", path, data=form).status

    assert answers == dict(zip(PEOPLE, place.answers, strict=True))


def csrf_of(browser: Browser) -> str:
    fields = dict(next((form.fields for form in browser.get("/").forms), []))
    return fields.get("csrf", "")


def test_the_table_has_every_page_and_form_of_the_console() -> None:
    access = CallerAccess("secret", "X-Secret")
    console = Console(ServiceOptions(access), operations())

    assert {place.operation for place in PLACES} == {page.id for page in console.pages()}
    assert all(page.right in {*RIGHTS, None} for page in console.pages())


def test_what_the_console_does_stands_in_the_audit_log(
    site: Site, proposed: Bay, browsers: dict[str, Browser]
) -> None:
    browser = browsers["a reader"]
    form = {"csrf": csrf_of(browser), "change": "stage", "v.stage": "stage1", "do": "change"}
    browser.send("POST", f"/orders/{proposed.order}/change", data=form)

    audit = (site.running.embedded.state.folder / "audit.jsonl").read_text().splitlines()
    line = next(text for text in reversed(audit) if "changeSubmit" in text)
    assert '"caller": "user:default/keiichi"' in line
    assert '"via": "a one-time link"' in line
    assert '"does": "changeOrder"' in line
    assert '"status": 403' in line
    assert browser.cookies
    assert not any(value in "".join(audit) for value in browser.cookies.values())
