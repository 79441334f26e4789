"""
Read requests and write answers, for every handler of the service.

Bodies are small JSON objects, checked against the schema that the OpenAPI document shows. Errors
are short and readable as they are, because a portal shows them only in a log line (observed on
Backstage 1.55): ``{"error": {"message", "hint"}}``, with ``field``, ``value`` and ``rule`` where
one field is to blame.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ground import errors
from ground.secrets import redact
from ground.strict_schemas import first_problem
from orderkit.core.order.change import FieldConflictError
from orderkit.web.callers import Caller, CallerAccess, identify
from orderkit.web.messages import Error, Problem, Refused
from orderkit.web.openapi_schemas import KEY, LABEL, POSITION
from orderkit.web.operations import ServiceOperation, ServiceRequest, ServiceResponse
from yamlfiles.manifests import depth_exceeds

DEPTH_MAX = 64
"""Bound on lists and maps inside each other, as in YAML (``yamlfiles.manifests``)."""
BODY_MAX_BYTES, HOOK_MAX_BYTES = 100_000, 2_000_000


async def read_body(request: Request, *, max_bytes: int = BODY_MAX_BYTES) -> bytes:
    """
    Read a body.

    Raises:
        InvalidInputError: Too long.
    """
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > max_bytes:
            raise errors.InvalidInputError("body", len(data), "bytes are too many")
    return data


def parse_body(data: bytes, schema: Mapping[str, Any]) -> dict[str, Any]:
    """
    Read JSON and check it.

    Raises:
        InvalidInputError: No JSON, a duplicate key, invalid Unicode, nested too deeply, or the
            schema refuses a field.
    """
    try:
        body = json.loads(data, object_pairs_hook=_once, parse_constant=_no_number)
        json.dumps(
            body, ensure_ascii=False
        ).encode()  # refuses a lone surrogate, which is not a valid text
    except (ValueError, RecursionError) as error:
        raise errors.InvalidInputError("body", data[:80], f"is not JSON: {error}") from error
    if depth_exceeds(body, DEPTH_MAX):
        raise errors.InvalidInputError(
            "body", data[:80], f"is nested deeper than {DEPTH_MAX} levels", hint="flatten it"
        )
    check(body, schema, "body")
    checked: dict[str, Any] = body
    return checked


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{twice}' is given twice")
    return values


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def parse_query(request: Request, parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """
    Read the query.

    Raises:
        InvalidInputError: An unknown or duplicate parameter, or its schema refuses a value.
    """
    values: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in parameters:
            rule = "is not a parameter of this operation"
            raise errors.InvalidInputError(
                f"query.{name}", value, rule, hint=_parameter_list(parameters)
            )
        if name in values:
            raise errors.InvalidInputError(f"query.{name}", value, "is given twice")
        check(value, parameters[name], f"query.{name}")
        values[name] = value
    return values


def _parameter_list(parameters: Mapping[str, object]) -> str:
    return f"parameters: {', '.join(parameters) or 'none'}"


def check(value: Any, schema: Mapping[str, Any], field: str) -> None:
    """
    Check a value against its schema.

    Raises:
        InvalidInputError: The schema refuses it; the field within is named.
    """
    problem = first_problem(schema, value)
    if problem is not None:
        path = ".".join(str(step) for step in problem.absolute_path)
        rule = f"is refused: {errors.shorten(problem.message)}"
        raise errors.InvalidInputError(path or field, problem.instance, rule)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as every caller may read it, still with registered secrets."""

    status: int
    error: Refused
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def saying(
        cls, status: int, message: str, hint: str, headers: Mapping[str, str] = {}
    ) -> Refusal:
        """Return a refusal for which there is no error of ours."""
        return cls(status, Refused(message=message, hint=hint), headers)

    @classmethod
    def of(cls, error: errors.OrderkitError) -> Refusal:
        """Return what an error of ours says."""
        told = _told(error)
        if isinstance(error, errors.SeveralProblemsError):
            problems = tuple(Problem(**_told(problem)) for problem in error.problems)
            told |= {"message": error.form_message, "problems": problems}
        if isinstance(error, FieldConflictError):
            conflicts = tuple(conflict.answer for conflict in error.conflicts)
            told |= {"conflicts": conflicts, "head": error.head}
        status = error.http_status
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}  # noqa: PLR2004 - HTTP's
        return cls(status, Refused(**told), headers)


