"""Changes, forms and the end of orders over HTTP, as a portal and programs ask for them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from bays import Bay, new_bay
from rivals import Rival

from ground.objects.kube_objects import CONFIG_MAP, ObjectKey
from orderkit.cli.connecting import SECRET_HEADER, service_options, token
from orderkit.core.order.end_record import Phase
from orderkit.core.order.order_file import PATH as RECORD
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

PORTAL = "https://portal.example.com"
END_S = 180.0
STAGE = 'stage: "stage1"'


@dataclass(frozen=True)
class Asking:
    """The service, and who asks it as the portal does."""

    url: str
    secret: str

    def __call__(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, Any]:
        with self.raw(method, path, body, {SECRET_HEADER: self.secret, **headers}) as answer:
            return answer.status_code, answer.json()

    def raw(
        self, method: str, path: str, body: object, headers: dict[str, str]
    ) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            url = f"{self.url}{path}"
            return session.request(
                method, url, json=body, headers=headers, timeout=90, allow_redirects=False
            )

    def change(self, bay: Bay, **body: Any) -> tuple[int, Any]:
        return self("POST", f"/v1/orders/{bay.order}/changes", body)

    def form(self, bay: Bay, change: str) -> tuple[str, dict[str, Any]]:
        """Follow a link of the order's page without any proof; return address and form data."""
        path = f"/v1/orders/{bay.order}/changes/{change}/form"
        with self.raw("GET", path, None, {}) as answer:
            assert answer.status_code == 302, answer.text
            parts = urlsplit(answer.headers["Location"])
        (data,) = parse_qs(parts.query, strict_parsing=True)["formData"]
        return f"{parts.scheme}://{parts.netloc}{parts.path}", json.loads(data)


@pytest.fixture(scope="module")
def ask(site: Running) -> Iterator[Asking]:
    usual = service_options(site.settings, audit=None)
    options = replace(usual, requests_per_minute=100_000, portal_url=PORTAL)
    server = HttpServer(service_app(site.platform, options), bind("service", 0))
    server.start()
    yield Asking(server.url, token(site.settings.service))
    server.stop()


def test_a_change_is_committed_and_told(ask: Asking, bay: Bay) -> None:
    status, found = ask.change(
        bay, values={"stage": "stage3"}, reason="race day", requester="user:default/adam"
    )

    assert (status, found["state"], found["change"]) == (201, "committed", "stage")
    assert bay.spec()["stage"] == "stage3"
    assert found["url"].endswith(f"{bay.repo}/commit/{bay.head}")
    assert "stage stage1 → stage3" in found["message"]
    told = ask("GET", f"/v1/orders/{bay.order}/history?limit=1")[1]["entries"][0]
    assert (told["requester"], told["reason"]) == ("user:default/adam", "race day")
    assert told["fields"] == [{"field": "stage", "from": "stage1", "to": "stage3"}]


def test_a_plan_is_told_and_nothing_is_written(ask: Asking, bay: Bay) -> None:
    head = bay.head

    status, told = ask("POST", f"/v1/orders/{bay.order}/plan", {"values": {"stage": "stage3"}})

    assert status == 200, told
    assert [each["to"] for each in told["plan"]["fields"]] == ["stage3"]
    assert told["markdown"].startswith("**Plan: ")
    assert bay.head == head


def test_a_form_opens_with_what_git_holds_now(ask: Asking, bay: Bay) -> None:
    bay.edit(STAGE, f"{STAGE}\n  budget: 7")

    address, data = ask.form(bay, "budget")

    assert address == f"{PORTAL}/create/templates/default/garage.budget"
    assert data == {"order_id": bay.order, "base_commit": bay.head, "budget": 7}
    assert ask.form(bay, "level")[1]["current_level"] == "(not set)"


def test_a_form_that_was_not_touched_changes_nothing(ask: Asking, bay: Bay) -> None:
    bay.edit(STAGE, f"{STAGE}\n  note: hello\n  guests: [a, b]")
    _, data = ask.form(bay, "details")
    before = bay.head
    values = {k: v for k, v in data.items() if k not in ("order_id", "base_commit")}

    status, found = ask.change(
        bay, change="details", values=values, base=data["base_commit"], whole=True
    )

    assert (status, found["state"], bay.head) == (200, "unchanged", before)
    assert values == {"note": "hello", "guests": ["a", "b"]}


