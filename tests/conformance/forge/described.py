"""
Judge requests, answers and webhook deliveries by GitHub's own descriptions.

`Judge` notes what they do not allow: the description of GitHub.com in both versions of its API,
that of the Enterprise Server, the GraphQL schema, and the schemas of webhooks.
``scripts/descriptions.sh`` fetches them; without them nothing is judged. GitHub documents refusals
by pages that hold for all operations, so these statuses are allowed everywhere, with the body of an
error.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import graphql
import jsonschema
import referencing
import referencing.jsonschema
from tests.conformance.forge.exchanges import Exchange

PACKAGES = Path(__file__).parents[3] / ".cache/descriptions/node_modules/@octokit"
DESCRIPTION = PACKAGES / "openapi-webhooks/generated/ghes-3.19.json"
API, GRAPHQL = "/api/v3", "/api/graphql"
CHANGES = "x-github-breaking-changes"
"""Beside what a later version changes: patches of it, by RFC 7396 (objects) or 6902 (lists)."""
SITE_ADMIN = "/admin/"
"""What only an Enterprise Server has."""
NEW_ANSWERS = {"POST /repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches"}
"""What the newest version answers otherwise; the client asks for the older one, and reads both."""
_ANYWHERE = {301, 304, 307, 401, 403, 404, 409, 422, 429}
_ERROR = {"type": "object", "required": ["message"]}
_OK, _SERVER_FAILED = 200, 500
Json = Any


def prepare(node: Json, version: str) -> None:
    """Change a description to what it is since a version, and to what JSON Schema understands."""
    if isinstance(node, list):
        for item in node:
            prepare(item, version)
    if not isinstance(node, dict):
        return
    for change in node.pop(CHANGES, ()):
        if change["version"] <= version:
            apply = _edit if isinstance(change["patch"], list) else _patch
            apply(node, change["patch"])
    for key in ("example", "examples"):
        node.pop(key, None)
    for value in node.values():
        if isinstance(value, (dict, list)):
            prepare(value, version)
    if node.get("nullable") is True:
        del node["nullable"]
        whole = dict(node)
        node.clear()
        node["anyOf"] = [whole, {"type": "null"}]


def _patch(node: Json, patch: Json) -> None:
    for key, value in patch.items():
        if value is None:
            node.pop(key, None)
        elif isinstance(value, dict) and isinstance(node.get(key), dict):
            _patch(node[key], value)
        else:
            node[key] = value


def _edit(node: Json, edits: Json) -> None:
    for edit in edits:
        steps = [s.replace("~1", "/").replace("~0", "~") for s in edit["path"].split("/")[1:]]
        parent = functools.reduce(_child, steps[:-1], node)
        key = int(steps[-1]) if isinstance(parent, list) else steps[-1]
        if edit["op"] == "remove":
            del parent[key]
        else:
            assert edit["op"] == "replace", edit
            parent[key] = edit["value"]


def _child(node: Json, step: str) -> Json:
    return node[int(step)] if isinstance(node, list) else node[step]


@dataclass(frozen=True)
class Description:
    """One document of GitHub's: of its API, or of its webhooks."""

    name: str
    file: str
    version: str = ""

    @functools.cached_property
    def document(self) -> Mapping[str, Json]:
        """Return it as JSON Schema understands it."""
        document: dict[str, Json] = json.loads((PACKAGES / self.file).read_text(encoding="utf-8"))
        prepare(document, self.version)
        return document

    @functools.cached_property
    def registry(self) -> referencing.Registry[Json]:
        """Return where its references lead."""
        resource = referencing.Resource.from_contents(
            self.document, default_specification=referencing.jsonschema.DRAFT202012
        )
        registry: referencing.Registry[Json] = referencing.Registry()
        whole: referencing.Registry[Json] = registry.with_resource("description:", resource)
        return whole

    @functools.cached_property
    def operations(self) -> list[tuple[str, re.Pattern[str], str]]:
        """Return method, pattern and path of each, those with fewer parameters first."""
        found = []
        for path, item in self.document["paths"].items():
            pattern = re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)) + r"\Z")
            found += [(method.upper(), pattern, path) for method in item if method != "parameters"]
        return sorted(found, key=lambda each: each[2].count("{"))

    @functools.cached_property
    def _validators(self) -> dict[tuple[str, ...], jsonschema.Draft202012Validator]:
        return {}

    def path_of(self, method: str, address: str) -> str | None:
        """Return the path of an operation, or None if there is no such."""
        return next((p for m, r, p in self.operations if m == method and r.match(address)), None)

    def followed(self, *steps: str) -> tuple[Json, tuple[str, ...]]:
        """Return what is at a place, and where it is once references were followed."""
        node: Json = self.document
        place: tuple[str, ...] = ()
        for step in steps:
            node, place = self._target(node, place)
            node = node.get(step, {}) if isinstance(node, dict) else _child(node, step)
            place = (*place, step)
        return self._target(node, place)

    def _target(self, node: Json, place: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        while isinstance(node, dict) and "$ref" in node:
            place = tuple(node["$ref"].removeprefix("#/").split("/"))
            node = functools.reduce(lambda whole, step: whole[step], place, self.document)
        return node, place

    def problems(self, value: Json, place: tuple[str, ...]) -> list[str]:
        """Return what the schema at a place says against a value."""
        if place not in self._validators:
            pointer = "/".join(step.replace("~", "~0").replace("/", "~1") for step in place)
            schema = {"$ref": f"description:#/{pointer}"}
            self._validators[place] = jsonschema.Draft202012Validator(
                schema, registry=self.registry
            )
        errors = self._validators[place].iter_errors(value)
        found = sorted(errors, key=lambda error: len(error.absolute_path))
        return [f"{error.json_path}: {error.message[:300]}" for error in found[:3]]


CLOUD = "openapi/generated/api.github.com.json"
DESCRIPTIONS = (
    Description("GHES 3.19", "openapi/generated/ghes-3.19.json"),
    Description("2022-11-28", CLOUD, "2022-11-28"),
    Description("2026-03-10", CLOUD, "2026-03-10"),
)
WEBHOOKS = Description("webhooks", "openapi-webhooks/generated/api.github.com.json", "2026-03-10")


@functools.cache
def graphql_schema() -> graphql.GraphQLSchema:
    """Return the schema of GitHub's GraphQL; it defines a field twice."""
    text = (PACKAGES / "graphql-schema/schema.graphql").read_text(encoding="utf-8")
    return graphql.build_schema(text, assume_valid=True, assume_valid_sdl=True)


@dataclass
class Judge:
    """What was found."""

    problems: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Operations and deliveries that were used."""
    documents: dict[str, Json] = field(default_factory=dict)
    """GraphQL documents, with variables that were sent."""

    def judge(self, exchange: Exchange) -> None:
        """Note what a description does not allow."""
        if exchange.path == GRAPHQL:
            self.problems += self._graphql_problems(exchange)
            return
        address = exchange.path.removeprefix(API)
        for description in DESCRIPTIONS:
            path = description.path_of(exchange.method, address)
            name = f"{exchange.method} {path or address}"
            self.seen |= {name} if path else set()
            found: Iterable[str]
            if path is not None:
                found = _problems(description, path, exchange)
            elif address.startswith(SITE_ADMIN) and description.file == CLOUD:
                found = []
            else:
                found = ["the description has no such operation"]
            status = exchange.status
            self.problems += [f"{description.name}: {name} {status}: {each}" for each in found]

    def delivered(self, headers: Mapping[str, str], body: bytes) -> None:
        """Note what the schemas of webhooks do not allow of a delivery."""
        payload = json.loads(body)
        event = headers["X-GitHub-Event"]
        name = "-".join(filter(None, (event, payload.get("action")))).replace("_", "-")
        if name not in WEBHOOKS.document["webhooks"]:
            self.problems.append(f"delivery: there is no {name}")
            return
        self.seen.add(f"delivery {name}")
        place = ("webhooks", name, "post")
        operation, _ = WEBHOOKS.followed(*place)
        given = {header.lower() for header in headers}
        found = [
            f"no header {parameter['name']}"
            for parameter in operation["parameters"]
            if parameter.get("required") and parameter["name"].lower() not in given
        ]
        *_, schema = WEBHOOKS.followed(
            *place, "requestBody", "content", "application/json", "schema"
        )
        found += WEBHOOKS.problems(payload, schema)
        self.problems += [f"delivery {name}: {problem}" for problem in found]

    def _graphql_problems(self, exchange: Exchange) -> list[str]:
        body = json.loads(exchange.sent)
        known, document = graphql_schema(), graphql.parse(body["query"])
        found: list[str] = []
        if body["query"] not in self.documents:
            self.documents[body["query"]] = body["variables"]
            found += [error.message for error in graphql.validate(known, document)]
        operation = graphql.get_operation_ast(document)
        assert operation is not None
        wanted = operation.variable_definitions or ()
        values = graphql.get_variable_values(known, wanted, body["variables"])
        found += [error.message for error in values] if isinstance(values, list) else []
        if exchange.status != _OK:
            return found
        data = json.loads(exchange.received).get("data")
        root = known.get_root_type(operation.operation)
        if data is not None and root is not None:
            found += _misfits(root, operation.selection_set, data, "data")
        return [f"GraphQL: {problem}" for problem in found]


def _misfits(
    kind: graphql.GraphQLOutputType, selected: graphql.SelectionSetNode | None, value: Json, at: str
) -> Iterator[str]:
    """Yield where an answer is not of the type that its query selects."""
    if isinstance(kind, graphql.GraphQLNonNull):
        if value is None:
            yield f"{at} must not be null"
        kind = kind.of_type
    if value is None:
        return
    if isinstance(kind, graphql.GraphQLList):
        for number, item in enumerate(value):
            yield from _misfits(kind.of_type, selected, item, f"{at}[{number}]")
        return
    if isinstance(kind, graphql.GraphQLLeafType):
        try:
            kind.parse_value(value)
        except graphql.GraphQLError as error:
            yield f"{at}: {error.message}"
    elif selected is not None:
        for node in selected.selections:
            yield from _misfits_of_one(kind, node, value, at)


def _misfits_of_one(
    kind: graphql.GraphQLOutputType, node: graphql.SelectionNode, value: Json, at: str
) -> Iterator[str]:
    """Yield the misfits of one selected field or fragment; the query was validated."""
    if isinstance(node, graphql.InlineFragmentNode) and node.type_condition is not None:
        inner: Json = graphql_schema().type_map[node.type_condition.name.value]
        yield from _misfits(inner, node.selection_set, value, at)
    elif isinstance(node, graphql.FieldNode) and node.name.value != "__typename":
        name = (node.alias or node.name).value
        if name not in value:
            yield f"{at}.{name} is missing"
            return
        fields: Json = kind
        inner = fields.fields[node.name.value].type
        yield from _misfits(inner, node.selection_set, value[name], f"{at}.{name}")


def _problems(description: Description, path: str, exchange: Exchange) -> Iterator[str]:
    place = ("paths", path, exchange.method.lower())
    yield from _request_problems(description, place, exchange)
    if f"{exchange.method} {path}" in NEW_ANSWERS and description is DESCRIPTIONS[-1]:
        return
    yield from _answer_problems(description, place, exchange)


def _request_problems(
    description: Description, place: tuple[str, ...], exchange: Exchange
) -> Iterator[str]:
    operation, _ = description.followed(*place)
    numbers = range(len(operation.get("parameters", ())))
    known = {description.followed(*place, "parameters", str(n))[0]["name"] for n in numbers}
    asked = {key for key, _ in parse_qsl(exchange.query)}
    yield from (f"no query parameter '{key}'" for key in sorted(asked - known))
    if not exchange.sent or exchange.sent == b"{}":  # a probe that is refused for its empty body
        return
    if "requestBody" not in operation:
        yield "the operation takes no body"
        return
    body = json.loads(exchange.sent)
    steps = ("requestBody", "content", "application/json", "schema")
    schema, where = description.followed(*place, *steps)
    fields = schema.get("properties")
    if fields is not None and isinstance(body, dict):
        yield from (f"sent: no field '{key}'" for key in sorted(body.keys() - fields.keys()))
    yield from (f"sent {problem}" for problem in description.problems(body, where))


def _answer_problems(
    description: Description, place: tuple[str, ...], exchange: Exchange
) -> Iterator[str]:
    status, received = exchange.status, exchange.received
    if status >= _SERVER_FAILED or status in _ANYWHERE:
        if received and not jsonschema.Draft202012Validator(_ERROR).is_valid(json.loads(received)):
            yield "the error has no message"
        return
    answer, where = description.followed(*place, "responses", str(status))
    if not answer:
        yield "the description has no such status"
    elif "application/json" in answer.get("content", {}):
        schema = (*where, "content", "application/json", "schema")
        found = description.problems(json.loads(received or b"null"), schema)
        yield from (f"answered {problem}" for problem in found)
    elif received:
        yield "the answer should have no body"
