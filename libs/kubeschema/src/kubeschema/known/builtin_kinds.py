"""
Kubernetes' own kinds, as its API server describes them: names, scope, structure.

``kubernetes.json`` has them from the OpenAPI documents of Kubernetes 1.37, without descriptions
(``scripts/kubernetes_kinds.py``). A plan also uses the documents of its own cluster, if there is
one. What the server checks in code, such as immutable fields, no schema says.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ground.objects.kube_objects import CRD, Kind
from kubeschema.extensions import PRESERVE
from kubeschema.known.known_kinds import GroupKind, KnownKind, Layer
from kubeschema.known.openapi_kinds import structural_schema
from kubeschema.pruning import META_FIELDS
from kubeschema.validate import Validator

__all__ = ["FILE", "METADATA", "BuiltInKind", "built_in", "built_in_kinds"]

Schema = dict[str, Any]

FILE = Path(__file__).with_name("kubernetes.json")
_T: Schema = {"type": "string"}
_I: Schema = {"type": "integer"}
_MAP: Schema = {"type": "object", "additionalProperties": _T}
_OWNER: Schema = {
    "type": "object",
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _T),
        "controller": {"type": "boolean"},
        "blockOwnerDeletion": {"type": "boolean"},
    },
}
METADATA: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(
            ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), _T
        ),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _I),
        "creationTimestamp": {"type": "string", "nullable": True},
        "deletionTimestamp": {"type": "string", "nullable": True},
        **dict.fromkeys(("labels", "annotations"), _MAP),
        "finalizers": {"type": "array", "items": _T},
        "managedFields": {"type": "array", "items": {"type": "object", PRESERVE: True}},
        "ownerReferences": {"type": "array", "items": _OWNER},
    },
}
"""``metadata`` of every object."""


@dataclass(frozen=True, slots=True)
class BuiltInKind:
    """One kind in one version, as every API server serves it."""

    kind: Kind
    plural: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    has_status: bool
    """Whether ``/status`` is served."""
    schema_name: str

    def schema(self) -> Schema:
        """Return the structural schema of its objects, without the fields that all have."""
        schemas = _recorded()["schemas"]
        schema = structural_schema(
            schemas[self.schema_name], schemas, frozenset({self.schema_name}), keep_defaults=True
        )
        properties = {k: v for k, v in schema["properties"].items() if k not in META_FIELDS}
        return {**schema, "properties": properties}


@functools.cache
def _recorded() -> Mapping[str, Any]:
    recorded: Mapping[str, Any] = json.loads(FILE.read_bytes())
    return recorded


@functools.cache
def built_in_kinds() -> Mapping[Kind, BuiltInKind]:
    """Return every kind by group, version and kind."""
    kinds = {}
    for key, entry in _recorded()["kinds"].items():
        api_version, _, name = key.partition(" ")
        kind = Kind.parse(api_version, name)
        kinds[kind] = BuiltInKind(
            kind,
            entry["plural"],
            entry["namespaced"],
            tuple(entry["shortNames"]),
            tuple(entry["categories"]),
            entry["status"],
            entry["schema"],
        )
    return kinds


class _BuiltIn(Mapping[GroupKind, KnownKind]):
    """The layer; a schema is made when its kind is asked for."""

    def __init__(self) -> None:
        self._versions: dict[GroupKind, list[BuiltInKind]] = {}
        for kind, found in built_in_kinds().items():
            self._versions.setdefault((kind.group, kind.kind), []).append(found)
        self._known: dict[GroupKind, KnownKind] = {}

    def __getitem__(self, key: GroupKind) -> KnownKind:
        if key not in self._known:
            versions = self._versions[key]
            spec = {
                "group": key[0],
                "names": {"kind": key[1]},
                "versions": [
                    {
                        "name": found.kind.version,
                        "served": True,
                        "schema": {"openAPIV3Schema": found.schema()},
                    }
                    for found in versions
                ],
            }
            validator = Validator({"kind": CRD.kind, "spec": spec})
            first = versions[0]
            self._known[key] = KnownKind(validator, first.namespaced, first.plural, partial=True)
        return self._known[key]

    def __iter__(self) -> Iterator[GroupKind]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


@functools.cache
def built_in() -> Layer:
    """Return Kubernetes' own kinds, each in its stable versions."""
    return _BuiltIn()