def test_a_field_that_was_emptied_in_the_form_is_taken_away(ask: Asking, bay: Bay) -> None:
    bay.edit(STAGE, f"{STAGE}  # kept\n  note: hello\n  laps: 3")
    _, data = ask.form(bay, "details")

    status, _ = ask.change(
        bay, change="details", values={"laps": 4}, base=data["base_commit"], whole=True
    )

    assert status == 201
    assert bay.spec() == {"teamName": bay.name, "stage": "stage1", "laps": 4}
    assert f"{STAGE}  # kept" in bay.text()


def test_what_somebody_else_did_meanwhile_stays(ask: Asking, bay: Bay) -> None:
    """The form sends all its fields; the one that was not touched is not a conflict."""
    bay.edit(STAGE, f"{STAGE}\n  note: old\n  laps: 3")
    _, data = ask.form(bay, "details")
    bay.edit("note: old", "note: new")

    status, found = ask.change(
        bay,
        change="details",
        values={"note": "old", "laps": 5},
        base=data["base_commit"],
        whole=True,
    )

    assert (status, found["state"]) == (201, "committed"), found
    assert (bay.spec()["note"], bay.spec()["laps"]) == ("new", 5)


def test_a_conflict_shows_both_values_and_writes_nothing(ask: Asking, bay: Bay) -> None:
    _, data = ask.form(bay, "details")
    bay.edit(STAGE, f"{STAGE}\n  laps: 9")
    before = bay.head

    status, found = ask.change(
        bay, change="details", values={"laps": 5}, base=data["base_commit"], whole=True
    )

    error = found["error"]
    assert (status, bay.head) == (409, before)
    assert "laps is 9 now" in error["message"]
    (conflict,) = error["conflicts"]
    assert (conflict["now"], conflict["wanted"], error["head"]) == (9, 5, before)


def test_a_form_that_is_started_over_after_a_conflict_is_done(ask: Asking, bay: Bay) -> None:
    """The portal sends the old base again. Only what the person was shown is no conflict."""
    bay.edit(STAGE, f"{STAGE}\n  note: old\n  laps: 3")
    _, data = ask.form(bay, "details")
    bay.edit("laps: 3", "laps: 9")
    bay.edit("note: old", "note: new")

    def sent(task: str, **body: Any) -> tuple[int, Any]:
        path = f"/v1/orders/{bay.order}/changes"
        form = {"change": "details", "values": {"note": "old", "laps": 5}, "whole": True}
        whole = {**form, "base": data["base_commit"], "resend": True, **body}
        return ask("POST", path, whole, **{"Idempotency-Key": task})

    first, again = sent("task-1"), sent("task-1")
    of_another_person = sent("task-2", requester="user:default/berta")
    programs = sent("task-3", resend=False)
    bay.edit("laps: 9", "laps: 8")
    newer = sent("task-4")
    done = sent("task-5")

    assert [answer[0] for answer in (first, again, of_another_person, programs)] == [409] * 4
    assert "the portal's START OVER changes them all the same" in first[1]["error"]["hint"]
    assert newer[0] == 409, "what changed after the conflict was not shown"
    assert "laps is 8 now" in newer[1]["error"]["message"]
    assert (done[0], done[1]["state"]) == (201, "committed"), done
    assert (bay.spec()["laps"], bay.spec()["note"]) == (5, "new")


@dataclass(frozen=True)
class Refused:
    reason: str
    body: dict[str, Any]
    status: int
    says: str


