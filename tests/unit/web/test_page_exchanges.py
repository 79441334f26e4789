"""What a browser's requests are read as: its session, its forms, and where it is led."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request
from webrequests import asked

from ground.errors import (
    InvalidInputError,
    OrderkitError,
    RefusedError,
    SeveralProblemsError,
    UnreachableError,
)
from orderkit.ports.requesters import Requester, UnprovedError
from orderkit.web.callers import Caller, CallerAccess
from orderkit.web.console.page_exchange import (
    DONE,
    ApiCalls,
    PageExchange,
    SessionExchange,
    cookie,
    own_path,
    page,
    paged,
    read_form,
    sentence,
)
from orderkit.web.console.sessions import SessionCaller, Sessions
from orderkit.web.exchange import Refusal
from orderkit.web.operations import (
    ConsoleOptions,
    ServiceOperation,
    ServiceRequest,
    ServiceResponse,
)

ACCESS = CallerAccess("s3cret", "X-Portal")
OBJECT: dict[str, Any] = {"type": "object"}
FIELD = InvalidInputError("size", b"\xff7", "is odd", hint="--size 7", form_hint="type 7")
MISSING = InvalidInputError("name", None, "is missing", hint="--name")

ZOE = Requester("user:default/zoe", "a link", frozenset({"group:default/ae86"}))
SESSIONS = Sessions("a secret of the service", session_s=86_400)
COOKIE = SESSIONS.cookie(ZOE)
ADDRESS = "http://console.example.com:8080"


def pages(**options: Any) -> PageExchange:
    return PageExchange(ACCESS, ConsoleOptions(ADDRESS, **options), SESSIONS)


def browser(path: str = "/", *, method: str = "GET", **headers: str) -> Request:
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    return asked(path, method=method, headers=lines)


SIGNED_IN = {"cookie": f"orderkit-session-80={COOKIE}"}


def test_a_session_proves_who_a_browser_is() -> None:
    caller = pages().identify(asked(headers=SIGNED_IN))

    assert caller.proof == ZOE
    assert not caller.portal
    assert pages().shows_proof(asked(headers=SIGNED_IN))
    assert not pages().shows_proof(asked())
    with pytest.raises(UnprovedError, match="you are not signed in"):
        pages().identify(asked())


@pytest.mark.parametrize(
    ("options", "scheme", "name"),
    [
        ({}, "http", "orderkit-session-80"),
        ({}, "https", "__Host-orderkit-session"),
        ({"secure": True}, "http", "__Host-orderkit-session"),
    ],
)
def test_a_cookie_of_tls_is_of_this_host_alone(
    options: dict[str, Any], scheme: str, name: str
) -> None:
    assert pages(**options).cookie_name(asked(scheme=scheme), "session") == name


def nothing(_service: Any, _call: ServiceRequest) -> ServiceResponse:
    return ServiceResponse(200, None)


FORM = ServiceOperation(
    "x", "POST", "/x", "", nothing, {}, None, body=OBJECT, query={"a": {}}, page=True
)


def sent_form(csrf: str | None = None, **headers: str) -> ServiceRequest:
    caller = pages().identify(asked(headers=SIGNED_IN))
    assert isinstance(caller, SessionCaller)
    token = caller.session.csrf if csrf is None else csrf
    request = browser("/x?a=b", method="POST", **{**SIGNED_IN, **headers})
    data = f"csrf=old&csrf={token}&key=k1&text=one%0D%0Atwo&empty=".encode()
    return pages().read(FORM, request, data, caller)


OUR_ORIGINS = [
    {"origin": "http://orderkit.example.com"},
    {"origin": "http://ORDERKIT.example.com", "sec_fetch_site": "same-origin"},
    {"origin": ADDRESS},
]


@pytest.mark.parametrize("headers", OUR_ORIGINS)
def test_a_form_of_our_page_is_read(headers: dict[str, str]) -> None:
    call = sent_form(**headers)

    assert (call.body["text"], call.body["empty"], call.key) == (["one\ntwo"], [""], "k1")
    assert (call.headers["at"], call.headers["address"]) == ("/x?a=b", "192.0.2.1")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://other.example.com"},
        {"origin": ADDRESS, "sec_fetch_site": "cross-site"},
        {"origin": "http://orderkit.example.com", "sec_fetch_site": "same-site"},
        {"origin": "null", "host": ""},
    ],
    ids=["silent", "null", "another site", "another frame", "a sister", "no host"],
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="a page of another site"):
        sent_form(**headers)


def test_a_form_of_another_session_is_refused() -> None:
    with pytest.raises(RefusedError, match="not of your session"):
        sent_form(csrf="other", **OUR_ORIGINS[0])
    with pytest.raises(RefusedError, match="not of your session"):
        pages().read(FORM, browser(method="POST", **OUR_ORIGINS[0]), b"csrf=", None)


@pytest.mark.parametrize("data", [b"a=\xff", b"a=%ff", b"&".join([b"a=1"] * 3001)])
def test_what_is_no_form_is_refused_by_its_beginning(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read") as refused:
        read_form(data)

    assert refused.value.value == data[:80]


def test_a_form_has_at_most_three_thousand_fields() -> None:
    assert read_form(b"&".join([b"a=1"] * 3000)) == {"a": ["1"] * 3000}


@pytest.mark.parametrize(
    ("path", "method", "status", "leads_to"),
    [
        ("/", "GET", 401, "/sign-in"),
        ("/orders/x?a=b", "GET", 401, "/sign-in?onward=%2Forders%2Fx%3Fa%3Db"),
        ("/orders/x", "HEAD", 401, "/sign-in?onward=%2Forders%2Fx"),
        ("/orders/x", "POST", 401, None),
        ("/sign-in/link", "GET", 401, None),
        ("/orders/x", "GET", 403, None),
    ],
)
def test_who_is_not_signed_in_is_led_to_the_sign_in_and_back(
    path: str, method: str, status: int, leads_to: str | None
) -> None:
    headers = {"WWW-Authenticate": "Bearer", "Retry-After": "3"}
    refusal = Refusal.saying(status, "no", "", headers)

    answer = pages().refuse(browser(path, method=method), refusal)

    assert answer.headers.get("location") == leads_to
    assert answer.status_code == (303 if leads_to else status)
    assert "www-authenticate" not in answer.headers
    assert leads_to or answer.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        ("http://orderkit.example.com/orders/x?a=b", "/orders/x?a=b"),
        ("http://ORDERKIT.example.com/orders", "/orders"),
        ("http://other.example.com/orders/x", "/"),
        ("http://orderkit.example.com//other.example.com", "/"),
        ("", "/"),
    ],
)
def test_an_error_leads_back_to_a_page_of_ours(referer: str, back: str) -> None:
    answer = pages().refuse(browser(referer=referer), Refusal.saying(403, "no", ""))

    assert f'href="{back}"' in bytes(answer.body).decode()


def test_an_error_shows_who_is_signed_in() -> None:
    shown, alone = (
        bytes(pages().refuse(asked(headers=headers), Refusal.saying(403, "no", "")).body).decode()
        for headers in (SIGNED_IN, {})
    )

    assert "zoe" in shown
    assert "zoe" not in alone


def test_a_page_sets_each_of_its_cookies() -> None:
    page = ServiceResponse(303, None, {"Set-Cookie": "a=1\nb=2", "Location": "/"})

    answer = pages().write(FORM, page)

    assert answer.headers.getlist("set-cookie") == ["a=1", "b=2"]
    assert (bytes(answer.body), answer.headers["location"]) == (b"", "/")


@pytest.mark.parametrize(
    ("headers", "who"),
    [
        (SIGNED_IN, ZOE.ref),
        ({"X-Portal": "s3cret"}, "portal"),
        ({**SIGNED_IN, "X-Portal": "s3cret"}, "portal"),
    ],
)
def test_a_stream_is_followed_by_a_session_unless_a_token_is_shown(
    headers: dict[str, str], who: str
) -> None:
    exchange, request = SessionExchange(ACCESS, pages()), asked(headers=headers)

    assert exchange.shows_proof(request)
    assert exchange.identify(request).name == who


def test_a_stream_without_any_proof_is_refused_as_a_programs_request() -> None:
    exchange = SessionExchange(ACCESS, pages())

    assert not exchange.shows_proof(asked())
    with pytest.raises(UnprovedError, match="neither X-Portal nor a token"):
        exchange.identify(asked())


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/orders?a=b", "/orders?a=b"),
        ("orders", "/"),
        ("//other.example.com", "/"),
        ("/\\other.example.com", "/"),
        ("/a\\b", "/"),
        ("/a\nb", "/"),
        ("/ä", "/"),
        ("https://other.example.com", "/"),
    ],
)
def test_a_browser_is_led_to_paths_of_this_host_only(text: str, path: str) -> None:
    assert own_path(text) == path


def test_a_cookie_without_a_value_is_removed() -> None:
    flags = "HttpOnly; SameSite=Lax"

    assert cookie("a", "1", secure=False, max_age_s=9) == f"a=1; Path=/; Max-Age=9; {flags}"
    assert cookie("a", "", secure=True, max_age_s=9) == f"a=; Path=/; Max-Age=0; {flags}; Secure"


@pytest.mark.parametrize(
    ("page", "items", "at"),
    [
        ("", range(50), 1),
        ("0", range(50), 1),
        ("2", range(50, 100), 2),
        ("3", range(100, 101), 3),
        ("4", range(0), 4),
        ("x", range(50), 1),
        ("999999", range(0), 999_999),
        ("1000000", range(50), 1),
    ],
)
def test_a_page_has_fifty_items(page: str, items: range, at: int) -> None:
    call = ServiceRequest(None, {}, {}, {"page": page} if page else {})

    assert paged(call, range(101)) == (items, at, 3)


def test_a_full_page_is_the_last_one() -> None:
    assert paged(ServiceRequest(None, {}, {}, {}), range(100))[2] == 2


SAID: dict[str, tuple[OrderkitError, str, str, list[dict[str, Any]]]] = {
    "of no field": (UnreachableError("no answer", hint="wait"), "", "wait", []),
    "of a field": (
        FIELD,
        "size",
        "type 7",
        [{"field": "size", "value": b"\xff7", "rule": "is odd", "hint": "type 7"}],
    ),
    "of several, one without a field": (
        SeveralProblemsError([RefusedError("no"), MISSING]),
        "",
        "",
        [{"field": "name", "value": None, "rule": "is missing", "hint": "--name"}],
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_a_page_says_an_error_beside_the_fields_it_is_about(case: str) -> None:
    error, field, hint, problems = SAID[case]

    told = sentence(error)

    assert (told["field"], told["hint"], told["problems"]) == (field, hint, problems)
    assert (told["message"], told["status"]) == (str(error), error.http_status)


def echo(_service: Any, call: ServiceRequest) -> ServiceResponse:
    """Answer with what the operation was asked."""
    seen = {"path": dict(call.path), "query": dict(call.query), "body": dict(call.body)}
    return ServiceResponse(200, {**seen, "key": call.key})


def as_bytes(service: Any, call: ServiceRequest) -> ServiceResponse:
    return ServiceResponse(200, json.dumps(echo(service, call).body).encode())


def asks(caller: Caller, key: str = "", **path: str) -> ServiceRequest:
    return ServiceRequest(caller, {}, {"order": "garage-a", "other": "x", **path}, {}, key=key)


EVERYBODY = Caller(ACCESS, portal=True, proof=None)
READS = ServiceOperation(
    "reads", "GET", "/o/{order}", "", echo, {}, "read", query={"limit": {"pattern": "^[0-9]+$"}}
)
WRITES = ServiceOperation(
    "writes", "POST", "/o/{order}", "", as_bytes, {}, "change",
    body={**OBJECT, "required": ["size"]}, keyed=True, person=True,
)  # fmt: skip
OPEN = ServiceOperation("open", "POST", "/o", "", echo, {}, None, body=OBJECT)
API = ApiCalls([READS, WRITES, OPEN])
NO_SERVICE: Any = None


def test_a_page_asks_the_api_about_what_its_address_names() -> None:
    read, write, opened = asks(EVERYBODY, "k1"), asks(EVERYBODY, "k1"), asks(EVERYBODY, "k1")
    path = {"order": "garage-a"}

    answers = [
        API.ask(NO_SERVICE, read, "reads", query={"limit": "7"}),
        API.ask(NO_SERVICE, write, "writes", body={"size": 3}),
        API.ask(NO_SERVICE, opened, "open"),
    ]

    assert answers == [
        {"path": path, "query": {"limit": "7"}, "body": {}, "key": ""},
        {"path": path, "query": {}, "body": {"size": 3}, "key": "k1"},
        {"path": {}, "query": {}, "body": {}, "key": ""},
    ]
    assert [call.audit_fields for call in (read, write, opened)] == [
        {},
        {"does": "writes"},
        {"does": "open"},
    ]
    assert "reads" in API
    assert "none" not in API


READER = Caller(
    ACCESS,
    portal=False,
    proof=Requester("user:default/zoe", "t", frozenset(), frozenset({"read"})),
)
SIGNING = Caller(CallerAccess("s", "X", persons=True), portal=True, proof=None)


@pytest.mark.parametrize(
    ("call", "operation", "asked_for", "refusal"),
    [
        (asks(READER), "writes", {"body": {"size": 3}}, "lacks the right 'change'"),
        (asks(SIGNING), "writes", {"body": {"size": 3}}, "the requester is not proved"),
        (asks(EVERYBODY, order="Not a label"), "reads", {}, "path.order"),
        (asks(EVERYBODY), "reads", {"query": {"limit": "x"}}, "query.limit"),
        (asks(EVERYBODY), "writes", {"body": {}}, "'size' is a required property"),
        (asks(EVERYBODY, "not a key"), "writes", {"body": {"size": 3}}, "key"),
    ],
)
def test_a_page_may_ask_no_more_than_a_program(
    call: ServiceRequest, operation: str, asked_for: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(OrderkitError, match=refusal):
        API.ask(NO_SERVICE, call, operation, **asked_for)


def test_an_operation_that_needs_no_right_is_asked_by_everybody() -> None:
    assert API.ask(NO_SERVICE, asks(READER), "open")["key"] == ""


def signed_in(*, everywhere: bool) -> Caller:
    cookie = SESSIONS.cookie(replace(ZOE, everywhere=everywhere))
    return pages().identify(asked(headers={"cookie": f"orderkit-session-80={cookie}"}))


@pytest.mark.parametrize(
    ("caller", "names", "links"),
    [
        (None, False, False),
        (signed_in(everywhere=False), True, False),
        (signed_in(everywhere=True), True, True),
        (EVERYBODY, False, False),
    ],
    ids=["nobody", "a person", "of the platform", "a program"],
)
def test_a_page_shows_who_is_signed_in_and_what_was_done(
    caller: Caller | None, names: object, links: object
) -> None:
    call = ServiceRequest(caller, {}, {}, {"done": "ordered"}, headers={"at": "/x"})
    own: dict[str, Any] = {"provider": "", "links": False, "onward": "/", "is_over": False}

    answer = page(call, "sign_in.html", "Sign in", status=202, **own)
    unknown = page(replace(call, query={"done": "hacked"}), "sign_in.html", "Sign in", **own)

    assert answer.status == 202
    assert ("zoe" in answer.body) is names
    assert ('href="/platform"' in answer.body) is links
    assert DONE["ordered"] in answer.body
    assert "hacked" not in unknown.body
