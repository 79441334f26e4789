"""
Kubernetes' own kinds, as its API server describes them: names, scope, structure, fixed fields.

``kubernetes.json`` has them from the OpenAPI documents of Kubernetes 1.37, without descriptions
(``scripts/kubernetes_kinds.py``). A plan also uses the documents of its own cluster, if there is
one, as an API server serves them at ``/openapi/v3/…``. References are resolved and the dialect is
converted to structural schemas, so that one validator judges built-in and custom kinds. Defaults
are dropped: the document gives every required string the default ``""``, which would hide that the
field is missing. A schema that contains itself is left open where it recurs.

Fields that are set once are checked by the server in code, and no schema says so. The rules and
words are those of Kubernetes 1.37 (``pkg/apis/*/validation``), as a real server says them;
``tests/conformance/cluster/test_immutable_fields.py`` compares. Missing values count as the
server's defaults, of the fields of the table only: in a Pod template, a default that is written out
is another value here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ground.objects import quantities
from ground.objects.kube_objects import CRD, Kind, Manifest, dig
from ground.objects.quantities import NoQuantity, Unsure
from kubeschema.known.known_kinds import GroupKind, KnownKind, Layer
from kubeschema.pruning import INT_OR_STRING, META_FIELDS, PRESERVE
from kubeschema.structural.validators import BYTES
from kubeschema.validate import Validator

__all__ = [
    "FILE",
    "METADATA",
    "BuiltInKind",
    "RefusedUpdate",
    "built_in",
    "built_in_kinds",
    "is_openapi",
    "openapi_kind",
    "openapi_layer",
    "refused_updates",
    "structural_schema",
]

_TAG = "x-kubernetes-group-version-kind"
_OPEN = {"type": "object", PRESERVE: True}
_DROPPED = {
    "$ref",
    "allOf",
    "default",
    "description",
    "properties",
    "items",
    "additionalProperties",
}

Document = Mapping[str, Any]
Schema = dict[str, Any]


def is_openapi(document: object) -> bool:
    """Return whether a parsed file is an OpenAPI v3 document."""
    return isinstance(document, dict) and str(document.get("openapi", "")).startswith("3.")


def openapi_layer(document: Document) -> Layer:
    """Return every kind whose objects the document serves."""
    layer = {}
    for kind in _scopes_and_plurals(document):
        known_kind = openapi_kind(document, kind)
        if known_kind is not None:
            layer[kind.group, kind.kind] = known_kind
    return layer


def openapi_kind(document: Document, kind: Kind) -> KnownKind | None:
    """Return one kind in the requested version; None if the document lacks it."""
    scope_and_plural = _scopes_and_plurals(document).get(kind)
    schemas = (document.get("components") or {}).get("schemas") or {}
    for name, schema in schemas.items():
        if scope_and_plural is None or kind not in _tags(schema):
            continue
        structural = structural_schema(schema, schemas, frozenset({name}))
        properties = structural.get("properties") or {}
        structural["properties"] = {k: v for k, v in properties.items() if k not in META_FIELDS}
        version = {"name": kind.version, "served": True, "schema": {"openAPIV3Schema": structural}}
        spec = {"group": kind.group, "names": {"kind": kind.kind}, "versions": [version]}
        validator = Validator({"kind": CRD.kind, "spec": spec})
        namespaced, plural = scope_and_plural
        return KnownKind(validator, namespaced, plural, partial=True)
    return None


def _scopes_and_plurals(document: Document) -> dict[Kind, tuple[bool, str]]:
    """Return scope and plural of every kind that has its own path."""
    scope_and_plural: dict[Kind, tuple[bool, str]] = {}
    for path, item in (document.get("paths") or {}).items():
        # In these paths the plural precedes the name. Paths of subresources end differently.
        if not path.endswith("/{name}"):
            continue
        for operation in item.values():
            tag = operation.get(_TAG) if isinstance(operation, dict) else None
            if tag:
                plural = path.split("/")[-2]
                scope_and_plural.setdefault(
                    _kind(tag), ("/namespaces/{namespace}/" in path, plural)
                )
    return scope_and_plural


def _tags(schema: Mapping[str, Any]) -> Iterator[Kind]:
    yield from map(_kind, schema.get(_TAG) or ())


def _kind(tag: Mapping[str, str]) -> Kind:
    return Kind(tag.get("group", ""), tag.get("version", ""), tag.get("kind", ""))


def structural_schema(
    schema: Mapping[str, Any],
    schemas: Mapping[str, Any],
    inside: frozenset[str],
    *,
    keep_defaults: bool = False,
) -> Schema:
    """
    Return a schema of OpenAPI v3 as a structural one, its references resolved.

    Args:
        schemas: What references name.
        inside: Names of the schemas that it is part of: where they recur, anything is allowed.
        keep_defaults: They are real ones.
    """
    dropped = _DROPPED - {"default"} if keep_defaults else _DROPPED
    structural = {key: value for key, value in schema.items() if key not in dropped}
    # Kubernetes wraps a reference in allOf if the field has a description or default of its own.
    for source in (schema, *(schema.get("allOf") or ())):
        structural = {
            **_referenced_schema(source, schemas, inside, keep_defaults=keep_defaults),
            **structural,
        }
    if structural.get("format") == "int-or-string":
        return {INT_OR_STRING: True}
    if structural.get("format") == "byte":
        structural["format"] = BYTES  # decoded, not matched: unlike in a CRD, it may be empty
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            structural[name] = structural_schema(
                schema[name], schemas, inside, keep_defaults=keep_defaults
            )
    if isinstance(schema.get("properties"), Mapping):
        structural["properties"] = {
            name: structural_schema(field, schemas, inside, keep_defaults=keep_defaults)
            for name, field in schema["properties"].items()
        }
    return _with_unknown_fields(structural)


def _referenced_schema(
    schema: Mapping[str, Any],
    schemas: Mapping[str, Any],
    inside: frozenset[str],
    *,
    keep_defaults: bool,
) -> Schema:
    name = str(schema.get("$ref") or "").rpartition("/")[2]
    if not name:
        return {}
    if name in inside or name not in schemas:
        return dict(_OPEN)
    return structural_schema(schemas[name], schemas, inside | {name}, keep_defaults=keep_defaults)


def _with_unknown_fields(schema: Schema) -> Schema:
    """Allow any fields in an object for which the document declares none."""
    silent = not {"properties", "additionalProperties", "items"} & schema.keys()
    scalars = (
        schema.get("type", "object") != "object" or "oneOf" in schema or INT_OR_STRING in schema
    )
    return {**schema, PRESERVE: True} if silent and not scalars else schema


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


_RBAC, _STORAGE = "rbac.authorization.k8s.io", "storage.k8s.io"
_SELECTOR = ("spec.selector",)
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Secret"): ("type",),
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "ReplicaSet"): _SELECTOR,
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "StatefulSet"): (
        "spec.selector", "spec.volumeClaimTemplates", "spec.serviceName",
        "spec.podManagementPolicy",
    ),
    ("batch", "Job"): (
        "spec.completions", "spec.selector", "spec.template", "spec.completionMode",
        "spec.podFailurePolicy", "spec.backoffLimitPerIndex", "spec.managedBy",
        "spec.successPolicy",
    ),
    (_RBAC, "RoleBinding"): ("roleRef",),
    (_RBAC, "ClusterRoleBinding"): ("roleRef",),
    (_STORAGE, "StorageClass"): (
        "provisioner", "parameters", "reclaimPolicy", "volumeBindingMode",
    ),
    ("networking.k8s.io", "IngressClass"): ("spec.controller",),
}  # fmt: skip
_DEFAULTS: dict[str, Any] = {
    "type": "Opaque",
    "spec.podManagementPolicy": "OrderedReady",
    "spec.completionMode": "NonIndexed",
    "spec.completions": 1,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}
_SEALED = "Forbidden: field is immutable when `immutable` is set"
_CLAIM = (
    "Forbidden: spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)
_SCHEDULING = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
"""What may change in the Pod of a Job that is suspended."""


@dataclass(frozen=True, slots=True)
class RefusedUpdate:
    """One error of an update, in the server's words."""

    path: str
    """The field that the server names."""
    message: str
    field: str = ""
    """The field that differs, if the server names one above it."""

    @property
    def rule(self) -> str:
        """The rule that the update breaks, without the value."""
        return self.message.rpartition(": ")[2]


