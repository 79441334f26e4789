"""
``http:backstage:request``: one HTTP request through the portal.

Like Roadie's action, with one difference: if the service refuses, the error contains the status
and the service's short message, not only "Unable to complete request". ``idempotencyKey`` and
``useBackstageToken`` configure the portal's task recovery and tokens, and have no effect here.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

from ground.errors import InvalidInputError, RemoteError, shorten
from orderkit.flows.template.actions.action_context import (
    ANYTHING,
    FLAG,
    MAP,
    NUMBER,
    TEXT,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from orderkit.ports.portal import PortalResponse
from softwaretemplates.render.javascript import text, to_json

_METHODS = ["GET", "HEAD", "OPTIONS", "POST", "UPDATE", "DELETE", "PUT", "PATCH"]
_BAD = 400
_ILLEGAL = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
"""A character that HTTP does not allow in a header, as in npm's node-fetch."""


class RequestFailedError(RemoteError):
    """The service answered with an error status."""

    def __init__(self, message: str, *, code: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def _request(context: ActionContext, inputs: Inputs) -> Outputs:
    path = inputs["path"] if inputs["path"].startswith("/") else f"/{inputs['path']}"
    if inputs.get("logRequestPath", True):
        context.log(f"{inputs['method']} {path}")
    query = urlencode({key: text(value) for key, value in inputs.get("params", {}).items()})
    headers = {name: text(value) for name, value in inputs.get("headers", {}).items()}
    illegal = [value for value in headers.values() if _ILLEGAL.search(value)]
    if illegal:  # a template's own sentence may fail a task this way (core.portal.refusal_step)
        raise RemoteError(f"{shorten(illegal[0], limit=1_000)} is not a legal HTTP header value")
    response = context.services.portal.request(
        inputs["method"],
        f"{path}?{query}" if query else path,
        headers=headers,
        body=_body(inputs.get("body"), headers),
        timeout_s=inputs.get("timeout", 60_000) / 1000,
    )
    body = _parsed(response)
    if response.code >= _BAD:
        failure = _failure(inputs["method"], path, response.code, body)
        context.log(str(failure))
        if not inputs.get("continueOnBadResponse"):
            raise failure
        return {"code": response.code, "headers": {}, "body": body}
    return {"code": response.code, "headers": dict(response.headers), "body": body}


def _body(value: Any, headers: dict[str, str]) -> bytes | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value.encode()
    kinds = [content.lower() for name, content in headers.items() if name.lower() == "content-type"]
    if not any("json" in kind for kind in kinds):
        raise InvalidInputError(
            "body",
            value,
            "is not text and no JSON content type is set",
            hint="add the header content-type: application/json; the portal would send "
            "'[object Object]'",
        )
    return str(to_json(value)).encode()


def _parsed(response: PortalResponse) -> Any:
    if "application/json" not in response.headers.get("content-type", ""):
        return {"message": response.body.decode(errors="replace")}
    try:
        return json.loads(response.body) if response.body else {}
    except ValueError as error:
        raise RemoteError(
            f"the service announced JSON and sent {shorten(repr(response.body[:200]))}"
        ) from error


def _failure(method: str, path: str, code: int, body: Any) -> RequestFailedError:
    message, hint = _words(body)
    return RequestFailedError(
        f"{method} {path}: the service answered {code}: {message}", code=code, hint=hint
    )


def _words(body: Any) -> tuple[str, str]:
    """Find the readable message, and a hint, in a service's error body."""
    if isinstance(body, dict):
        error = body.get("error")
        inner = error if isinstance(error, dict) else body
        message = inner.get("message") or (error if isinstance(error, str) else "")
        hint = inner.get("hint")
        if isinstance(message, str) and message:
            return shorten(message, limit=500), shorten(hint) if isinstance(hint, str) else ""
    return shorten(json.dumps(body, ensure_ascii=False)), ""


HTTP_BACKSTAGE_REQUEST = TemplateAction(
    "http:backstage:request",
    inputs_schema(
        ("path", "method"),
        path=TEXT,
        method={"enum": _METHODS},
        headers=MAP,
        params=MAP,
        body=ANYTHING,
        logRequestPath=FLAG,
        continueOnBadResponse=FLAG,
        timeout=NUMBER,
        useBackstageToken=FLAG,
        idempotencyKey=TEXT,
    ),
    _request,
    outputs_schema(code=NUMBER, headers=MAP, body=ANYTHING),
    remote=True,
)
