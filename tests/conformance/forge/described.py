"""
Judge requests and answers by GitHub's own OpenAPI description.

`Judge` wraps the app that plays GitHub: it reads each exchange of the API and notes what the
description does not allow. ``scripts/descriptions.sh`` fetches the description; without it nothing
is judged. GitHub documents refusals by pages that hold for all operations, so these statuses are
allowed everywhere, with the body of an error.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jsonschema
import referencing
import referencing.jsonschema
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DESCRIPTION = (
    Path(__file__).parents[3]
    / ".cache/descriptions/node_modules/@octokit/openapi/generated/ghes-3.19.json"
)
API = "/api/v3"
_ANYWHERE = {301, 304, 307, 401, 403, 404, 409, 422, 429}
_ERROR = {"type": "object", "required": ["message"]}
_SERVER_FAILED = 500
Json = Any


@functools.cache
def description() -> Mapping[str, Json]:
    """Return the description as JSON Schema understands it."""
    document: Mapping[str, Json] = _plain(json.loads(DESCRIPTION.read_text(encoding="utf-8")))
    return document


def _plain(node: Json) -> Json:
    """Turn OpenAPI 3.0's ``nullable`` into a schema that also takes null."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {
        key: _plain(value) for key, value in node.items() if key not in ("example", "examples")
    }
    if plain.pop("nullable", None) is True:
        return {"anyOf": [plain, {"type": "null"}]}
    return plain


@functools.cache
def _registry() -> referencing.Registry[Json]:
    resource = referencing.Resource.from_contents(
        description(), default_specification=referencing.jsonschema.DRAFT202012
    )
    registry: referencing.Registry[Json] = referencing.Registry()
    whole: referencing.Registry[Json] = registry.with_resource("description:", resource)
    return whole


@functools.cache
def _operations() -> list[tuple[str, re.Pattern[str], str]]:
    """Return method, pattern and path of every operation, those with fewer parameters first."""
    found = []
    for path, item in description()["paths"].items():
        pattern = re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)) + r"\Z")
        found += [(method.upper(), pattern, path) for method in item if method != "parameters"]
    return sorted(found, key=lambda each: each[2].count("{"))


def _followed(node: Json) -> Json:
    while isinstance(node, dict) and "$ref" in node:
        target: Json = description()
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def _problems(value: Json, schema: Json) -> list[str]:
    schema = json.loads(json.dumps(schema).replace('"#/', '"description:#/'))
    validator = jsonschema.Draft202012Validator(schema, registry=_registry())
    errors = sorted(validator.iter_errors(value), key=lambda error: len(error.absolute_path))
    return [f"{error.json_path}: {error.message[:300]}" for error in errors[:3]]


@dataclass
class Exchange:
    """One request and its answer."""

    method: str
    path: str
    query: str
    sent: bytes
    status: int = 0
    received: bytes = b""


@dataclass
class Judge:
    """An app around the one that plays GitHub, and what it found."""

    app: ASGIApp
    problems: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Operations that were used."""
    documents: dict[str, Json] = field(default_factory=dict)
    """GraphQL documents, with variables that were sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and judge it."""
        path = scope.get("raw_path", b"").decode() or str(scope.get("path", ""))
        if scope["type"] != "http" or not path.startswith(("/api/v3", "/api/graphql")):
            await self.app(scope, receive, send)
            return
        query = scope.get("query_string", b"").decode()
        exchange = Exchange(scope["method"], path.partition("?")[0], query, b"")

        async def read() -> Message:
            message = await receive()
            exchange.sent += message.get("body", b"")
            return message

        async def write(message: Message) -> None:
            exchange.status = message.get("status", exchange.status)
            exchange.received += message.get("body", b"")
            await send(message)

        await self.app(scope, read, write)
        self.judge(exchange)

    def judge(self, exchange: Exchange) -> None:
        """Note what the description does not allow."""
        if exchange.path == "/api/graphql":
            body = json.loads(exchange.sent)
            self.documents.setdefault(body["query"], body["variables"])
            return
        address = exchange.path.removeprefix(API)
        operations = _operations()
        matches = (p for m, r, p in operations if m == exchange.method and r.match(address))
        path = next(matches, None)
        name = f"{exchange.method} {path or address}"
        if path is None:
            self.problems.append(f"{name}: the description has no such operation")
            return
        self.seen.add(name)
        operation = description()["paths"][path][exchange.method.lower()]
        found = [*_request_problems(operation, exchange), *_answer_problems(operation, exchange)]
        self.problems += [f"{name} {exchange.status}: {problem}" for problem in found]


def _request_problems(operation: Json, exchange: Exchange) -> list[str]:
    known = {_followed(p)["name"] for p in operation.get("parameters", ())}
    asked = {key for key, _ in parse_qsl(exchange.query)}
    problems = [f"no query parameter '{key}'" for key in sorted(asked - known)]
    if not exchange.sent or exchange.sent == b"{}":  # a probe that is refused for its empty body
        return problems
    body, wanted = json.loads(exchange.sent), _followed(operation.get("requestBody") or {})
    if not wanted:
        return [*problems, "the operation takes no body"]
    schema = wanted["content"]["application/json"]["schema"]
    fields = _followed(schema).get("properties")
    if fields is not None and isinstance(body, dict):
        problems += [f"sent: no field '{key}'" for key in sorted(body.keys() - fields.keys())]
    return [*problems, *(f"sent {problem}" for problem in _problems(body, schema))]


def _answer_problems(operation: Json, exchange: Exchange) -> list[str]:
    status = exchange.status
    answer = _followed(operation["responses"].get(str(status)))
    if status >= _SERVER_FAILED or status in _ANYWHERE:
        is_error = not exchange.received or not _problems(json.loads(exchange.received), _ERROR)
        return [] if is_error else ["the error has no message"]
    if answer is None:
        return ["the description has no such status"]
    content = answer.get("content", {}).get("application/json")
    if content is None:
        return ["the answer should have no body"] if exchange.received else []
    problems = _problems(json.loads(exchange.received or b"null"), content["schema"])
    return [f"answered {problem}" for problem in problems]
