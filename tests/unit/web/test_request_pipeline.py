"""How a request is let in, limited, carried out and answered, whatever its handler does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from bareplatform import platform_of
from starlette.requests import Request
from webrequests import asked

from ground.errors import InProgressError, NotFoundError, RefusedError, UnreachableError
from orderkit.ports.requesters import Requester, UnprovedError
from orderkit.web.callers import CallerAccess
from orderkit.web.exchange import BODY_MAX_BYTES
from orderkit.web.metrics import Metrics
from orderkit.web.operations import (
    Service,
    ServiceOperation,
    ServiceOptions,
    ServiceRequest,
    ServiceResponse,
)
from orderkit.web.request_pipeline import RequestPipeline

OBJECT: dict[str, Any] = {"type": "object"}
OURS = {"X-Portal": "s3cret"}


class Tokens:
    """A provider whose keys cannot be had now for one token."""

    def describe(self) -> str:
        return "one token"

    def proved(self, authorization: str) -> Requester:
        if authorization == "Bearer later":
            raise UnreachableError("the keys cannot be had now")
        if authorization != "Bearer eve":
            raise UnprovedError("the token is not ours")
        return Requester("user:default/eve", "a token", frozenset(), frozenset({"read"}))


def fine(_service: Service, call: ServiceRequest) -> ServiceResponse:
    call.audit_fields["team"] = "ae86"
    return ServiceResponse(200, {"caller": call.caller.name if call.caller else None})


def operation(handler: Callable[..., ServiceResponse] = fine, **parts: Any) -> ServiceOperation:
    right = parts.pop("right", "read")
    return ServiceOperation("x", "GET", "/x", "", handler, {}, right, **parts)


def pipeline(**options: Any) -> RequestPipeline:
    persons = options.pop("persons", False)
    access = CallerAccess("s3cret", "X-Portal", Tokens(), persons=persons)
    nothing: Any = None
    service = Service(
        platform_of(None), ServiceOptions(access, **options), Metrics(), nothing, nothing
    )
    return RequestPipeline(service)


def sent(request: Request, *messages: dict[str, Any]) -> Request:
    waiting = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(waiting)

    return Request(request.scope, receive)


def answered(
    of: ServiceOperation, request: Request | None = None, to: RequestPipeline | None = None
) -> tuple[int, Any, dict[str, Any]]:
    """Return the status, the body, and the audit entry of an answer."""
    request = request or asked("/x", headers=OURS)
    response = asyncio.run((to or pipeline()).answer(of, request))
    body = json.loads(bytes(response.body) or b"null")
    return response.status_code, body, request.scope["orderkit.audit"]


def raising(error: Exception) -> Callable[..., ServiceResponse]:
    def handler(_service: Service, call: ServiceRequest) -> ServiceResponse:
        call.audit_fields["team"] = "ae86"
        raise error

    return handler


@pytest.mark.parametrize(
    ("headers", "parts", "caller"),
    [
        (OURS, {}, "portal"),
        ({"Authorization": "Bearer eve"}, {}, "user:default/eve"),
        (OURS, {"right": None}, None),
        (OURS, {"right": None, "optional": True}, "portal"),
        ({}, {"right": None, "optional": True}, None),
    ],
)
def test_a_request_is_answered_for_its_caller(
    headers: dict[str, str], parts: dict[str, Any], caller: str | None
) -> None:
    request = asked("/x", headers=headers, values={"order": "garage-a"})

    status, body, audit = answered(operation(**parts), request)

    assert (status, body) == (200, {"caller": caller})
    assert (audit["operation"], audit["order"], audit["team"]) == ("x", "garage-a", "ae86")
    assert audit.get("caller") == caller
    assert ("via" in audit) is (caller is not None)
    assert "reason" not in audit


@pytest.mark.parametrize(
    ("headers", "parts", "options", "status", "reason", "counted"),
    [
        ({}, {}, {}, 401, "the request has neither X-Portal nor a token", "unproved"),
        ({"Authorization": "Bearer x"}, {}, {}, 401, "the token is not ours", "unproved"),
        ({"Authorization": "Bearer later"}, {}, {}, 503, "the keys cannot be had now", ""),
        (
            {"Authorization": "Bearer eve"},
            {"right": "change"},
            {},
            403,
            "user:default/eve lacks the right 'change'",
            "forbidden",
        ),
        (OURS, {"person": True}, {"persons": True}, 401, "the requester is not proved", "unproved"),
        (OURS, {"handler": raising(NotFoundError("no such order"))}, {}, 404, "no such order", ""),
        (OURS, {"handler": raising(RefusedError("no"))}, {}, 403, "no", "forbidden"),
        (OURS, {"handler": raising(InProgressError("wait"))}, {}, 503, "wait", ""),
        (OURS, {"handler": raising(ZeroDivisionError())}, {}, 500, "bug: ZeroDivisionError", ""),
    ],
)
def test_a_refusal_is_counted_and_its_reason_is_in_the_audit_log(
    headers: dict[str, str],
    parts: dict[str, Any],
    options: dict[str, Any],
    *,
    status: int,
    reason: str,
    counted: str,
) -> None:
    to = pipeline(**options)

    found, body, audit = answered(operation(**parts), asked("/x", headers=headers), to)

    assert (found, audit["reason"].startswith(reason)) == (status, True)
    assert set(body) == {"error"}
    figures = to._service.metrics.text()  # noqa: SLF001 - what /metrics shows of it
    assert f'orderkit_requests_total{{operation="x",status="{status}"}} 1' in figures
    refused = [line for line in figures.splitlines() if line.startswith("orderkit_refused_total{")]
    assert refused == [f'orderkit_refused_total{{reason="{counted}"}} 1'] * bool(counted)
    assert "orderkit_requests_in_progress 0" in figures
    assert audit.get("team") == ("ae86" if "handler" in parts else None)


def test_a_bug_is_told_with_the_id_to_report(caplog: pytest.LogCaptureFixture) -> None:
    _, body, audit = answered(operation(raising(ZeroDivisionError("secret detail"))))

    assert body["error"]["message"] == "this is a bug in Orderkit"
    assert audit["request"] in body["error"]["hint"]
    assert "secret detail" not in json.dumps(body)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("messages", "status", "words"),
    [
        ([{"type": "http.request", "body": b"x" * (BODY_MAX_BYTES + 1)}], 400, "too many"),
        ([{"type": "http.disconnect"}], 400, "the request has no end"),
        ([{"type": "http.request", "body": b"["}], 400, "is not JSON"),
    ],
)
def test_a_body_that_is_none_is_refused(
    messages: list[dict[str, Any]], status: int, words: str
) -> None:
    request = sent(asked("/x", headers=OURS), *messages)

    found, body, audit = answered(operation(body=OBJECT), request)

    assert (found, words in body["error"]["message"]) == (status, True)
    assert audit["reason"]


def test_a_webhook_may_send_a_larger_body() -> None:
    large = {"type": "http.request", "body": b"x" * (BODY_MAX_BYTES + 1)}

    hook = operation(body=OBJECT, hook=True, right=None)

    assert answered(hook, sent(asked("/x"), large))[0] == 200


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        (OURS, "portal"),
        ({"Authorization": "Bearer eve"}, "user:default/eve"),
        ({"Authorization": "Bearer x"}, "address 192.0.2.1"),
        ({"Authorization": "Bearer later"}, "address 192.0.2.1"),
        ({}, "address 192.0.2.1"),
    ],
)
def test_too_many_requests_are_refused_by_caller_or_by_address(
    headers: dict[str, str], named: str
) -> None:
    to = pipeline(requests_per_minute=6)

    async def ask() -> list[Any]:
        request = asked("/x", headers=headers)
        return [await to.answer(operation(), request) for _ in range(7)]

    answers = asyncio.run(ask())

    first, last = answers[0], answers[-1]
    assert (first.status_code == 429, last.status_code) == (False, 429)
    assert json.loads(bytes(last.body))["error"]["message"] == f"too many requests of {named}"
    assert 1 <= int(last.headers["retry-after"]) <= 11
    figures = to._service.metrics.text()  # noqa: SLF001 - what /metrics shows of it
    assert 'orderkit_refused_total{reason="limited"} 2' in figures


def test_a_probe_has_no_limit_and_no_caller() -> None:
    to = pipeline(requests_per_minute=6)
    probe = operation(inline=True, right=None)

    async def ask() -> set[int]:
        return {(await to.answer(probe, asked("/x"))).status_code for _ in range(20)}

    assert asyncio.run(ask()) == {200}


def test_a_slow_operation_is_answered_in_time_and_goes_on() -> None:
    done: list[str] = []

    def slowly(_service: Service, _call: ServiceRequest) -> ServiceResponse:
        time.sleep(0.2)
        done.append("done")
        return ServiceResponse(200, None)

    to = pipeline(answer_s=0.02)
    status, body, _ = answered(operation(slowly, slow=True), None, to)
    patient = answered(operation(slowly), None, to)

    assert (status, body["error"]["message"]) == (503, "not finished after 0.02 s")
    assert (patient[0], done) == (200, ["done", "done"])
