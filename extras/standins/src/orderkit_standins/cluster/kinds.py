"""
What a served kind is: its names, scope, schema and the behaviour the server gives it.

Built-in kinds come from ``served_builtin_kinds``, custom ones from ``definitions``, which
finds both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from ground.objects.kube_objects import Kind
from kubeschema.cel import RuleSet
from orderkit_standins.cluster.refusals import RefusalSubject

Schema = Mapping[str, Any]

STRING_MAP: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

OBJECT_META: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "generateName": {"type": "string"},
        "namespace": {"type": "string"},
        "selfLink": {"type": "string"},
        "uid": {"type": "string"},
        "resourceVersion": {"type": "string"},
        "generation": {"type": "integer"},
        "creationTimestamp": {"type": "string", "nullable": True},
        "deletionTimestamp": {"type": "string", "nullable": True},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "labels": STRING_MAP,
        "annotations": STRING_MAP,
        "finalizers": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                    "uid": {"type": "string"},
                    "controller": {"type": "boolean"},
                    "blockOwnerDeletion": {"type": "boolean"},
                },
            },
        },
        "managedFields": {"type": "array", "items": {"type": "object"}},
    },
}

TYPE_META: Schema = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of ``kubectl get``. `path` is a JSONPath; priority above 0 needs -o wide."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


AGE = Column("Age", ".metadata.creationTimestamp", "date")


class Schemas(NamedTuple):
    """Both schemas of a kind; see `ServedKind`."""

    schema: Schema
    typed: Schema

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """Fill in type and object metadata of the second one."""
        properties = {**TYPE_META, **(schema.get("properties") or {}), "metadata": OBJECT_META}
        return cls(schema, {**schema, "type": "object", "properties": properties})


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One kind in one served version."""

    kind: Kind
    plural: str
    namespaced: bool
    schemas: Callable[[], Schemas] = field(compare=False)
    """Makes its schemas, once: most of Kubernetes' own are never asked for."""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    has_status: bool = False
    """Whether ``/status`` is served."""
    has_generation: bool = False
    custom: bool = False
    """Defined by a CRD: no strategic merge patch, no update without resourceVersion."""
    shaped_on_read: bool = False
    """One of several versions: objects are stored as written and shaped for each reader."""
    description: str = ""
    rules: RuleSet | None = field(default=None, compare=False)
    """CEL rules of `schema`, if it has any."""

    @property
    def schema(self) -> Schema:
        """OpenAPI v3 of the whole object; ``metadata`` holds only what the author restricts."""
        return self.schemas().schema

    @property
    def typed(self) -> Schema:
        """`schema` with the server's own metadata, for server-side apply."""
        return self.schemas().typed

    def subject(self, name: str) -> RefusalSubject:
        return RefusalSubject(self.kind.kind, self.kind.group, self.plural, name)
