"""
What is known of managed resources beside their CRDs: their common fields, and their behaviour.

A file of a pack's ``schemas/`` may be compact: of ``spec`` it declares ``forProvider`` only, and
references, selectors and Secret references in it may lack their own fields. `completed_crd` adds
what crossplane-runtime and upjet put into every CRD (read in provider-upjet-aws 2.6,
``package/crds``).

``schemas/behaviour.yaml`` of a pack has what a CRD does not say. Kinds are written
``Instance.ec2.aws.m.upbound.io``. The embedded platform's twins act by it, and plans judge by
``replaces``. A kind that the file does not name behaves like `Behaviour()`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from msgspec import Meta

from ground.errors import InvalidInputError
from ground.names import Files
from ground.objects.kube_objects import Kind, Manifest, dig
from ground.shapes import StrictShape, json_schema, read_shape
from kubeschema.cel.type_shapes import escape
from kubeschema.pruning import PRESERVE
from yamlfiles import yaml11

__all__ = [
    "OPEN",
    "Behaviour",
    "Behaviours",
    "Reference",
    "behaviour_of",
    "completed_crd",
    "config_group",
    "is_managed",
    "is_modern",
    "kinds_of",
]

GroupKind = tuple[str, str]
BEHAVIOUR = "behaviour.yaml"
PLACEHOLDERS = (
    "name", "region", "account", "project", "subscription", "externalName", "password", "uuid",
    "revision",
)  # fmt: skip
_LEGACY = re.compile(r"(?<!\.m)\.(upbound|crossplane)\.io$")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN = re.compile(
    rf"({'|'.join(PLACEHOLDERS)}|(hex|digits)[1-9][0-9]?|(forProvider|atProvider)(\.[A-Za-z0-9_]+)+)"
)
_KIND = r"[A-Z][A-Za-z0-9]*\.[a-z0-9.-]+"
_Path = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$", description="dotted")]


class Reference(StrictShape, frozen=True):
    """Where the value of one field of ``forProvider`` comes from, if it is referred to."""

    kind: Annotated[str, Meta(pattern=f"^{_KIND}$")] = ""
    field: _Path = ""
    """Field of the referent's ``status.atProvider``, dotted; '': by the field's name."""

    @property
    def group_kind(self) -> GroupKind | None:
        return _group_kind(self.kind) if self.kind else None


class Behaviour(StrictShape, frozen=True, kw_only=True):
    """How resources of one kind behave. Texts may have placeholders in braces."""

    external_name: Literal["assigned", "name"] = "name"
    """Who chooses it: the cloud, or whoever names the object or writes its annotation."""
    identifier: Annotated[str, Meta(min_length=1, max_length=500)] = ""
    """How an assigned external name looks."""
    replaces: tuple[_Path, ...] = ()
    """Fields of ``forProvider`` that no update can change, dotted; list positions left out."""
    references: Mapping[str, Reference] = {}
    """By the field that a reference sets."""
    observed: Mapping[str, Any] = {}
    """Values of ``status.atProvider`` that follow from nothing else."""
    failed: Mapping[str, Any] = {}
    """Values of ``status.atProvider`` where it fails on request."""
    connection: Mapping[str, str] = {}
    """Keys of the connection Secret."""
    delay: Annotated[
        str,
        Meta(pattern=r"^[0-9]{1,4}(\.[0-9]{1,3})?s$", description="seconds, for example 2s"),
    ] = ""
    """How long until a new one is ready; empty: the twin decides."""

    @property
    def assigned(self) -> bool:
        return self.external_name == "assigned"

    @property
    def delay_s(self) -> float | None:
        return float(self.delay[:-1]) if self.delay else None


Behaviours = Mapping[GroupKind, Behaviour]
_SQL_CONNECTION = {
    "username": "{externalName}",
    "password": "{password}",
    "endpoint": "{name}.database.twin.invalid",
}
_KEY = "of the embedded platform, for {externalName}"
_POSTGRESQL, _MYSQL = (f"{engine}.sql.m.crossplane.io" for engine in ("postgresql", "mysql"))
BUILT_IN: Behaviours = {
    ("helm.m.crossplane.io", "Release"): Behaviour(
        replaces=("namespace",),
        observed={
            "state": "deployed",
            "revision": "{revision}",
            "version": "{forProvider.chart.version}",
            "releaseDescription": "played by a twin: nothing is installed",
        },
        failed={"state": "failed"},
    ),
    (_POSTGRESQL, "Role"): Behaviour(connection={**_SQL_CONNECTION, "port": "5432"}),
    (_POSTGRESQL, "Database"): Behaviour(references={"owner": Reference(f"Role.{_POSTGRESQL}")}),
    (_POSTGRESQL, "Grant"): Behaviour(references={"memberOf": Reference(f"Role.{_POSTGRESQL}")}),
    (_MYSQL, "User"): Behaviour(connection={**_SQL_CONNECTION, "port": "3306"}),
    ("cloudplatform.gcp.m.upbound.io", "ServiceAccountKey"): Behaviour(
        connection={"private_key": _KEY, "attribute.private_key": _KEY}
    ),
}
"""Of kinds that need no pack to say it."""
_DEFAULT = Behaviour(
    connection={**_SQL_CONNECTION, "endpoint": "{externalName}.{region}.twin.invalid"}
)


def behaviour_of(behaviours: Behaviours, group: str, kind: str) -> Behaviour:
    """Return how a kind behaves: as declared, else as built in, else as most kinds."""
    modern = _LEGACY.sub(r".m.\1.io", group)
    for group_kind in ((group, kind), (modern, kind)):
        for source in (behaviours, BUILT_IN):
            if group_kind in source:
                return source[group_kind]
    return _DEFAULT


def read_behaviours(files: Files) -> Behaviours:
    """
    Read ``schemas/behaviour.yaml`` of a pack's files; {} if there is none.

    Raises:
        InvalidInputError: It is not YAML, or has an unknown key, value or placeholder.
    """
    path = PurePosixPath("schemas", BEHAVIOUR)
    data = files.get(path)
    if data is None:
        return {}
    schema = {
        "type": "object",
        "propertyNames": {"pattern": f"^{_KIND}$", "description": "Kind.group"},
        "additionalProperties": json_schema(Behaviour),
    }
    by_kind = yaml11.load(data, name=str(path), schema=schema)
    return {_group_kind(kind): _behaviour(kind, entry, data) for kind, entry in by_kind.items()}


def _group_kind(text: str) -> GroupKind:
    kind, _, group = text.partition(".")
    return group, kind


def _behaviour(kind: str, entry: Mapping[str, Any], data: bytes) -> Behaviour:
    for key in ("identifier", "observed", "connection"):
        _check_placeholders(entry.get(key), (kind, key), data)
    return read_shape(Behaviour, entry)


def _check_placeholders(value: object, steps: tuple[str | int, ...], data: bytes) -> None:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _check_placeholders(entry, (*steps, str(key)), data)
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            _check_placeholders(entry, (*steps, position), data)
    elif isinstance(value, str):
        for placeholder in _PLACEHOLDER.findall(value):
            if not _KNOWN.fullmatch(placeholder):
                field_name = yaml11.field_location(f"schemas/{BEHAVIOUR}", data, steps)
                placeholders = ", ".join((*PLACEHOLDERS, "hexN", "digitsN"))
                raise InvalidInputError(
                    field_name, f"{{{placeholder}}}", "is not a placeholder",
                    hint=f"known: {placeholders}, forProvider.FIELD, atProvider.FIELD",
                )  # fmt: skip


Schema = dict[str, Any]

OPEN: Schema = {"type": "object", PRESERVE: True}
PARAMETERS = "x-orderkit-parameters"
"""In ``spec`` of a compact CRD: fields of ``forProvider`` that only an observer may leave out."""
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_COLUMNS = (
    ("SYNCED", ".status.conditions[?(@.type=='Synced')].status"),
    ("READY", ".status.conditions[?(@.type=='Ready')].status"),
    ("EXTERNAL-NAME", ".metadata.annotations.crossplane\\.io/external-name"),
)


def _object(*required: str, **properties: Schema) -> Schema:
    fields: Schema = {"type": "object", "properties": properties}
    return {**fields, "required": list(required)} if required else fields


_POLICY = _object(
    resolution={**_TEXT, "enum": ["Required", "Optional"], "default": "Required"},
    resolve={**_TEXT, "enum": ["Always", "IfNotPresent"]},
)
_POLICIES = ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"]
_CONDITION = _object(
    "lastTransitionTime",
    "reason",
    "status",
    "type",
    lastTransitionTime={**_TEXT, "format": "date-time"},
    message=_TEXT,
    observedGeneration={"type": "integer", "format": "int64"},
    reason=_TEXT,
    status=_TEXT,
    type=_TEXT,
)
_STATUS: Schema = {
    "atProvider": OPEN,
    "conditions": {
        "type": "array",
        "items": _CONDITION,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    },
    "observedGeneration": {"type": "integer", "format": "int64"},
}


def is_modern(kind: Kind) -> bool:
    """Return whether a kind is of the namespaced flavour that Crossplane 2 brought."""
    return ".m." in kind.group


def config_group(kind: Kind) -> str:
    """
    Return the group of a provider's configs: one for all of its services.

    ``storage.gcp.m.upbound.io`` and ``dynamodb.aws.crossplane.io`` have gcp's and aws's. Only
    provider-sql has configs of its own for each engine (its ``apis`` folder).
    """
    labels = kind.group.split(".")
    is_family = ".".join(labels[-2:]) in {"upbound.io", "crossplane.io"}
    if not is_family or kind.group.endswith((".sql.crossplane.io", ".sql.m.crossplane.io")):
        return kind.group
    return ".".join(labels[-4 if is_modern(kind) or "jet" in labels else -3 :])


def is_managed(crd: Manifest) -> bool:
    """Return whether a CRD is that of a managed resource: its spec has ``forProvider``."""
    return any(
        dig(_spec_of(version), "properties", "forProvider") is not None
        for version in dig(crd, "spec", "versions", default=None) or ()
    )


def kinds_of(crd: Manifest) -> list[Kind]:
    """Return the kind of a CRD in each of its versions."""
    spec = crd["spec"]
    return [
        Kind(spec["group"], version["name"], spec["names"]["kind"]) for version in spec["versions"]
    ]


def completed_crd(crd: Manifest) -> Manifest:
    """
    Return a compact CRD of a managed resource with everything that such CRDs have. Idempotent.

    A CRD that declares ``spec.providerConfigRef`` is whole and returned as it is, and so is one of
    another kind of resource. The argument is not changed.
    """
    if not is_managed(crd):
        return crd
    spec = crd["spec"]
    names = spec["names"]
    versions = [
        version
        if "providerConfigRef" in _spec_of(version)["properties"]
        else _completed_version(version, kind)
        for version, kind in zip(spec["versions"], kinds_of(crd), strict=True)
    ]
    names = {
        "listKind": f"{names['kind']}List",
        "singular": names["kind"].lower(),
        **names,
        "categories": [*dict.fromkeys([*names.get("categories", ()), "crossplane", "managed"])],
    }
    return {**crd, "spec": {**spec, "names": names, "versions": versions}}


def managed_spec(kind: Kind, spec: Schema) -> Schema:
    """Return the schema of a managed resource's spec, from one with ``forProvider`` and its own."""
    properties: Schema = spec["properties"]
    for_provider = _with_references(properties["forProvider"], kind)
    optional = {key: value for key, value in for_provider.items() if key != "required"}
    modern = is_modern(kind)
    config = _object(
        *(["kind"] if modern else []), "name", name=_TEXT, **({"kind": _TEXT} if modern else {})
    )
    default = {"name": "default", **({"kind": "ClusterProviderConfig"} if modern else {})}
    secret = {"name": _TEXT} if modern else {"name": _TEXT, "namespace": _TEXT}
    standard: Schema = {
        "initProvider": optional,
        "managementPolicies": {
            "type": "array",
            "items": {**_TEXT, "enum": _POLICIES},
            "default": ["*"],
        },
        "providerConfigRef": {**config, "default": default},
        "writeConnectionSecretToRef": _object(*secret, **secret),
    }
    if not modern:
        policies = {**_TEXT, "enum": ["Orphan", "Delete"], "default": "Delete"}
        standard["deletionPolicy"] = policies
    rules = [*spec.get("x-kubernetes-validations", ()), *map(_rule, spec.get(PARAMETERS, ()))]
    return {
        "required": ["forProvider"],
        **{key: value for key, value in spec.items() if key != PARAMETERS},
        "type": "object",
        "properties": {**standard, **properties, "forProvider": for_provider},
        **({"x-kubernetes-validations": rules} if rules else {}),
    }


