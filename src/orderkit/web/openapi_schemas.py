"""
The service's OpenAPI 3.1 document, made from the table that also checks requests, and its schemas.

`document` is deterministic; ``docs/openapi.json`` is a committed copy
(``scripts/service_docs.py``). Served at ``/openapi.json`` without proof of who asks: it holds
nothing of a platform.

Here are the JSON Schemas of parameters of paths and queries, and all answers by name. Bodies and
answers are declared in ``messages`` and the flows; what no class has is written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, get_args

from ground.shapes import answer_schemas, json_schema
from kubeschema.validate.findings import FindingAnswer
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import CURSOR_MAX, SORTS, ListedOrder, OrderRow, OrderView
from orderkit.core.plan.cost_statement import StatementAnswer
from orderkit.flows.approval.deciding import Decided
from orderkit.flows.change.reviewing import Merged
from orderkit.flows.lease.extending import LeaseAnswer
from orderkit.flows.order.activity import Activity
from orderkit.flows.order.order_history import History
from orderkit.flows.order.registering import Registered
from orderkit.web.messages import (
    Approvals,
    Campaigns,
    Changed,
    End,
    EndPreview,
    Error,
    Events,
    Gate,
    Kits,
    KitTeams,
    Orders,
    Planned,
    Position,
    Ready,
    Revealed,
    SettingsAnswer,
    Taken,
    TaskDone,
    Team,
    Trace,
)
from orderkit.web.operations import Schema, ServiceOperation

TEXT: dict[str, Any] = {"type": "string"}
FLAG: dict[str, Any] = {"type": "boolean"}
_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL: dict[str, Any] = {"type": "string", "maxLength": 63, "pattern": _NAME}
"""An RFC 1123 label: orders, teams, kits."""
KEY: dict[str, Any] = {"type": "string", "pattern": r"^[A-Za-z0-9._:-]{1,100}$"}

POSITION = json_schema(Position)


def closed(required: list[str], /, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


def every(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has all of these properties."""
    return closed([*properties], **properties)