class Exchange(Protocol):
    """How one kind of caller is recognised, read and answered."""

    def shows_proof(self, request: Request) -> bool:
        """Say whether a request tries to prove its caller."""
        ...

    def identify(self, request: Request) -> Caller:
        """
        Return the caller. May ask a portal or provider for its keys: call it in a thread.

        Raises:
            UnprovedError: Nothing proves one. UnreachableError: It cannot be checked now.
        """
        ...

    def read(
        self, operation: ServiceOperation, request: Request, data: bytes, caller: Caller | None
    ) -> ServiceRequest:
        """
        Return the checked request.

        Raises:
            OrderkitError: It is refused.
        """
        ...

    def write(self, operation: ServiceOperation, answer: ServiceResponse) -> Response: ...

    def refuse(self, request: Request, refusal: Refusal) -> Response: ...


class JsonExchange:
    """Programs and portals: headers prove the caller, bodies are JSON."""

    def __init__(self, access: CallerAccess) -> None:
        self._access = access

    def shows_proof(self, request: Request) -> bool:
        return any(name in request.headers for name in (self._access.header, "authorization"))

    def identify(self, request: Request) -> Caller:
        return identify(request, self._access)

    def read(
        self, operation: ServiceOperation, request: Request, data: bytes, caller: Caller | None
    ) -> ServiceRequest:
        path = read_path(request)
        query = parse_query(request, operation.query)
        if operation.hook:
            return ServiceRequest(caller, {}, path, query, raw=data, headers=dict(request.headers))
        body = parse_body(data, operation.body) if operation.body is not None else {}
        key = request.headers.get("idempotency-key", "") if operation.keyed else ""
        if key:
            check(key, KEY, "Idempotency-Key")
        last_event = request.headers.get("last-event-id", "") if operation.resumes else ""
        check(last_event, POSITION, "Last-Event-ID")
        authorization = request.headers.get("authorization", "")
        return ServiceRequest(caller, body, path, query, authorization, key, last_event)

    def write(self, operation: ServiceOperation, answer: ServiceResponse) -> Response:
        if answer.body is None:
            return Response(status_code=answer.status, headers=dict(answer.headers))
        if isinstance(answer.body, Response):
            return answer.body
        is_json = operation.media == "application/json" and not isinstance(answer.body, bytes)
        if is_json or isinstance(answer.body, dict):
            return JSONResponse(answer.body, answer.status, dict(answer.headers))
        return Response(answer.body, answer.status, dict(answer.headers), operation.media)

    def refuse(self, request: Request, refusal: Refusal) -> Response:
        del request
        return error_answer(refusal)


def read_path(request: Request) -> dict[str, str]:
    """
    Return the parameters of the path.

    Raises:
        InvalidInputError: One is not a label.
    """
    path = {name: str(value) for name, value in request.path_params.items()}
    for name, value in path.items():
        check(value, LABEL, f"path.{name}")
    return path


def _told(error: errors.OrderkitError) -> dict[str, Any]:
    """Return the fields of a `Problem`."""
    told: dict[str, Any] = {"message": str(error), "hint": error.form_hint or error.hint}
    if isinstance(error, errors.InvalidInputError):
        told |= {"field": error.field, "value": _value_text(error.value), "rule": error.rule}
    return told


def _value_text(value: object) -> str:
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return errors.shorten(text if isinstance(text, str) else repr(text))


def error_answer(refusal: Refusal) -> JSONResponse:
    """Return an error as every caller reads it: registered secrets masked."""
    body = without_registered(Error(refusal.error).to_json())
    return JSONResponse(body, refusal.status, dict(refusal.headers))


def without_registered(value: Any) -> Any:
    """Return a value of JSON with registered secrets masked."""
    if isinstance(value, str):
        return redact(value.encode(errors="replace").decode())
    if isinstance(value, list):
        return [without_registered(item) for item in value]
    if isinstance(value, dict):
        return {key: without_registered(item) for key, item in value.items()}
    return value