def _completed_version(version: Schema, kind: Kind) -> Schema:
    schema = version["schema"]["openAPIV3Schema"]
    properties = schema["properties"]
    status: Schema = properties.get("status") or {}
    columns = [{"name": name, "type": "string", "jsonPath": path} for name, path in _COLUMNS]
    age = {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    completed = {
        **properties,
        "spec": managed_spec(kind, properties["spec"]),
        "status": {
            "type": "object",
            **status,
            "properties": {**_STATUS, **(status.get("properties") or {})},
        },
    }
    return {
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [*columns, age],
        **version,
        "schema": {"openAPIV3Schema": {"type": "object", **schema, "properties": completed}},
    }


def _with_references(schema: Schema, kind: Kind) -> Schema:
    """Return a schema whose references and selectors, at any depth, have their standard fields."""
    completed = dict(schema)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            completed[keyword] = _with_references(schema[keyword], kind)
    if isinstance(schema.get("properties"), Mapping):
        completed["properties"] = {
            name: _with_references({**_standard_reference(name, field, kind), **field}, kind)
            for name, field in schema["properties"].items()
        }
    return completed


def _standard_reference(name: str, field: Schema, kind: Kind) -> Schema:
    """Return what a field without fields of its own means by its name; {} if nothing."""
    if not {"properties", "items", "additionalProperties", PRESERVE}.isdisjoint(field):
        return {}
    if field.get("type", "object") == "array":
        reference = _standard_reference(name.removesuffix("s"), {}, kind)
        return {"items": reference} if name.endswith("Refs") else {}
    namespace = {"namespace": _TEXT} if is_modern(kind) else {}
    if name.endswith("SecretRef"):
        home = {} if is_modern(kind) else {"namespace": _TEXT}
        return _object("key", "name", *home, key=_TEXT, name=_TEXT, **home)
    if name.endswith("Ref"):
        return _object("name", name=_TEXT, policy=_POLICY, **namespace)
    if name.endswith("Selector"):
        labels = {"matchControllerRef": _FLAG, "matchLabels": _TEXTS}
        return _object(**labels, policy=_POLICY, **namespace)
    return {}


def _rule(parameter: str) -> Schema:
    """Return upjet's rule for a parameter that is required to create and to update."""
    policies = (f"'{policy}' in self.managementPolicies" for policy in ("*", "Create", "Update"))
    name = escape(parameter)  # CEL reserves words such as namespace
    fields = (f"has(self.{section}.{name})" for section in ("forProvider", "initProvider"))
    for_provider, init_provider = fields
    return {
        "rule": f"!({' || '.join(policies)}) || {for_provider} "
        f"|| (has(self.initProvider) && {init_provider})",
        "message": f"spec.forProvider.{parameter} is a required parameter",
    }


def _spec_of(version: Schema) -> Schema:
    spec: Schema = (
        dig(version, "schema", "openAPIV3Schema", "properties", "spec", default=None) or {}
    )
    return spec
