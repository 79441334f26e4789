"""What an API server's refusals become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ground.errors import AccessError, ConflictError, NotFoundError, RemoteError
from orderkit.adapters.kube.transport import (
    BusyError,
    TerminatingNamespaceError,
    refusal,
    refusal_of_event,
)
from orderkit.ports.cluster import (
    ApplyConflictError,
    ExpiredError,
    InvalidObjectError,
    NoSuchKindError,
    NoSuchNamespaceError,
    WrongTypeError,
)

PLURAL = "/apis/g/v1/namespaces/n/things"
TYPED = "failed to create typed patch object (n/x; g/v1, Kind=Thing): .spec: expected map, got &{1}"


def status(reason: str, message: str = "why", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "reason": reason, "message": message, "details": details}


CASES = [
    ("object", 404, status("NotFound", kind="things", name="x"), PLURAL, NotFoundError),
    (
        "namespace",
        404,
        status("NotFound", kind="namespaces", name="n"),
        PLURAL,
        NoSuchNamespaceError,
    ),
    (
        "the namespace itself",
        404,
        status("NotFound", kind="namespaces", name="n"),
        "/api/v1/namespaces/n",
        NotFoundError,
    ),
    ("kind", 404, "404 page not found", PLURAL, NoSuchKindError),
    ("kind in a Status", 404, status("NotFound"), PLURAL, NoSuchKindError),
    ("exists", 409, status("AlreadyExists"), PLURAL, ConflictError),
    ("stale", 409, status("Conflict"), PLURAL, ConflictError),
    (
        "another field manager",
        409,
        status("Conflict", causes=[{"reason": "FieldManagerConflict"}]),
        PLURAL,
        ApplyConflictError,
    ),
    ("expired", 410, status("Expired"), PLURAL, ExpiredError),
    ("invalid", 422, status("Invalid"), PLURAL, InvalidObjectError),
    ("strict decoding", 400, status("BadRequest"), PLURAL, InvalidObjectError),
    ("wrong type", 500, status("InternalError", TYPED), PLURAL, WrongTypeError),
    ("broken", 500, status("InternalError"), PLURAL, BusyError),
    ("too many requests", 429, "slow down", PLURAL, BusyError),
    ("unauthenticated", 401, status("Unauthorized"), PLURAL, AccessError),
    ("forbidden", 403, status("Forbidden"), PLURAL, AccessError),
    (
        "dying namespace",
        403,
        status("Forbidden", causes=[{"reason": "NamespaceTerminating"}]),
        PLURAL,
        TerminatingNamespaceError,
    ),
    ("teapot", 418, "short and stout", PLURAL, RemoteError),
]


@pytest.mark.parametrize(
    ("code", "body", "path", "expected"),
    [pytest.param(code, body, path, error, id=r) for r, code, body, path, error in CASES],
)
def test_a_refusal_is_told_by_code_reason_and_text(
    code: int, body: object, path: str, expected: type[Exception]
) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    found = refusal(code, data, "POST", path)

    assert type(found) is expected
    assert str(found)


def test_a_foreign_body_is_cut() -> None:
    assert len(str(refusal(418, b"x" * 100_000, "GET", PLURAL))) < 2_100


def test_a_bad_question_is_no_bad_object() -> None:
    assert type(refusal(400, b"what?", "GET", PLURAL)) is RemoteError


def test_a_refusal_says_what_the_server_says_else_its_body_else_its_code() -> None:
    said = json.dumps({"message": "told"}).encode()

    assert str(refusal(418, said, "GET", PLURAL)) == "the API server answered 418: told"
    assert str(refusal(418, b" a page\n", "GET", PLURAL)) == "the API server answered 418: a page"
    assert str(refusal(418, b"", "GET", PLURAL)) == "the API server answered 418: HTTP 418"
    assert str(refusal(418, b"[1]", "GET", PLURAL)) == "the API server answered 418: [1]"


def test_an_event_without_a_code_is_a_failure_of_the_server() -> None:
    assert type(refusal_of_event({"message": "gone"})) is BusyError
    assert type(refusal_of_event({"code": 410, "message": "old"})) is ExpiredError


def test_credentials_that_are_not_valid_and_rights_that_are_missing_have_other_hints() -> None:
    def hint(code: int, reason: str = "") -> str:
        causes = [{"reason": reason}] if reason else []
        data = json.dumps(status("Forbidden", causes=causes)).encode()
        return refusal(code, data, "POST", PLURAL).hint

    assert "no longer valid" in hint(401)
    assert "ask for the right" in hint(403)
    assert "ask for the right" in hint(403, "Another")
    assert "until the namespace is gone" in hint(403, "NamespaceTerminating")
