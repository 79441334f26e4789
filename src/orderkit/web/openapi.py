"""
The service's OpenAPI 3.1 document, made from the table that also checks requests.

Deterministic; ``docs/openapi.json`` is a committed copy (``scripts/service_docs.py``). Served at
``/openapi.json`` without proof of who asks: it holds nothing of a platform.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from orderkit.web.openapi_schemas import COMPONENTS, KEY, LABEL, POSITION, named
from orderkit.web.operations import Schema, ServiceOperation

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