def refused_updates(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    """Yield what an API server refuses in an update of an object of its own kinds."""
    kind = Kind.of(new)
    group_kind = (kind.group, kind.kind)
    for path in _FIELDS.get(group_kind, ()):
        was, now = (_value(manifest, path) for manifest in (old, new))
        if was != now and not _may_change(group_kind, path, old, new):
            shown = None if kind.kind == "StorageClass" else now
            yield RefusedUpdate(path, f"Invalid value: {_json(shown)}: field is immutable")
    if group_kind in {("", "ConfigMap"), ("", "Secret")}:
        yield from _sealed(old, new)
    if group_kind == ("", "Service"):
        yield from _service(old, new)
    if group_kind == ("", "PersistentVolumeClaim"):
        yield from _claim(old, new)
    if kind.kind == "PriorityClass" and old.get("value") != new.get("value"):
        yield RefusedUpdate("value", "Forbidden: may not be changed in an update.")


def _value(manifest: Manifest, path: str) -> Any:
    value = dig(manifest, *path.split("."), default=None)
    return _DEFAULTS.get(path) if value in (None, [], {}) else value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _may_change(kind: tuple[str, str], path: str, old: Manifest, new: Manifest) -> bool:
    if kind != ("batch", "Job"):
        return False
    if path == "spec.completions":  # an Indexed Job scales
        return bool(_value(new, "spec.completionMode") == "Indexed")
    is_suspended = dig(old, "spec", "suspend") is True
    return path == "spec.template" and is_suspended and _bare(old) == _bare(new)


def _bare(job: Manifest) -> Any:
    """Return a Job's template without what may change while it is suspended."""
    template = dig(job, "spec", "template", default=None) or {}
    pod = {k: v for k, v in (template.get("spec") or {}).items() if k not in _SCHEDULING}
    containers = pod.get("containers")
    if isinstance(containers, list):
        pod["containers"] = [
            {k: v for k, v in entry.items() if k != "resources"} for entry in containers
        ]
    return pod


def _sealed(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    if old.get("immutable") is not True:
        return
    for field in ("data", "binaryData", "immutable"):
        if (old.get(field) or None) != (new.get(field) or None):
            yield RefusedUpdate(field, _SEALED)


def _service(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    if "ExternalName" in {dig(old, "spec", "type"), dig(new, "spec", "type")}:
        return
    was, now = _address(old), _address(new)
    if was and now and was != now:
        message = f"Invalid value: {_json([now])}: may not change once set"
        yield RefusedUpdate("spec.clusterIPs[0]", message, "spec.clusterIP")


def _address(service: Manifest) -> Any:
    spec = service.get("spec") or {}
    return next(iter(spec.get("clusterIPs") or ()), None) or spec.get("clusterIP")


def _claim(old: Manifest, new: Manifest) -> Iterator[RefusedUpdate]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    is_bound = dig(old, "status", "phase", default="Bound") == "Bound"
    set_once = {"volumeName", "storageClassName"}
    grows = {"volumeAttributesClassName", "resources"} if is_bound else set()
    for name in sorted((before.keys() | after.keys()) - grows):
        was, now = before.get(name), after.get(name)
        is_new = name in set_once and was is None
        is_filled = name in {"volumeName", "volumeMode"} and now is None
        if was != now and not (is_new or is_filled):
            yield RefusedUpdate("spec", _CLAIM, f"spec.{name}")
    sizes = [_size(spec) for spec in (before, after)]
    if is_bound and None not in sizes and sizes[1] < sizes[0]:
        field = "spec.resources.requests.storage"
        yield RefusedUpdate(field, "Forbidden: field can not be less than status.capacity")


def _size(spec: Any) -> Any:
    try:
        return quantities.parse(str(dig(spec, "resources", "requests", "storage")))
    except (NoQuantity, Unsure):
        return None
