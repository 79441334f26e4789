"""
Requests in, answers out: what every handler of the service has in common.

Bodies are small JSON objects checked against a schema. Errors are short and readable as they
are, because a portal shows them only in a log line (observed on Backstage 1.55):
``{"error": {"message", "hint"}}``.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from orderkit.core import errors
from orderkit.core.names import check_requester
from orderkit.core.secrets import redact
from orderkit.ports.requesters import UNKNOWN, Requester, Requesters, UnprovedError

BODY_MAX_BYTES = 100_000
_STATUS: tuple[tuple[type[errors.OrderkitError], int], ...] = (
    (UnprovedError, 401),
    (errors.UsageError, 400),
    (errors.NotFoundError, 404),
    (errors.ConflictError, 409),
    (errors.RefusedError, 403),
    (errors.IncompleteError, 503),
    (errors.UnreachableError, 503),
    (errors.RemoteError, 502),
)
"""First match wins; anything else of ours is a 500 with its message."""


async def read_json(request: Request, schema: dict[str, Any]) -> dict[str, Any]:
    """
    Read a body.

    Raises:
        InvalidInputError: Too long, no JSON, or a field the schema refuses.
    """
    import jsonschema

    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_MAX_BYTES:
            raise errors.InvalidInputError("body", len(data), "bytes are too many")
    try:
        found: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise errors.InvalidInputError("body", data[:80], f"is no JSON: {error}") from error
    problem = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(found)
    )
    if problem is not None:
        field = ".".join(str(step) for step in problem.absolute_path) or "body"
        raise errors.InvalidInputError(field, problem.instance, f"is refused: {problem.message}")
    return found


def requester_of(request: Request, requesters: Requesters | None, claimed: str | None) -> Requester:
    """
    Return who asks: proved if a token came and somebody can check it, else as claimed.

    A token that is checked and proves nobody is never passed over. Checking may ask the portal
    for its keys: call it in a thread.

    Raises:
        UnprovedError: See above. UnreachableError: the portal's keys cannot be had.
        InvalidInputError: The claim is no catalog reference.
    """
    authorization = request.headers.get("authorization", "")
    if requesters is not None and authorization:
        return requesters.proved(authorization)
    return Requester(check_requester(claimed or UNKNOWN))


def refusal(error: errors.OrderkitError) -> JSONResponse:
    """Return the answer for an error of ours."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    return error_answer(status, str(error), error.hint)


def error_answer(status: int, message: str, hint: str) -> JSONResponse:
    """Return an error as every caller reads it: registered secrets masked."""
    body = {"message": redact(message), "hint": redact(hint)}
    return JSONResponse({"error": body}, status_code=status)
