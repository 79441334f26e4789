"""
The part of Backstage's catalog API that Orderkit and its users need, on the embedded catalog.

    GET  /.backstage/health/v1/readiness            open
    POST /api/catalog/locations[?dryRun=true]       201; 400 unreadable; 409 known
    GET  /api/catalog/locations, /locations/{id}
    DELETE /api/catalog/locations/{id}              204
    GET  /api/catalog/entities?filter=k=v,…&offset&limit
    GET  /api/catalog/entities/by-query             pages with a cursor
    GET  /api/catalog/entities/by-name/{kind}/{namespace}/{name}
    DELETE /api/catalog/entities/by-uid/{uid}       204
    POST /api/catalog/refresh                       {"entityRef": …}

Not here: users, permissions, ordering, field selection, full-text search, relations, the
Location entities Backstage generates. Every call except readiness needs the bearer token.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ground.errors import (
    AccessError,
    InvalidInputError,
    OrderkitError,
    RemoteError,
    UnreachableError,
)
from ground.objects.kube_objects import Manifest
from ground.secrets import redact
from orderkit.ports.catalog import Location
from orderkit_standins.catalog.catalog import EmbeddedCatalog

_BODY_MAX_BYTES = 100_000
_PAGE = 20
_STATUS: tuple[tuple[type[OrderkitError], int, str], ...] = (
    (InvalidInputError, 400, "InputError"),
    (UnreachableError, 503, "ServiceUnavailableError"),
    (AccessError, 400, "InputError"),
    (RemoteError, 502, "ResponseError"),
)

Handler = Callable[[Request], Awaitable[Response]]


def catalog_app(catalog: EmbeddedCatalog, *, token: str) -> Starlette:
    """Make the ASGI app."""
    api = _Api(catalog)

    def guarded(handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            authorization = request.headers.get("authorization", "")
            if not secrets.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
                return _error(401, "AuthenticationError", "Missing or wrong credentials")
            try:
                return await handler(request)
            except OrderkitError as error:
                for kind, status, name in _STATUS:
                    if isinstance(error, kind):
                        return _error(status, name, str(error))
                return _error(500, "Error", str(error))

        return answer

    async def readiness(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [
        ("/locations", api.add_location, "POST"),
        ("/locations", api.list_locations, "GET"),
        ("/locations/{id}", api.get_location, "GET"),
        ("/locations/{id}", api.delete_location, "DELETE"),
        ("/entities", api.list_entities, "GET"),
        ("/entities/by-query", api.query_entities, "GET"),
        ("/entities/by-name/{kind}/{namespace}/{name}", api.get_entity, "GET"),
        ("/entities/by-uid/{uid}", api.delete_entity, "DELETE"),
        ("/refresh", api.refresh, "POST"),
    ]
    return Starlette(
        routes=[
            Route("/.backstage/health/v1/readiness", readiness),
            *(
                Route(f"/api/catalog{path}", guarded(handler), methods=[method])
                for path, handler, method in routes
            ),
        ]
    )


class _Api:
    def __init__(self, catalog: EmbeddedCatalog) -> None:
        self._catalog = catalog

    async def add_location(self, request: Request) -> Response:
        body = await _body(request)
        type_, target = body.get("type"), body.get("target")
        if type_ != "url" or not isinstance(target, str):
            raise InvalidInputError("type", type_, "is not 'url', or target is not text")
        if request.query_params.get("dryRun") == "true":
            preview = await run_in_threadpool(self._catalog.preview, target)
            location = {"id": preview.location.id or "dry-run", "type": "url", "target": target}
            shape = {
                "location": location,
                "exists": preview.already_registered,
                "entities": list(preview.entities),
            }
            return JSONResponse(shape, status_code=201)
        registration = await run_in_threadpool(self._catalog.register, target)
        if registration.already_registered:
            return _error(409, "ConflictError", f"Location url:{target} already exists")
        return JSONResponse(
            {"location": _location(registration.location), "entities": list(registration.entities)},
            status_code=201,
        )

    async def list_locations(self, _request: Request) -> Response:
        locations = await run_in_threadpool(self._catalog.locations)
        return JSONResponse([{"data": _location(location)} for location in locations])

    async def get_location(self, request: Request) -> Response:
        locations = await run_in_threadpool(self._catalog.locations)
        for location in locations:
            if location.id == request.path_params["id"]:
                return JSONResponse(_location(location))
        return _error(404, "NotFoundError", "No such location")

    async def delete_location(self, request: Request) -> Response:
        removed = await run_in_threadpool(self._catalog.unregister, request.path_params["id"])
        return Response(status_code=204) if removed else _error(404, "NotFoundError", "No location")

    async def list_entities(self, request: Request) -> Response:
        entities = await run_in_threadpool(self._matching, request.query_params.getlist("filter"))
        start = _whole(request, "offset", 0)
        limit = _whole(request, "limit", len(entities))
        return JSONResponse(entities[start : start + limit])

    async def query_entities(self, request: Request) -> Response:
        filters, start = request.query_params.getlist("filter"), _whole(request, "offset", 0)
        if "cursor" in request.query_params:
            filters, start = _read_cursor(request.query_params["cursor"])
        entities = await run_in_threadpool(self._matching, filters)
        end = start + _whole(request, "limit", _PAGE)
        page: dict[str, Any] = {}
        if end < len(entities):
            page["nextCursor"] = _cursor(filters, end)
        return JSONResponse(
            {"items": entities[start:end], "totalItems": len(entities), "pageInfo": page}
        )

    async def get_entity(self, request: Request) -> Response:
        path = request.path_params
        ref = f"{path['kind']}:{path['namespace']}/{path['name']}"
        entity = await run_in_threadpool(self._catalog.entity, ref)
        if entity is None:
            return _error(404, "NotFoundError", f"No entity named '{ref}'")
        return JSONResponse(entity)

    async def delete_entity(self, request: Request) -> Response:
        removed = await run_in_threadpool(self._catalog.remove_entity, request.path_params["uid"])
        return Response(status_code=204) if removed else _error(404, "NotFoundError", "No entity")

    async def refresh(self, request: Request) -> Response:
        ref = (await _body(request)).get("entityRef")
        if not isinstance(ref, str):
            raise InvalidInputError("entityRef", ref, "is not text")
        await run_in_threadpool(self._catalog.refresh_entity, ref)
        return Response(status_code=200)

    def _matching(self, filters: list[str]) -> list[Manifest]:
        """Return entities that match any filter: ``key=value`` or ``key``, by commas."""
        entities = self._catalog.entities()
        if not filters:
            return entities
        alternatives = [_conditions(text) for text in filters]
        return [entity for entity in entities if _matches(entity, alternatives)]


def _conditions(text: str) -> dict[str, set[str | None]]:
    """Read one filter: several values of one key are alternatives."""
    conditions: dict[str, set[str | None]] = {}
    for term in text.split(","):
        key, equals, value = term.strip().partition("=")
        conditions.setdefault(key.lower(), set()).add(value.lower() if equals else None)
    return conditions


def _matches(entity: Manifest, alternatives: list[dict[str, set[str | None]]]) -> bool:
    terms: dict[str, set[str]] = {}
    for key, value in _terms(entity, ""):
        terms.setdefault(key.lower(), set()).add(value.lower())
    return any(
        all(
            key in terms and (None in values or terms[key] & values)
            for key, values in conditions.items()
        )
        for conditions in alternatives
    )


def _terms(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield every scalar of an entity with its dotted key; list items share their list's key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _terms(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _terms(item, path)
    elif value is not None:
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


def _location(location: Location) -> dict[str, str]:
    return {"id": location.id, "type": "url", "target": location.target}


def _cursor(filters: list[str], offset: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([filters, offset]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[list[str], int]:
    try:
        filters, offset = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return [str(text) for text in filters], int(offset)
    except (ValueError, TypeError) as error:
        raise InvalidInputError("cursor", cursor, "is none of ours") from error


def _whole(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidInputError(name, text, "is not a whole number")
    return int(text)


async def _body(request: Request) -> dict[str, Any]:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _BODY_MAX_BYTES:
            raise InvalidInputError("body", len(data), "bytes are too many")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("body", "", "is not JSON") from error
    if not isinstance(document, dict):
        raise InvalidInputError("body", document, "is not a map")
    return document


def _error(status: int, name: str, message: str) -> Response:
    body = {
        "error": {"name": name, "message": redact(message)},
        "response": {"statusCode": status},
    }
    return JSONResponse(body, status_code=status)
