"""
Pages call the API's operations in this process: same rights, same checks, same handlers.

An operation's caller is the page's, so what the API refuses somebody, the console refuses them in
the same words.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ground.errors import InvalidInputError, OrderkitError, SeveralProblemsError
from orderkit.web.console.rendering import html
from orderkit.web.console.sessions import SessionCaller
from orderkit.web.exchange import check
from orderkit.web.openapi_schemas import KEY, LABEL
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse

T = TypeVar("T")
_PAGE, _DIGITS = 50, 7
_NAMED = re.compile(r"\{(\w+)\}")


class ApiCalls:
    """The operations of one service."""

    def __init__(self, operations: Iterable[ServiceOperation]) -> None:
        self._operations = {operation.id: operation for operation in operations}

    def __contains__(self, operation_id: str) -> bool:
        return operation_id in self._operations

    def ask(
        self,
        service: Service,
        call: ServiceRequest,
        operation_id: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """
        Return an operation's answer for the page's caller, about what the page's address names.

        Raises:
            OrderkitError: What the operation raises.
        """
        operation = self._operations[operation_id]
        if operation.method != "GET":
            call.audit_fields["does"] = operation.id
        if operation.person:
            call.who.check_person()
        if operation.right is not None:
            call.who.teams(operation.right)
        path_values = {name: call.path[name] for name in _NAMED.findall(operation.path)}
        for name, value in path_values.items():
            check(value, LABEL, f"path.{name}")
        for name, value in (query or {}).items():
            check(value, operation.query[name], f"query.{name}")
        if operation.body is not None:
            check(body or {}, operation.body, "body")
        key = call.key if operation.keyed else ""
        if key:
            check(key, KEY, "key")
        request = ServiceRequest(
            call.who,
            body or {},
            path_values,
            query or {},
            key=key,
            audit_fields=call.audit_fields,
        )
        answer = operation.handler(service, request).body
        return json.loads(answer) if isinstance(answer, bytes) else answer


DONE = {
    "ordered": "It is ordered. This page follows it until it is Ready.",
    "committed": "It is committed. This page follows it until it is delivered and Ready.",
    "unchanged": "It has these values already: nothing was written.",
    "proposed": "It is proposed: merging it delivers it.",
    "merged": "It is merged. This page follows it until it is delivered and Ready.",
    "ended": "It has ended.",
    "approved": "Your approval is recorded; another approver still has to approve.",
    "delivered": "You approved it, and it is being delivered.",
    "declined": "It is withdrawn, and nothing of it was delivered.",
    "extended": "It is extended. The page shows it once it is delivered.",
}
"""What a page says after an action, by the word in its address: nobody else can put words there."""


def page(
    call: ServiceRequest, template: str, title: str, *, status: int = 200, **values: Any
) -> ServiceResponse:
    """Return a page of whoever is signed in."""
    caller = call.caller
    return ServiceResponse(
        status,
        html(
            template,
            title=title,
            session=caller.session if isinstance(caller, SessionCaller) else None,
            is_platform=caller is not None and caller.teams("read") is None,
            here=call.headers.get("at", ""),
            docs=call.headers.get("docs", ""),
            done=DONE.get(call.query.get("done", ""), ""),
            key=secrets.token_urlsafe(12),
            **values,
        ),
    )


def paged(call: ServiceRequest, items: Sequence[T]) -> tuple[Sequence[T], int, int]:
    """Return the items of the page that the address names, its number, and how many there are."""
    number = call.query.get("page", "")
    at = max(1, int(number)) if number.isdecimal() and len(number) < _DIGITS else 1
    return items[_PAGE * (at - 1) : _PAGE * at], at, -(-len(items) // _PAGE)


def redirect(address: str, **headers: str) -> ServiceResponse:
    """Lead a browser to another page, which it asks for with GET."""
    return ServiceResponse(303, None, {"Location": address, **headers})


def sentence(error: OrderkitError) -> dict[str, Any]:
    """Return an error for a page that shows it beside what it is about."""
    field = error.field if isinstance(error, InvalidInputError) else ""
    problems = error.problems if isinstance(error, SeveralProblemsError) else (error,)
    return {
        "problems": [
            {
                "field": problem.field,
                "value": problem.value,
                "rule": problem.rule,
                "hint": problem.form_hint or problem.hint,
            }
            for problem in problems
            if isinstance(problem, InvalidInputError)
        ],
        "message": str(error),
        "hint": error.form_hint or error.hint,
        "field": field,
        "status": error.http_status,
    }