REFUSED = [
    Refused("shrinking what may grow", {"values": {"budget": 3}}, 403, "it may only grow"),
    Refused("two steps at once", {"values": {"level": "high"}}, 403, "step"),
    Refused("what never changes", {"values": {"plate": "X"}}, 403, "never changes"),
    Refused("the team", {"values": {"team_name": "other"}}, 403, "names the order or its team"),
    Refused("a field of another change", {"change": "stage", "values": {"laps": 1}}, 403, "stage"),
    Refused("a change nobody knows", {"change": "stag", "values": {"laps": 1}}, 400, "did you"),
    Refused("a field nobody knows", {"values": {"lapz": 1}}, 400, "did you mean 'laps'?"),
    Refused("a value the XRD refuses", {"values": {"stage": "stage9"}}, 400, "stage"),
    Refused("a type the XRD refuses", {"values": {"laps": "many"}}, 400, "laps"),
    Refused("a base nobody knows", {"values": {"laps": 1}, "base": "f" * 40}, 400, "base"),
    Refused("past the review", {"values": {"motto": "x"}, "how": "direct"}, 403, "review"),
    Refused("no values", {}, 400, "values"),
    Refused("a field twice over", {"values": {"laps": 1}, "edits": []}, 400, "edits"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_what_is_refused_is_said_in_words_and_writes_nothing(
    case: Refused, ask: Asking, settled_bay: Bay
) -> None:
    before = settled_bay.head

    status, found = ask.change(settled_bay, **case.body)

    assert (status, settled_bay.head) == (case.status, before), found
    assert case.says in json.dumps(found, ensure_ascii=False), found
    assert found["error"]["message"]


@pytest.mark.parametrize("number", ["abc", "-1", "1.0", "\u0661", "\u00b9", "1" * 10])
def test_what_is_no_number_of_a_pull_request_merges_nothing(
    number: str, ask: Asking, settled_bay: Bay
) -> None:
    status, found = ask("POST", f"/v1/orders/{settled_bay.order}/pulls/{number}/merge", {})

    assert (status, "number" in found["error"]["message"]) == (400, True), found


@pytest.fixture(scope="module")
def settled_bay(site: Running) -> Bay:
    """An order with values, which nobody may change."""
    bay = new_bay(site.platform)
    bay.edit(STAGE, f"{STAGE}\n  budget: 5\n  level: low\n  plate: AE")
    return bay


def test_the_same_key_changes_once(ask: Asking, bay: Bay) -> None:
    path, body = f"/v1/orders/{bay.order}/changes", {"values": {"laps": 3}}
    first = ask("POST", path, body, **{"Idempotency-Key": "task-1"})
    bay.edit("laps: 3", "laps: 8")

    again = ask("POST", path, body, **{"Idempotency-Key": "task-1"})
    other = ask("POST", path, {"values": {"laps": 4}}, **{"Idempotency-Key": "task-1"})

    assert [first[0], again[0], other[0]] == [201, 200, 201]
    assert again[1]["repeated"]
    assert again[1]["commit"] == first[1]["commit"]
    assert bay.spec()["laps"] == 4


def test_a_change_that_is_reviewed_becomes_a_pull_request(ask: Asking, bay: Bay) -> None:
    before = bay.head

    status, found = ask.change(bay, values={"motto": "fast"}, change="paint")

    assert (status, found["state"], bay.head) == (201, "proposed", before)
    assert found["url"] == found["pull"]["url"]
    warning, counts = found["warnings"]
    assert warning == "The bay is closed while the paint dries."
    assert "'user:default/unknown' is not a user of the forge" in counts
    assert "Pull request #1 waits for review" in found["message"]


def test_a_dry_run_says_what_would_be_and_writes_nothing(ask: Asking, bay: Bay) -> None:
    before = bay.head

    status, found = ask.change(bay, values={"laps": 2}, dryRun=True)

    assert (status, found["state"], bay.head) == (200, "planned", before)
    assert "+  laps: 2" in found["diff"]


def test_forms_of_a_private_order_are_not_shown_to_strangers(
    ask: Asking, bay: Bay, site: Running
) -> None:
    make_private(site, bay)
    path = f"/v1/orders/{bay.order}/changes/stage/form"

    stranger = ask.raw("GET", path, None, {})
    nobody = ask.raw("GET", path.replace(bay.order, "garage-nobody"), None, {})
    known = ask.raw("GET", path, None, {SECRET_HEADER: ask.secret})
    wrong = ask.raw("GET", path, None, {SECRET_HEADER: "wrong"})

    assert [r.status_code for r in (stranger, nobody, known, wrong)] == [404, 404, 302, 401]
    assert stranger.text.replace(bay.order, "garage-nobody") == nobody.text


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def page(ask: Asking, path: str) -> tuple[int, str]:
    """Follow a link as a browser does; return status and what a person reads."""
    with ask.raw("GET", path, None, BROWSER) as answer:
        assert answer.headers["Content-Type"].startswith("text/html"), answer.text
        assert "Accept" in answer.headers["Vary"]
        assert "script" not in answer.text
        return answer.status_code, " ".join(re.sub("<[^>]+>", " ", answer.text).split())


def test_a_link_to_no_order_opens_a_page_for_people(ask: Asking, bay: Bay, site: Running) -> None:
    make_private(site, bay)
    hidden = page(ask, f"/v1/orders/{bay.order}/end/form")
    unknown = page(ask, "/v1/orders/garage-nobody/end/form")

    assert (hidden[0], unknown[0]) == (404, 404)
    assert "No such order here" in unknown[1]
    assert "or only its team may see it" in unknown[1]
    strip = re.compile(r"Request \S+, ")
    assert strip.sub("", hidden[1].replace(bay.order, "garage-nobody")) == strip.sub("", unknown[1])


def test_a_link_to_an_ended_order_says_what_happened_to_it(ask: Asking, bay: Bay) -> None:
    path = f"/v1/orders/{bay.order}/changes/stage/form"
    destroy(
        bay.platform,
        EndRequest(bay.order, "user:default/adam"),
        on_step=lambda *_: None,
    )

    status, text = page(ask, path)
    with ask.raw("GET", path, None, {}) as programs:
        told = programs.json()["error"]

    assert (status, programs.status_code) == (410, 410)
    assert "This order has ended" in text
    assert f"{bay.order} ended on 20" in text
    assert "user:default/adam asked for it" in text
    assert "its repository is archived and keeps its history" in text
    assert "asked for it" in told["message"]
    with ask.raw("GET", path, None, BROWSER) as answer:
        assert f'href="{PORTAL}/catalog"' in answer.text
        (style,) = re.findall(r'href="(/static/[^"]+css[^"]*)"', answer.text)
    with ask.raw("GET", style, None, {}) as sheet:
        assert sheet.status_code == 200


def test_a_link_that_is_refused_opens_a_page_with_the_sentence(ask: Asking, bay: Bay) -> None:
    status, text = page(ask, f"/v1/orders/{bay.order}/changes/stag/form")

    assert (status, "did you mean" in text) == (400, True), text
    assert "This form cannot be opened now" in text


@pytest.mark.parametrize(("accept", "asks"), [(BROWSER, None), ({}, "Bearer")])
def test_a_link_with_a_wrong_token_makes_no_browser_ask_for_a_password(
    ask: Asking, bay: Bay, accept: Mapping[str, str], asks: str | None
) -> None:
    headers = {**accept, "Authorization": "Bearer okt_wrong"}
    with ask.raw("GET", f"/v1/orders/{bay.order}/end/form", None, headers) as answer:
        assert (answer.status_code, answer.headers.get("WWW-Authenticate")) == (401, asks)


def make_private(site: Running, bay: Bay) -> None:
    url = f"{site.settings.forge.url}/api/v1/repos/{bay.repo}"
    headers = {"Authorization": f"token {token(site.settings.forge)}"}
    requests.patch(url, json={"private": True}, headers=headers, timeout=30).raise_for_status()


def test_an_end_needs_the_orders_id_typed(ask: Asking, bay: Bay) -> None:
    status, found = ask("POST", f"/v1/orders/{bay.order}/end", {"confirm": f"{bay.order} "})

    assert (status, found["error"]["field"]) == (400, "confirm")
    assert ask("GET", f"/v1/orders/{bay.order}/end")[0] == 404
    assert ask("GET", f"/v1/orders/{bay.order}")[1]["phase"] != "Ending"


def ended(ask: Asking, bay: Bay) -> Any:
    """Wait until an end is over, as its status address tells."""
    end = time.monotonic() + END_S
    while True:
        status, found = ask("GET", f"/v1/orders/{bay.order}/end")
        assert status == 200, found
        if found["state"] != "ending":
            return found
        assert time.monotonic() < end, found
        time.sleep(0.1)


def test_an_order_is_ended_with_proof(ask: Asking, bay: Bay) -> None:
    body = {"confirm": bay.order, "reason": "season over", "requester": "user:default/adam"}

    status, found = ask("POST", f"/v1/orders/{bay.order}/end", body)

    assert status in {200, 202}, found
    done = ended(ask, bay)
    assert (done["state"], done["repository"]) == ("ended", "archive")
    assert "XGarage" in {gone["kind"] for gone in done["gone"]}
    newest = bay.platform.forge.commits(bay.platform.ledger, limit=1)[0].message
    assert "Orderkit-Requester: user:default/adam" in newest
    assert "season over" in newest
    again = ask("POST", f"/v1/orders/{bay.order}/end", body)
    assert (again[0], again[1]["state"]) == (200, "ended")
    assert ask.change(bay, values={"laps": 1})[0] == 404


@contextmanager
def held(bay: Bay) -> Iterator[None]:
    """Let a part of an order outlast its deletion."""
    cluster, part = bay.platform.cluster, ObjectKey(CONFIG_MAP, "spec-sheet", bay.order)
    until(SystemClock(), lambda: cluster.get(part), bool, timeout_s=60, goal="the part")
    for finalizers in (["orderkit.dev/test"], None):
        cluster.patch(part, {"metadata": {"finalizers": finalizers}}, owner="test")
        if finalizers:
            yield


def test_an_end_that_runs_takes_no_other_options(site: Running, bay: Bay) -> None:
    options = replace(service_options(site.settings, audit=None), answer_s=10.1)
    server = HttpServer(service_app(site.platform, options), bind("service", 0))
    impatient = Asking(server.url, token(site.settings.service))
    path, body = f"/v1/orders/{bay.order}/end", {"confirm": bay.order, "repository": "archive"}
    server.start()
    with held(bay):
        begun = [impatient("POST", path, each)[0] for each in (body, body, {"confirm": bay.order})]
        others = [
            impatient("POST", path, {**body, **other})
            for other in ({"repository": "delete"}, {"take": {"data": True}})
        ]
    done = ended(impatient, bay)
    server.stop()

    assert begun == [202, 202, 202]
    for status, refused in others:
        assert (status, "not with these options" in refused["error"]["message"]) == (409, True)
    assert (done["state"], done["repository"]) == ("ended", "archive")


def test_an_end_that_is_refused_says_why_and_ends_nothing(ask: Asking, bay: Bay) -> None:
    body = {"confirm": bay.order, "take": {"nothing": True}}

    status, refused = ask("POST", f"/v1/orders/{bay.order}/end", body)

    assert (status, "nothing" in refused["error"]["message"]) == (400, True), refused
    assert ask("GET", f"/v1/orders/{bay.order}/end")[0] == 404


def test_what_an_end_would_leave_of_an_order_that_cannot_be_read_is_unknown(
    ask: Asking, bay: Bay
) -> None:
    bay.put({RECORD: None})

    status, preview = ask("GET", f"/v1/orders/{bay.order}/end/preview")

    assert status == 200, preview
    assert "no .orderkit/order.yaml" in preview["unread"]


def test_an_end_that_a_bug_stops_is_told_logged_and_can_be_repeated(
    ask: Asking, site: Running, bay: Bay, caplog: pytest.LogCaptureFixture
) -> None:
    path, body = f"/v1/orders/{bay.order}/end", {"confirm": bay.order}
    forge: Any = Rival(site.platform.forge, "archive", lambda: 1 / 0)
    options = service_options(site.settings, audit=None)
    service = service_app(replace(site.platform, forge=forge), options)
    server = HttpServer(service, bind("service", 0))
    broken = Asking(server.url, ask.secret)
    server.start()
    status, refused = broken("POST", path, body)
    told = broken("GET", path)[1]
    server.stop()

    assert (status, refused["error"]["message"]) == (500, "this is a bug in Orderkit")
    assert (told["state"], told["reason"]) == ("stopped", "division by zero")
    assert f"the end of {bay.order}" in caplog.messages
    assert ask("POST", path, body)[0] in {200, 202}
    assert ended(ask, bay)["state"] == "ended"


class CutError(Exception):
    """The process that ended the order is gone."""


def test_an_end_that_was_cut_off_is_told_and_goes_on(ask: Asking, bay: Bay) -> None:
    def cut(_step: Phase, _done: str) -> None:
        raise CutError

    with pytest.raises(CutError):
        destroy(bay.platform, EndRequest(bay.order, "user:default/adam"), on_step=cut)

    told = ask("GET", f"/v1/orders/{bay.order}/end")[1]
    status, found = ask("POST", f"/v1/orders/{bay.order}/end", {"confirm": bay.order})

    assert told["state"] == "stopped"
    assert status in {200, 202}, found
    assert ended(ask, bay)["state"] == "ended"


def test_an_order_whose_repository_was_renamed_is_still_shown_with_that_as_the_reason(
    ask: Asking, bay: Bay
) -> None:
    bay.platform.forge.rename_repo(bay.repo, f"{bay.order}-elsewhere")

    views = {view: ask("GET", f"/v1/orders/{bay.order}{view}") for view in ("", "/view", "/trace")}

    assert [status for status, _ in views.values()] == [200, 200, 200], views
    for view in ("", "/view"):
        assert f"{bay.order}-elsewhere" in json.dumps(views[view][1])


def test_events_are_told_newest_first(ask: Asking, bay: Bay) -> None:
    until(
        SystemClock(),
        lambda: ask("GET", f"/v1/orders/{bay.order}/events")[1]["events"],
        lambda events: len(events) > 1 and "XGarage" in {each["object"]["kind"] for each in events},
        timeout_s=90,
        goal="an event about the XR",
    )

    status, found = ask("GET", f"/v1/orders/{bay.order}/events?limit=2")

    assert (status, found["order"], len(found["events"])) == (200, bay.order, 2)
    times = [each["at"] for each in found["events"]]
    assert times == sorted(times, reverse=True)
    assert all(each["count"] >= 1 and each["reason"] for each in found["events"])
    assert ask("GET", "/v1/orders/garage-nobody/events")[0] == 404
