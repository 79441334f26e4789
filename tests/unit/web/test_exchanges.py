"""What requests of programs are read as, what is refused, and how they are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from webrequests import asked

from ground import secrets
from ground.errors import (
    InvalidInputError,
    OrderkitError,
    RefusedError,
    SeveralProblemsError,
)
from orderkit.core.order.change.conflicts import Conflict
from orderkit.ports.requesters import UnprovedError
from orderkit.web.callers import CallerAccess
from orderkit.web.exchange import (
    BODY_MAX_BYTES,
    DEPTH_MAX,
    JsonExchange,
    Refusal,
    error_answer,
    parse_body,
    parse_query,
    read_body,
)
from orderkit.web.messages import Refused
from orderkit.web.operations import ServiceOperation, ServiceRequest, ServiceResponse

ACCESS = CallerAccess("s3cret", "X-Portal")
OBJECT: dict[str, Any] = {"type": "object"}
SIZE = {**OBJECT, "properties": {"size": {"type": "integer"}}, "required": ["size"]}


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


REFUSED: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "is not JSON"),
    "a field twice": (b'{"b": 1, "a": 2, "a": 3}', "'a' is given twice"),
    "a number that JSON lacks": (b'{"a": NaN}', "NaN is not a number of JSON"),
    "half a character": (b'{"a": "\\ud800"}', "is not JSON"),
    "a list": (b"[]", "is refused"),
    "one level too many": (nested(DEPTH_MAX + 1), f"deeper than {DEPTH_MAX} levels"),
    "levels without end": (b"[" * 200_000, "is not JSON"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_body_is_refused_by_its_beginning(case: str) -> None:
    data, rule = REFUSED[case]

    with pytest.raises(InvalidInputError, match=rule) as refused:
        parse_body(data, OBJECT)

    assert refused.value.field == "body"
    assert refused.value.value in (data[:80], [])


def test_a_body_of_as_many_levels_as_allowed_is_read() -> None:
    assert parse_body(nested(DEPTH_MAX), OBJECT) == json.loads(nested(DEPTH_MAX))


@pytest.mark.parametrize(
    ("body", "field"), [({}, "body"), ({"size": "x"}, "size"), ({"size": 3}, None)]
)
def test_a_body_that_its_schema_refuses_names_the_field(body: object, field: str | None) -> None:
    named = None
    try:
        parse_body(json.dumps(body).encode(), SIZE)
    except InvalidInputError as error:
        named = error.field

    assert named == field


def streamed(*chunks: bytes) -> Request:
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    waiting = iter([*messages, {"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(waiting)

    return Request(asked(method="POST").scope, receive)


def test_a_body_may_have_as_many_bytes_as_its_operation_reads() -> None:
    full = b"x" * BODY_MAX_BYTES

    assert asyncio.run(read_body(streamed(full[:10], full[10:]))) == full
    with pytest.raises(InvalidInputError, match="bytes are too many") as refused:
        asyncio.run(read_body(streamed(full, b"x")))
    assert (refused.value.field, refused.value.value) == ("body", BODY_MAX_BYTES + 1)
    assert asyncio.run(read_body(streamed(full, b"x"), max_bytes=BODY_MAX_BYTES + 1)) == full + b"x"


LABEL = {"type": "string", "maxLength": 3}


@pytest.mark.parametrize(
    ("path", "parameters", "told"),
    [
        ("/?team=a", {"team": LABEL}, ""),
        ("/", {"team": LABEL}, ""),
        ("/?kit=a", {"team": LABEL, "text": LABEL}, "query.kit=a (parameters: team, text)"),
        ("/?kit=a", {}, "query.kit=a (parameters: none)"),
        ("/?team=a&team=b", {"team": LABEL}, "query.team=b ()"),
        ("/?team=toolong", {"team": LABEL}, "query.team=toolong ()"),
    ],
)
def test_a_query_has_known_parameters_once(
    path: str, parameters: Mapping[str, Mapping[str, Any]], told: str
) -> None:
    refused = ""
    try:
        parse_query(asked(path), parameters)
    except InvalidInputError as error:
        refused = f"{error.field}={error.value} ({error.hint})"

    assert refused == told


FIELD = InvalidInputError("size", b"\xff7", "is odd", hint="--size 7", form_hint="type 7")


@pytest.mark.parametrize(
    ("error", "status", "hint", "details", "headers"),
    [
        (RefusedError("no", hint="ask"), 403, "ask", {}, {}),
        (UnprovedError("who?"), 401, "", {}, {"WWW-Authenticate": "Bearer"}),
        (FIELD, 400, "type 7", {"field": "size", "value": "\ufffd7", "rule": "is odd"}, {}),
        (
            SeveralProblemsError([FIELD, RefusedError("no", hint="ask")]),
            400,
            "",
            {
                "problems": [
                    {"message": str(FIELD), "hint": "type 7", "field": "size", "value": "\ufffd7",
                     "rule": "is odd"},
                    {"message": "no", "hint": "ask"},
                ]
            },
            {},
        ),
    ],
    ids=["refused", "unproved", "a field", "several"],
)  # fmt: skip
def test_an_error_tells_what_is_to_be_done_in_front_of_a_form(
    error: OrderkitError, status: int, hint: str, details: object, headers: object
) -> None:
    refusal = Refusal.of(error)

    told = refusal.error.to_json()
    message = told.pop("message")
    assert (refusal.status, told.pop("hint"), told) == (status, hint, details)
    assert dict(refusal.headers) == headers
    if isinstance(error, SeveralProblemsError):
        assert "type 7" in message
        assert "--size" not in message


def test_a_refused_value_is_told_as_text() -> None:
    refused = [Refusal.of(InvalidInputError("a", value, "is odd")) for value in (7, "7", "")]

    assert [refusal.error.to_json()["value"] for refusal in refused] == ["7", "7", ""]


def test_an_answer_has_no_registered_secret_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_forms", secrets._forms)  # noqa: SLF001 - of this process
    secrets.register("s3cr3ts3cr3t")
    conflict = Conflict("size", 1, {"of": ["s3cr3ts3cr3t"]}, 3, None, "", "")
    refused = Refused(message="a s3cr3ts3cr3t", hint="\ud800", conflicts=(conflict,))

    answer = error_answer(Refusal(400, refused, {"X-A": "b"}))

    error = json.loads(bytes(answer.body))["error"]
    assert (error["message"], error["hint"]) == ("a ***", "?")
    assert error["conflicts"][0]["now"] == {"of": ["***"]}
    assert answer.headers["x-a"] == "b"


def nothing(_service: Any, _call: ServiceRequest) -> ServiceResponse:
    return ServiceResponse(200, None)


def operation(**options: Any) -> ServiceOperation:
    return ServiceOperation("x", "GET", "/x", "", nothing, {}, None, **options)


KEYS = {"Idempotency-Key": "k1", "Last-Event-ID": "ab-7", "Authorization": "Bearer x"}


@pytest.mark.parametrize(
    ("options", "data", "read"),
    [
        ({}, b"ignored", ({}, "", "", b"")),
        ({"body": OBJECT}, b'{"a": 1}', ({"a": 1}, "", "", b"")),
        ({"keyed": True}, b"", ({}, "k1", "", b"")),
        ({"resumes": True}, b"", ({}, "", "ab-7", b"")),
        ({"hook": True, "body": OBJECT}, b"as it came", ({}, "", "", b"as it came")),
    ],
    ids=["nothing more", "a body", "a key", "an event", "a webhook"],
)
def test_a_program_is_read_as_far_as_its_operation_says(
    options: dict[str, Any], data: bytes, read: tuple[object, ...]
) -> None:
    request = asked("/x?team=ae86", headers=KEYS, values={"order": "garage-ae86"})

    call = JsonExchange(ACCESS).read(
        operation(query={"team": {"type": "string"}}, **options), request, data, None
    )

    assert (call.body, call.key, call.last_event, call.raw) == read
    assert (call.path, call.query) == ({"order": "garage-ae86"}, {"team": "ae86"})
    assert call.authorization == ("" if options.get("hook") else "Bearer x")
    assert bool(call.headers) is bool(options.get("hook"))


@pytest.mark.parametrize(
    ("options", "headers", "values", "field"),
    [
        ({}, {}, {"order": "Not A Label"}, "path.order"),
        ({"keyed": True}, {"Idempotency-Key": "a b"}, {}, "Idempotency-Key"),
        ({"resumes": True}, {"Last-Event-ID": "x" * 65}, {}, "Last-Event-ID"),
    ],
)
def test_what_a_program_names_is_plain(
    options: dict[str, Any], headers: dict[str, str], values: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        JsonExchange(ACCESS).read(
            operation(**options), asked("/x", headers=headers, values=values), b"", None
        )

    assert refused.value.field == field


def test_a_program_reads_a_refusal_as_json() -> None:
    refusal = Refusal(403, Refused(message="no", hint="ask", field="a"), {"X-A": "b"})

    answer = JsonExchange(ACCESS).refuse(asked(), refusal)

    assert (answer.status_code, answer.headers["x-a"]) == (403, "b")
    assert json.loads(bytes(answer.body)) == {
        "error": {"message": "no", "hint": "ask", "field": "a"}
    }


OWN = Response("own", 202)


@pytest.mark.parametrize(
    ("media", "body", "text", "kind"),
    [
        ("application/json", None, b"", None),
        ("application/json", {"a": 1}, b'{"a":1}', "application/json"),
        ("application/json", [1], b"[1]", "application/json"),
        ("application/json", b'{"a": 1}', b'{"a": 1}', "application/json"),
        ("text/plain", "a", b"a", "text/plain; charset=utf-8"),
        ("text/plain", {"a": 1}, b'{"a":1}', "application/json"),
    ],
)
def test_an_answer_is_written_in_the_media_type_of_its_operation(
    media: str, body: object, text: bytes, kind: str | None
) -> None:
    answer = ServiceResponse(201, body, {"X-A": "b"})

    response = JsonExchange(ACCESS).write(operation(media=media), answer)

    assert (response.status_code, bytes(response.body)) == (201, text)
    assert (response.headers.get("content-type"), response.headers["x-a"]) == (kind, "b")
    own = ServiceResponse(200, OWN)
    assert JsonExchange(ACCESS).write(operation(media=media), own) is OWN
