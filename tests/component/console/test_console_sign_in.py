"""Who gets into the console, over HTTP, and what a browser keeps."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import requests
from bays import TEAM, Bay
from commands import in_process
from consolebrowser import Browser
from forgeusers import embedded_admin
from itsdangerous import URLSafeTimedSerializer
from tests.component.console.conftest import LEAD, Site, serving

from ground.errors import RefusedError
from orderkit.ports.requesters import Requester, UnprovedError
from orderkit.web.console import sessions
from orderkit.web.console.sessions import Sessions, link_token


def test_who_is_not_signed_in_is_led_to_the_sign_in_and_back(site: Site, quiet_bay: Bay) -> None:
    browser = site.browser()

    answer = browser.get(f"/orders/{quiet_bay.order}")
    assert answer.page.h1 == "Sign in"
    assert quiet_bay.order not in answer.page.text
    assert "orderkit console" in answer.page.text

    onward = f"/orders/{quiet_bay.order}"
    assert browser.sign_in(site.secret, LEAD, onward).page.h1 == quiet_bay.order


def test_a_link_signs_in_once(site: Site) -> None:
    token = link_token(site.secret, LEAD)
    first, second = site.browser(), site.browser()

    assert first.get(f"/sign-in/link?token={token}").page.h1 == "Orders"
    refused = second.get(f"/sign-in/link?token={token}")
    assert (refused.status, refused.page.h1, second.cookies) == (401, "Not signed in", {})
    assert "used already" in refused.page.text


def test_the_command_prints_a_link_for_every_team_or_for_one(
    site: Site, bay: Bay, capsys: pytest.CaptureFixture[str]
) -> None:
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)
    assert orderkit("team", "add", "strangers").code == 0
    everywhere = orderkit("console").out.strip()
    elsewhere = orderkit("console", "--team", "strangers", "--json").json["link"]
    page = f"/orders/{bay.order}"

    one, other = site.browser(), site.browser()
    for browser, link in ((one, everywhere), (other, elsewhere)):
        browser.get(link.removeprefix(site.running.settings.service.url))

    assert one.get(page).page.h1 == bay.order
    assert other.get(page).status == 403
    assert orderkit("console", "--team", "No Team").code == 2


def test_the_command_refuses_a_team_that_does_not_exist(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    orderkit = in_process(site.running.embedded.state.folder / "platform.yaml", capsys)

    done = orderkit("console", "--team", "nobody")

    assert (done.code, done.out) == (1, "")
    assert "team 'nobody' is not in the ledger\n" in done.err
    assert (
        "hint:  'orderkit team list' shows teams; add one: orderkit team add nobody\n" in done.err
    )


def test_a_link_is_no_cookie_and_a_cookie_is_no_link(site: Site) -> None:
    signed_in, thief = site.browser(LEAD), site.browser()
    (name, cookie), *_ = signed_in.cookies.items()

    thief.take_cookies({name: link_token(site.secret, LEAD)})
    assert thief.get("/").page.h1 == "Sign in"
    assert site.browser().get(f"/sign-in/link?token={cookie}").page.h1 == "Not signed in"


WRONG: dict[str, Callable[[Site], str]] = {
    "nothing": lambda _: "",
    "not ours": lambda _: "eyJhIjoxfQ.aaaa.bbbb",
    "of another service": lambda _: link_token("another secret", LEAD),
    "of another purpose": lambda site: Sessions(site.secret, session_s=60).cookie(LEAD),
    "changed": lambda site: link_token(site.secret, LEAD)[:-2] + "xx",
    "signed by a guess": lambda _: str(URLSafeTimedSerializer("", salt="").dumps({"id": "1"})),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_a_wrong_link_signs_nobody_in(make: Callable[[Site], str], site: Site) -> None:
    browser = site.browser()
    answer = browser.get("/sign-in/link", params={"token": make(site)})

    assert (answer.page.h1, browser.cookies) == ("Not signed in", {})


@pytest.mark.parametrize("elsewhere", ["203.0.113.9", "10.1.2.3", "2001:db8::1", "name"])
def test_a_link_signs_in_on_this_machine_only(elsewhere: str, site: Site) -> None:
    """A proxy on this machine passes on what another machine asks for."""
    with serving(site, trusted_proxies=("127.0.0.1",)) as url:
        path = f"/sign-in/link?token={link_token(site.secret, LEAD)}"
        far, near = Browser(url), Browser(url)
        refused = far.get(path, headers={"X-Forwarded-For": elsewhere})
        signed_in = near.get(path, headers={"X-Forwarded-For": "127.0.0.1"})

    assert (refused.status, far.cookies) == (403, {})
    assert "on the machine of an embedded platform only" in refused.page.text
    assert signed_in.page.h1 == "Orders"


def test_an_old_link_signs_nobody_in(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    token = link_token(site.secret, LEAD)
    monkeypatch.setattr(sessions, "LINK_S", -1)

    assert site.browser().get(f"/sign-in/link?token={token}").page.h1 == "Not signed in"


def test_a_link_from_before_a_restart_signs_nobody_in() -> None:
    token = link_token("s", LEAD)
    time.sleep(0.01)

    with pytest.raises(UnprovedError, match="restarted"):
        Sessions("s", session_s=60).redeem(token)


@pytest.mark.parametrize("apart_s", [-30, -1, 1, 30])
def test_a_session_counts_in_a_replica_whose_clock_differs(
    apart_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    signing, reading = (Sessions("s", session_s=60) for _ in range(2))
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + apart_s)
    cookie = signing.cookie(LEAD)
    monkeypatch.setattr(time, "time", lambda: now_s)

    assert reading.session(cookie).requester.ref == LEAD.ref


@pytest.mark.parametrize("apart_s", [-61, 32])
def test_a_session_of_another_time_counts_nowhere(
    apart_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions_, now_s = Sessions("s", session_s=60), time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + apart_s)
    cookie = sessions_.cookie(LEAD)
    monkeypatch.setattr(time, "time", lambda: now_s)

    with pytest.raises(UnprovedError):
        sessions_.session(cookie)


def test_longer_sessions_lengthen_none_that_began_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s - 61)
    cookie = Sessions("s", session_s=60).cookie(LEAD)
    monkeypatch.setattr(time, "time", lambda: now_s)

    with pytest.raises(UnprovedError, match="is over"):
        Sessions("s", session_s=3600).session(cookie)


def test_a_session_ends_when_it_is_over_or_signed_out(site: Site) -> None:
    over = Sessions("s", session_s=-1)
    cookie = over.cookie(LEAD)
    with pytest.raises(UnprovedError):
        over.session(cookie)

    browser, copy = site.browser(LEAD), site.browser()
    copy.take_cookies(browser.cookies)
    assert copy.get("/").page.h1 == "Orders"

    assert browser.submit(browser.get("/").form("/sign-out")).page.h1 == "Sign in"
    assert browser.cookies == {}
    assert copy.get("/").page.h1 == "Sign in"


def test_many_later_sign_outs_bring_no_session_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_REVOKED_MAX", 3)
    ours = Sessions("s", session_s=60)
    cookies = [ours.cookie(LEAD) for _ in range(5)]

    for cookie in cookies:
        ours.end(ours.session(cookie))

    for cookie in cookies:
        with pytest.raises(UnprovedError, match="is over"):
            ours.session(cookie)


def test_a_person_of_very_many_groups_is_told_what_to_do() -> None:
    groups = frozenset(f"group:default/{number * 7919 % 10**9:09}-x" for number in range(2000))

    with pytest.raises(RefusedError, match="2000 groups"):
        Sessions("s", session_s=60).cookie(Requester("user:default/eve", "x", groups))


def test_a_cookie_is_for_this_host_and_no_script(site: Site) -> None:
    token = link_token(site.secret, LEAD)
    answer = site.browser().get(f"/sign-in/link?token={token}", allow_redirects=False)
    cookie = answer.headers["Set-Cookie"]

    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Domain" not in cookie


@pytest.mark.parametrize(
    "onward", ["//evil.example", "https://evil.example/", "/\\evil.example", "evil", "/\nx", "/é"]
)
def test_a_sign_in_leads_nowhere_else(onward: str, site: Site) -> None:
    browser = site.browser()
    answer = browser.get(
        "/sign-in/link",
        params={"token": link_token(site.secret, LEAD), "onward": onward},
        allow_redirects=False,
    )

    assert answer.headers["Location"] == "/"


FORGED = {
    "without the token": {"csrf": ""},
    "with another's token": {"csrf": "x" * 32},
}


@pytest.mark.parametrize("entered", FORGED.values(), ids=FORGED)
def test_a_form_of_another_session_is_refused(entered: dict[str, str], site: Site) -> None:
    browser = site.browser(LEAD)
    answer = browser.submit(browser.get("/").form("/sign-out"), **entered)

    assert (answer.status, answer.page.h1) == (403, "Not allowed")
    assert browser.get("/").page.h1 == "Orders"


ELSEWHERE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", ELSEWHERE, ids=str)
def test_a_form_that_another_site_sends_is_refused(headers: dict[str, str], site: Site) -> None:
    browser = site.browser(LEAD)
    form = browser.get("/").form("/sign-out")
    answer = browser.send("POST", form.action, headers=headers, data=form.fields)

    assert answer.status == 403
    assert browser.get("/").page.h1 == "Orders"


def test_the_console_itself_refuses_forms_of_other_sites(site: Site) -> None:
    """Off the loopback, the server before it judges neither hosts nor origins."""
    with serving(site) as url:
        browser = Browser(url)
        browser.sign_in(site.secret, LEAD)
        form = browser.get("/").form("/sign-out")
        for headers in ELSEWHERE:
            answer = browser.send("POST", form.action, headers=headers, data=form.fields)
            assert answer.status == 403, headers
            assert "a page of another site may not send this form" in answer.page.text
        assert browser.submit(form).page.h1 == "Sign in"


def test_every_answer_has_the_headers_that_keep_strangers_out(site: Site) -> None:
    signed_in, out = site.browser(LEAD), site.browser()
    for browser, path in [(signed_in, "/"), (out, "/sign-in"), (signed_in, "/orders/none")]:
        headers = browser.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"
    for name in ("console.css", "console.js", "mark.svg"):
        assert "nosniff" in out.get(f"/static/{name}").headers["X-Content-Type-Options"]
    assert out.get("/static/../service.py").status == 404


def test_a_session_is_no_token_of_the_api(lead: Browser, quiet_bay: Bay) -> None:
    assert lead.get(f"/v1/orders/{quiet_bay.order}").status == 401


def test_another_teams_order_looks_like_one_that_is_not_there(
    stranger: Browser, quiet_bay: Bay
) -> None:
    there = stranger.get(f"/orders/{quiet_bay.order}")
    not_there = stranger.get("/orders/garage-nobody")

    assert there.status == not_there.status == 403
    assert TEAM not in there.page.text
    assert quiet_bay.order not in stranger.get("/").page.text


def test_a_session_may_follow_the_stream_of_its_teams_and_nobody_else_may(
    site: Site, lead: Browser, quiet_bay: Bay
) -> None:
    def events(browser: Browser) -> tuple[int, str]:
        url, cookies = f"{site.url}/v1/stream?order={quiet_bay.order}", browser.cookies
        with requests.get(url, cookies=cookies, stream=True, timeout=20) as answer:
            return answer.status_code, next(answer.iter_lines(decode_unicode=True), "")

    assert events(lead)[0] == 200
    assert events(lead)[1].startswith("id: ")
    assert events(site.browser())[0] == 401


def test_a_browser_whose_session_is_over_opens_the_forms_that_are_open_to_all(
    site: Site, quiet_bay: Bay
) -> None:
    browser = site.browser(LEAD)
    browser.take_cookies(dict.fromkeys(browser.cookies, "over"))

    answer = browser.get(f"/v1/orders/{quiet_bay.order}/changes/stage/form", allow_redirects=False)

    assert answer.status == 302, answer.text


def test_a_session_opens_the_forms_of_a_private_order(site: Site, bay: Bay) -> None:
    settings = site.running.settings
    admin = embedded_admin(settings.forge.url, site.running.embedded.state.folder)
    admin.api("PATCH", f"/repos/{bay.repo}", {"private": True})
    path = f"/v1/orders/{bay.order}/changes/stage/form"
    page = {"headers": {"Accept": "text/html"}, "allow_redirects": False}

    signed_in, nobody = (
        browser.get(path, **page) for browser in (site.browser(LEAD), site.browser())
    )

    assert signed_in.status == 302, signed_in.text
    assert "stage1" in signed_in.headers["Location"]
    assert nobody.status == 404
    assert "sign-in" in nobody.text
