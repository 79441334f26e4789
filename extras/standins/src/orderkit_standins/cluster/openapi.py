"""
OpenAPI documents: enough for kubectl to validate, explain and dry-run.

One document per group and version, in version 3, carries the schemas (``kubectl explain`` reads
them). Version 2 is not served: kubectl since 1.27 asks for version 3 first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ground.objects.kube_objects import Manifest
from orderkit_standins.cluster.definitions import KindRegistry
from orderkit_standins.cluster.documents import encode
from orderkit_standins.cluster.kinds import OBJECT_META, ServedKind

_TITLE = "Orderkit embedded cluster"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def object_path(served: ServedKind) -> str:
    """Return the URL pattern of one object of a kind."""
    kind = served.kind
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = "/namespaces/{namespace}" if served.namespaced else ""
    return f"{root}{scope}/{served.plural}/{{name}}"


def _tag(served: ServedKind) -> Manifest:
    kind = served.kind
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def index_v3(registry: KindRegistry) -> Manifest:
    """Answer ``/openapi/v3``; the hash changes with the content, so clients may cache."""
    paths = {}
    for group, version in dict.fromkeys((s.kind.group, s.kind.version) for s in registry.all()):
        name = f"apis/{group}/{version}" if group else f"api/{version}"
        document = encode(document_v3(registry, group, version))
        digest = hashlib.sha256(document.encode()).hexdigest().upper()
        paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document_v3(registry: KindRegistry, group: str, version: str) -> Manifest | None:
    """Answer ``/openapi/v3/apis/<group>/<version>``."""
    kinds = [s for s in registry.all() if (s.kind.group, s.kind.version) == (group, version)]
    if not kinds:
        return None
    schemas: dict[str, Any] = {_META: _plain(OBJECT_META)}
    for served in kinds:
        schemas[_schema_name(served)] = _schema(served)
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": "v1"},
        "paths": {object_path(served): _path_v3(served) for served in kinds},
        "components": {"schemas": schemas},
    }


def _schema_name(served: ServedKind) -> str:
    parts = ".".join(reversed((served.kind.group or "core").split(".")))
    return f"{parts}.{served.kind.version}.{served.kind.kind}"


def _schema(served: ServedKind) -> Manifest:
    plain = _plain(served.schema)
    reference = {"$ref": f"#/components/schemas/{_META}"}
    properties = {**plain.get("properties", {}), "metadata": {"allOf": [reference], "default": {}}}
    properties.setdefault("apiVersion", {"type": "string"})
    properties.setdefault("kind", {"type": "string"})
    described = {"description": served.description} if served.description else {}
    return {
        **described,
        **plain,
        "properties": properties,
        "x-kubernetes-group-version-kind": [_tag(served)],
    }


def _plain(schema: Mapping[str, Any]) -> Manifest:
    return dict(schema)


def _path_v3(served: ServedKind) -> Manifest:
    answer = {
        "200": {
            "description": "OK",
            "content": {
                "application/json": {
                    "schema": {"$ref": f"#/components/schemas/{_schema_name(served)}"}
                }
            },
        }
    }
    return {
        method: {
            "x-kubernetes-action": method,
            "x-kubernetes-group-version-kind": _tag(served),
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS
            ],
            "responses": answer,
        }
        for method in ("get", "put", "patch", "delete")
    }