def listed(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def named(name: str) -> dict[str, Any]:
    """Refer to a schema under ``components``."""
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may be null."""
    return {"anyOf": [of, {"type": "null"}]}


_PHASE = "|".join(get_args(Phase))
ORDER_QUERY: dict[str, dict[str, Any]] = {
    "team": LABEL,
    "kit": LABEL,
    "owner": {
        "type": "string",
        "pattern": "^[-A-Za-z0-9_.@+:/]{1,253}$",
        "description": "Who ordered it: a catalog reference, or its name alone.",
    },
    "phase": {
        "type": "string",
        "pattern": rf"^({_PHASE})(,({_PHASE}))*$",
        "description": "One phase, or several with commas.",
    },
    "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "description": "In the id, team, kit, owner, reason or an output; any case.",
    },
    "sort": {
        "type": "string",
        "pattern": f"^-?({'|'.join(SORTS)})$",
        "description": "phase: the most urgent first; with '-' the other way round.",
    },
    "limit": {"type": "string", "pattern": "^([1-9][0-9]{0,2}|1000)$"},
    "cursor": {
        "type": "string",
        "pattern": "^[-_A-Za-z0-9]+$",
        "maxLength": CURSOR_MAX,
        "description": "Where the page before ended, as its answer says. Opaque.",
    },
}
_MOMENT = {
    "type": "string",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$",
    "description": "A day or a time, in UTC.",
}
STATEMENT_QUERY: dict[str, dict[str, Any]] = {
    "since": {**_MOMENT, "description": "Default: the first day of this month, in UTC."},
    "until": {**_MOMENT, "description": "Excluded. Default, and at most: now."},
    "kit": LABEL,
}
DELIVERY: dict[str, Any] = {
    "type": "object",
    "description": "As Gitea sends it; only repository.full_name, number, action and ref are read.",
}
LIMIT = {"type": "string", "pattern": "^[1-9][0-9]{0,2}$"}
ACTIVITY_QUERY: dict[str, dict[str, Any]] = {
    "team": LABEL,
    "person": {**ORDER_QUERY["owner"], "description": "Who did it: a reference, or its name."},
    "kit": LABEL,
    "since": {
        "type": "string",
        "maxLength": 40,
        "description": "A day or a time, in UTC, or how long ago: 7d.",
    },
    "limit": {**LIMIT, "description": "Entries of a page, at most 100. Default: 30."},
    "cursor": {
        "type": "string",
        "maxLength": 200,
        "description": "Where the page before ended.",
    },
}
COMPONENTS: dict[str, dict[str, Any]] = {
    "Event": closed(
        ["id"],
        id=POSITION,
        event={
            "enum": ["ready", "order", "gone", "reload"],
            "description": "Absent: the stream lives. reload: read GET /v1/orders again.",
        },
        data={
            "type": "string",
            "contentMediaType": "application/json",
            "description": "Of order an Order, of gone its order and team, otherwise {}.",
        },
    ),
    **answer_schemas(
        [
            Error,
            FindingAnswer,
            Orders,
            Campaigns,
            SettingsAnswer,
            Taken,
            Planned,
            Changed,
            Decided,
            End,
            EndPreview,
            Events,
            Activity,
            Approvals,
            Gate,
            History,
            LeaseAnswer,
            Merged,
            Ready,
            Registered,
            TaskDone,
            Trace,
            OrderRow,
            ListedOrder,
            OrderView,
            Revealed,
            Kits,
            KitTeams,
            StatementAnswer,
            Team,
        ]
    ),
}


_PARAMETER = re.compile(r"\{(\w+)\}")
_ALWAYS = {
    400: "A field, parameter or body that is refused.",
    429: "Too many requests from this caller.",
    500: "A bug in Orderkit.",
    502: "Forge, cluster or portal failed.",
    503: "One of them cannot be reached, or the work is not finished: send the request again.",
}
_GUARDED = {
    401: "The caller is not authenticated.",
    403: "The caller lacks the right, or the request is unsafe.",
}


def document(operations: Iterable[ServiceOperation], *, secret_header: str) -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path_item = paths.setdefault(operation.path, _parameters(operation.path))
        path_item[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Orderkit",
            "version": "v1",
            "description": "Place, show, change and end platform orders (docs/service.md).",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {
                "portal": {
                    "type": "apiKey",
                    "in": "header",
                    "name": secret_header,
                    "description": "The secret that a portal's proxy adds, unseen by templates.",
                },
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of Backstage, an OpenID provider, or this service.",
                },
            },
        },
    }


def _parameters(path: str) -> dict[str, Any]:
    names = _PARAMETER.findall(path)
    if not names:
        return {}
    parameters = [{"name": n, "in": "path", "required": True, "schema": LABEL} for n in names]
    return {"parameters": parameters}


def _operation(operation: ServiceOperation) -> dict[str, Any]:
    operation_object: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "security": _security(operation),
    }
    if operation.right:
        operation_object["description"] = f"Needs the right '{operation.right}'."
    if parameters := [*_query(operation.query), *_headers(operation)]:
        operation_object["parameters"] = parameters
    if operation.body is not None:
        content = {"application/json": {"schema": operation.body}}
        operation_object["requestBody"] = {"required": True, "content": content}
    operation_object["responses"] = _responses(operation)
    return operation_object


def _security(operation: ServiceOperation) -> list[dict[str, Any]]:
    proofs: list[dict[str, Any]] = [{"portal": []}, {"bearer": []}]
    if operation.right:
        return proofs
    return [{}, *proofs] if operation.optional else []


def _query(query: Mapping[str, Schema]) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()]


def _headers(operation: ServiceOperation) -> list[dict[str, Any]]:
    headers = []
    if operation.keyed:
        text = "The same request with the same key is carried out once."
        headers.append({"name": "Idempotency-Key", "schema": KEY, "description": text})
    if operation.resumes:
        text = "The last event that the client got; it is sent what came after."
        headers.append({"name": "Last-Event-ID", "schema": POSITION, "description": text})
    return [{"in": "header", **header} for header in headers]


def _responses(operation: ServiceOperation) -> dict[str, Any]:
    refused = {**_ALWAYS, **(_GUARDED if operation.right or operation.optional else {})}
    errors = {status: (text, named("Error")) for status, text in refused.items()}
    every = {**errors, **operation.answers}
    return {str(status): _response(operation, status, *every[status]) for status in sorted(every)}


def _response(
    operation: ServiceOperation, status: int, text: str, schema: Schema | None
) -> dict[str, Any]:
    if schema is None:
        return {"description": text}
    good = status < HTTPStatus.BAD_REQUEST
    media = operation.media.partition(";")[0] if good else "application/json"
    return {"description": text, "content": {media: {"schema": schema}}}
