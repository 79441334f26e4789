"""
What a served kind is, and the kinds that every cluster serves: Kubernetes' own.

A kind has names, scope, schema and the behaviour the server gives it. Custom ones come from
``definitions``, which finds both.

The built-in ones have the schemas of their API server: all of `kubeschema.known.built_in_kinds`.
RBAC objects, NetworkPolicies, quotas and limits are stored and served, not enforced; ``workloads``
writes the status that controllers would. The schema of a CRD is ours, for ``definitions`` checks it
further.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple, Self

from ground.objects.kube_objects import CONFIG_MAP, CRD, EVENT, NAMESPACE, Kind
from kubeschema.cel import RuleSet
from kubeschema.known import BuiltInKind, built_in_kinds
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


SECRET = Kind("", "v1", "Secret")
SERVICE = Kind("", "v1", "Service")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount")
JOB = Kind("batch", "v1", "Job")
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "integer"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _object(*, required: tuple[str, ...] = (), **properties: Schema) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def _list(items: Schema, *keys: str) -> Schema:
    if not keys:
        return {"type": "array", "items": items}
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


_CONDITIONS = _list(
    _object(
        required=("type", "status"),
        type=_TEXT,
        status=_TEXT,
        reason=_TEXT,
        message=_TEXT,
        observedGeneration=_NUMBER,
        lastTransitionTime=_TEXT,
    ),
    "type",
)
_DEFINITION = _object(
    required=("spec",),
    spec=_object(
        required=("group", "names", "scope", "versions"),
        group=_TEXT,
        scope=_TEXT,
        preserveUnknownFields=_FLAG,
        conversion=_OPEN,
        names=_object(
            required=("plural", "kind"),
            plural=_TEXT,
            singular=_TEXT,
            kind=_TEXT,
            listKind=_TEXT,
            shortNames=_TEXTS,
            categories=_TEXTS,
        ),
        versions=_list(
            _object(
                required=("name", "served", "storage"),
                name=_TEXT,
                served=_FLAG,
                storage=_FLAG,
                deprecated=_FLAG,
                deprecationWarning=_TEXT,
                schema=_object(openAPIV3Schema=_OPEN),
                subresources=_OPEN,
                selectableFields=_list(_object(required=("jsonPath",), jsonPath=_TEXT)),
                additionalPrinterColumns=_list(
                    _object(
                        required=("name", "type", "jsonPath"),
                        name=_TEXT,
                        type=_TEXT,
                        format=_TEXT,
                        description=_TEXT,
                        priority=_NUMBER,
                        jsonPath=_TEXT,
                    )
                ),
            )
        ),
    ),
    status=_object(conditions=_CONDITIONS, acceptedNames=_OPEN, storedVersions=_TEXTS),
)

_COLUMNS: Mapping[Kind, tuple[Column, ...]] = {
    NAMESPACE: (Column("Status", ".status.phase"), AGE),
    CONFIG_MAP: (Column("Data", "#data"), AGE),
    SECRET: (Column("Type", ".type"), Column("Data", "#data"), AGE),
    SERVICE_ACCOUNT: (Column("Secrets", "#secrets"), AGE),
    SERVICE: (Column("Type", ".spec.type"), Column("Cluster-IP", ".spec.clusterIP"), AGE),
    EVENT: (
        Column("Last Seen", ".lastTimestamp", "date"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object", "#involvedObject"),
        Column("Message", ".message"),
    ),
    CRD: (Column("Created At", ".metadata.creationTimestamp"),),
    Kind(_RBAC, "v1", "RoleBinding"): (Column("Role", "#roleRef"), AGE),
    Kind(_RBAC, "v1", "ClusterRoleBinding"): (Column("Role", "#roleRef"), AGE),
    Kind(_ADMISSION, "v1", "ValidatingAdmissionPolicyBinding"): (
        Column("PolicyName", ".spec.policyName"),
        AGE,
    ),
    Kind("coordination.k8s.io", "v1", "Lease"): (Column("Holder", ".spec.holderIdentity"), AGE),
    Kind("apps", "v1", "Deployment"): (
        Column("Replicas", ".spec.replicas", "integer"),
        Column("Up-to-date", ".status.updatedReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        AGE,
    ),
    Kind("apps", "v1", "StatefulSet"): (Column("Ready", ".status.readyReplicas", "integer"), AGE),
    Kind("", "v1", "PersistentVolumeClaim"): (Column("Status", ".status.phase"), AGE),
    Kind("networking.k8s.io", "v1", "Ingress"): (Column("Class", ".spec.ingressClassName"), AGE),
}
_GENERATION_GROUPS = {"apps", "batch", "networking.k8s.io", "policy", CRD.group, _ADMISSION}
"""Groups whose kinds count the changes of their spec."""
_ONE_REPLICA = {"Deployment", "StatefulSet", "ReplicaSet"}


def _lenient(schema: Any) -> Any:
    """Return a schema without required fields: a server decodes what is missing as zero."""
    if isinstance(schema, list):
        return [_lenient(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _lenient(part)
        for key, part in schema.items()
        if key != "required" or isinstance(part, dict)
    }


def _schema(found: BuiltInKind) -> dict[str, Any]:
    schema = found.schema()
    if found.kind == EVENT:
        return {key: part for key, part in schema.items() if key != "required"}
    status = _lenient(schema["properties"].get("status"))
    properties = {**schema["properties"], **({"status": status} if status else {})}
    return {**schema, "properties": properties}


@functools.cache
def _schemas(found: BuiltInKind) -> Schemas:
    kind = found.kind
    schema = _DEFINITION if kind == CRD else _schema(found)
    if kind.kind in _ONE_REPLICA:
        spec = schema["properties"]["spec"]
        replicas = {**spec["properties"]["replicas"], "default": 1}
        spec = {**spec, "properties": {**spec["properties"], "replicas": replicas}}
        schema = {**schema, "properties": {**schema["properties"], "spec": spec}}
    return Schemas.of(schema)


def _served(found: BuiltInKind) -> ServedKind:
    kind = found.kind
    return ServedKind(
        kind,
        found.plural,
        schemas=functools.partial(_schemas, found),
        namespaced=found.namespaced,
        singular=kind.kind.lower(),
        short_names=found.short_names,
        categories=found.categories,
        has_status=found.has_status,
        has_generation=kind.group in _GENERATION_GROUPS,
        columns=_COLUMNS.get(kind, (AGE,)),
        description=f"{kind.kind} of Kubernetes",
    )


BUILT_IN = tuple(_served(found) for found in built_in_kinds().values())
"""Every kind that is served without a CRD."""


class NameRule(Enum):
    """The pattern that ``metadata.name`` must match."""

    SUBDOMAIN = auto()
    LABEL = auto()
    PATH_SEGMENT = auto()


NAME_MAX, LABEL_MAX = 253, 63
"""Kubernetes' limits of a DNS subdomain and of a DNS label."""
NAME_RULES = {
    NAMESPACE: (NameRule.LABEL, LABEL_MAX),
    SERVICE: (NameRule.LABEL, LABEL_MAX),
    Kind("apps", "v1", "StatefulSet"): (NameRule.LABEL, 52),
    JOB: (NameRule.SUBDOMAIN, LABEL_MAX),
    Kind("batch", "v1", "CronJob"): (NameRule.SUBDOMAIN, 52),
    **{kind: (NameRule.PATH_SEGMENT, NAME_MAX) for kind in built_in_kinds() if kind.group == _RBAC},
}
"""Kinds that differ from the rule for most, an RFC 1123 subdomain, and how long a name may be."""
