"""
The kinds every cluster serves, with as much schema as server-side apply and strict decoding need.

RBAC objects, NetworkPolicies and ValidatingAdmissionPolicies are stored and served, not enforced.
Job, Deployment, StatefulSet, PersistentVolumeClaim, Service and Ingress are served but nothing runs
them (``workloads`` writes the status that controllers would); a ResourceQuota limits nothing. Pod
is not served. The content of their specs is not checked.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ground.objects.kube_objects import CONFIG_MAP, CRD, EVENT, NAMESPACE, Kind
from orderkit_standins.cluster.kinds import (
    AGE,
    STRING_MAP,
    Column,
    Schema,
    ServedKind,
    with_metadata,
)

SECRET = Kind("", "v1", "Secret")
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
_OBJECT_REFERENCE = _object(
    apiVersion=_TEXT,
    fieldPath=_TEXT,
    kind=_TEXT,
    name=_TEXT,
    namespace=_TEXT,
    resourceVersion=_TEXT,
    uid=_TEXT,
)
_LOCAL_REFERENCE = {**_object(name=_TEXT), "x-kubernetes-map-type": "atomic"}
_RULES = _list(
    _object(
        required=("verbs",),
        apiGroups=_TEXTS,
        nonResourceURLs=_TEXTS,
        resourceNames=_TEXTS,
        resources=_TEXTS,
        verbs=_TEXTS,
    )
)
_ROLE_REF = {
    **_object(required=("apiGroup", "kind", "name"), apiGroup=_TEXT, kind=_TEXT, name=_TEXT),
    "x-kubernetes-map-type": "atomic",
}
_SUBJECTS = _list(
    _object(required=("kind", "name"), apiGroup=_TEXT, kind=_TEXT, name=_TEXT, namespace=_TEXT)
)
_ROLE = _object(rules=_RULES)
_BINDING = _object(required=("roleRef",), roleRef=_ROLE_REF, subjects=_SUBJECTS)

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

_EVENT_SCHEMA = _object(
    action=_TEXT,
    count=_NUMBER,
    eventTime={"type": "string", "nullable": True},
    firstTimestamp={"type": "string", "nullable": True},
    lastTimestamp={"type": "string", "nullable": True},
    involvedObject={**_OBJECT_REFERENCE, "x-kubernetes-map-type": "atomic"},
    message=_TEXT,
    reason=_TEXT,
    related=_OBJECT_REFERENCE,
    reportingComponent=_TEXT,
    reportingInstance=_TEXT,
    series=_object(count=_NUMBER, lastObservedTime=_TEXT),
    source=_object(component=_TEXT, host=_TEXT),
    type=_TEXT,
)


def _kind(kind: Kind, plural: str, schema: dict[str, Any], **options: Any) -> ServedKind:
    typed = with_metadata(schema)
    options.setdefault("namespaced", True)
    return ServedKind(
        kind, plural, schema=schema, typed=typed, singular=kind.kind.lower(), **options
    )


_CORE = (
    _kind(
        NAMESPACE,
        "namespaces",
        _object(
            spec=_object(finalizers=_TEXTS),
            status=_object(phase=_TEXT, conditions=_CONDITIONS),
        ),
        namespaced=False,
        short_names=("ns",),
        has_status=True,
        columns=(Column("Status", ".status.phase"), AGE),
        description="Namespace provides a scope for Names.",
    ),
    _kind(
        CONFIG_MAP,
        "configmaps",
        _object(data=STRING_MAP, binaryData=STRING_MAP, immutable=_FLAG),
        short_names=("cm",),
        columns=(Column("Data", "#data"), AGE),
        description="ConfigMap holds configuration data.",
    ),
    _kind(
        SECRET,
        "secrets",
        _object(data=STRING_MAP, stringData=STRING_MAP, type=_TEXT, immutable=_FLAG),
        columns=(Column("Type", ".type"), Column("Data", "#data"), AGE),
        description="Secret holds secret data, base64 encoded; it is not encrypted at rest here.",
    ),
    _kind(
        SERVICE_ACCOUNT,
        "serviceaccounts",
        _object(
            secrets=_list(_OBJECT_REFERENCE, "name"),
            imagePullSecrets=_list(_LOCAL_REFERENCE, "name"),
            automountServiceAccountToken=_FLAG,
        ),
        short_names=("sa",),
        columns=(Column("Secrets", "#secrets"), AGE),
        description="ServiceAccount is an identity; no token is issued for it here.",
    ),
    _kind(
        EVENT,
        "events",
        _EVENT_SCHEMA,
        short_names=("ev",),
        columns=(
            Column("Last Seen", ".lastTimestamp", "date"),
            Column("Type", ".type"),
            Column("Reason", ".reason"),
            Column("Object", "#involvedObject"),
            Column("Message", ".message"),
        ),
        description="Event reports something that happened to an object. Kept for an hour.",
    ),
)

_ACCESS = (
    _kind(
        Kind(_RBAC, "v1", "ClusterRole"),
        "clusterroles",
        _object(rules=_RULES, aggregationRule={**_OPEN, "x-kubernetes-map-type": "atomic"}),
        namespaced=False,
        description="ClusterRole: stored, not enforced.",
    ),
    _kind(
        Kind(_RBAC, "v1", "ClusterRoleBinding"),
        "clusterrolebindings",
        _BINDING,
        namespaced=False,
        columns=(Column("Role", "#roleRef"), AGE),
        description="ClusterRoleBinding: stored, not enforced.",
    ),
    _kind(Kind(_RBAC, "v1", "Role"), "roles", _ROLE, description="Role: stored, not enforced."),
    _kind(
        Kind(_RBAC, "v1", "RoleBinding"),
        "rolebindings",
        _BINDING,
        columns=(Column("Role", "#roleRef"), AGE),
        description="RoleBinding: stored, not enforced.",
    ),
)

_EXTENSIONS = (
    _kind(
        CRD,
        "customresourcedefinitions",
        _DEFINITION,
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        has_status=True,
        has_generation=True,
        columns=(Column("Created At", ".metadata.creationTimestamp"),),
        description="CustomResourceDefinition serves a new kind.",
    ),
    _kind(
        Kind(_ADMISSION, "v1", "ValidatingAdmissionPolicy"),
        "validatingadmissionpolicies",
        _object(spec=_OPEN, status=_OPEN),
        namespaced=False,
        categories=("api-extensions",),
        has_status=True,
        has_generation=True,
        description="ValidatingAdmissionPolicy: what may be written, in CEL.",
    ),
    _kind(
        Kind(_ADMISSION, "v1", "ValidatingAdmissionPolicyBinding"),
        "validatingadmissionpolicybindings",
        _object(spec=_OPEN),
        namespaced=False,
        categories=("api-extensions",),
        has_generation=True,
        columns=(Column("PolicyName", ".spec.policyName"), AGE),
        description="ValidatingAdmissionPolicyBinding: where a policy holds.",
    ),
)

_RUNNING = (
    _kind(
        JOB,
        "jobs",
        _object(spec=_OPEN, status=_OPEN),
        has_status=True,
        has_generation=True,
        description="Job: stored; nobody runs it.",
    ),
    _kind(
        Kind("networking.k8s.io", "v1", "NetworkPolicy"),
        "networkpolicies",
        _object(spec=_OPEN),
        has_generation=True,
        short_names=("netpol",),
        description="NetworkPolicy: stored, not enforced.",
    ),
    _kind(
        Kind("coordination.k8s.io", "v1", "Lease"),
        "leases",
        _object(
            spec=_object(
                holderIdentity=_TEXT,
                leaseDurationSeconds=_NUMBER,
                acquireTime=_TEXT,
                renewTime=_TEXT,
                leaseTransitions=_NUMBER,
                preferredHolder=_TEXT,
                strategy=_TEXT,
            )
        ),
        columns=(Column("Holder", ".spec.holderIdentity"), AGE),
        description="Lease: who of several equal controllers works.",
    ),
)

_REPLICATED = _object(
    spec={**_OPEN, "properties": {"replicas": {"type": "integer", "default": 1}}},
    status={**_OPEN, "properties": {"conditions": _CONDITIONS}},
)
_DEPLOYED = (
    _kind(
        Kind("apps", "v1", "Deployment"),
        "deployments",
        _REPLICATED,
        has_status=True,
        has_generation=True,
        short_names=("deploy",),
        columns=(
            Column("Replicas", ".spec.replicas", "integer"),
            Column("Up-to-date", ".status.updatedReplicas", "integer"),
            Column("Available", ".status.availableReplicas", "integer"),
            AGE,
        ),
        description="Deployment: stored; nobody runs it.",
    ),
    _kind(
        Kind("apps", "v1", "StatefulSet"),
        "statefulsets",
        _REPLICATED,
        has_status=True,
        has_generation=True,
        short_names=("sts",),
        columns=(Column("Ready", ".status.readyReplicas", "integer"), AGE),
        description="StatefulSet: stored; nobody runs it.",
    ),
    _kind(
        Kind("", "v1", "PersistentVolumeClaim"),
        "persistentvolumeclaims",
        _object(spec=_OPEN, status=_OPEN),
        has_status=True,
        short_names=("pvc",),
        columns=(Column("Status", ".status.phase"), AGE),
        description="PersistentVolumeClaim: stored; nothing is kept in it.",
    ),
    _kind(
        Kind("", "v1", "ResourceQuota"),
        "resourcequotas",
        _object(spec=_OPEN, status=_OPEN),
        has_status=True,
        short_names=("quota",),
        columns=(AGE,),
        description="ResourceQuota: stored, not enforced.",
    ),
    _kind(
        Kind("", "v1", "Service"),
        "services",
        _object(spec=_OPEN, status=_OPEN),
        has_status=True,
        short_names=("svc",),
        columns=(Column("Type", ".spec.type"), AGE),
        description="Service: stored; nothing is reached by it.",
    ),
    _kind(
        Kind("networking.k8s.io", "v1", "Ingress"),
        "ingresses",
        _object(spec=_OPEN, status=_OPEN),
        has_status=True,
        has_generation=True,
        short_names=("ing",),
        columns=(Column("Class", ".spec.ingressClassName"), AGE),
        description="Ingress: stored; nothing is reached by it.",
    ),
)

BUILT_IN = _DEPLOYED + _CORE + _ACCESS + _EXTENSIONS + _RUNNING
"""Every kind that is served without a CRD."""


class NameRule(Enum):
    """The pattern that ``metadata.name`` must match."""

    SUBDOMAIN = auto()
    LABEL = auto()
    PATH_SEGMENT = auto()


NAME_RULES = {
    NAMESPACE: NameRule.LABEL,
    **{served.kind: NameRule.PATH_SEGMENT for served in _ACCESS},
}
"""Kinds that differ from the rule for most, an RFC 1123 subdomain."""
