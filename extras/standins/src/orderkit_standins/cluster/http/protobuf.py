"""
The little protobuf that kubectl cannot do without.

Typed clients (``kubectl create configmap`` since 1.32) send built-in kinds as protobuf, whatever
the server answers; `read_object` turns those into plain data. Only the kinds in `MESSAGES` are
known. Field numbers are those of the published ``generated.proto`` files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

MAGIC = b"k8s\x00"
"""What every Kubernetes protobuf body starts with."""


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """How to read one field of a message."""

    name: str
    type: Literal["text", "bytes", "bool", "int", "message", "map", "time"] = "text"
    of: Mapping[int, ProtobufField] | None = None
    """Fields of a message, or of a map's entries (1 is the key, 2 the value)."""
    repeated: bool = False


Message = Mapping[int, ProtobufField]


def _texts(name: str) -> ProtobufField:
    return ProtobufField(name, repeated=True)


def _map(name: str, value: ProtobufField | None = None) -> ProtobufField:
    return ProtobufField(name, "map", {1: ProtobufField("key"), 2: value or ProtobufField("value")})


_OWNER: Message = {
    1: ProtobufField("kind"),
    3: ProtobufField("name"),
    4: ProtobufField("uid"),
    5: ProtobufField("apiVersion"),
    6: ProtobufField("controller", "bool"),
    7: ProtobufField("blockOwnerDeletion", "bool"),
}
_META: Message = {
    1: ProtobufField("name"),
    2: ProtobufField("generateName"),
    3: ProtobufField("namespace"),
    5: ProtobufField("uid"),
    6: ProtobufField("resourceVersion"),
    7: ProtobufField("generation", "int"),
    8: ProtobufField("creationTimestamp", "time"),
    11: _map("labels"),
    12: _map("annotations"),
    13: ProtobufField("ownerReferences", "message", _OWNER, repeated=True),
    14: _texts("finalizers"),
}
_METADATA = ProtobufField("metadata", "message", _META)
_REFERENCE: Message = {
    1: ProtobufField("kind"),
    2: ProtobufField("namespace"),
    3: ProtobufField("name"),
    4: ProtobufField("uid"),
    5: ProtobufField("apiVersion"),
    6: ProtobufField("resourceVersion"),
    7: ProtobufField("fieldPath"),
}
_RULE: Message = {
    1: _texts("verbs"),
    2: _texts("apiGroups"),
    3: _texts("resources"),
    4: _texts("resourceNames"),
    5: _texts("nonResourceURLs"),
}
_RULES = ProtobufField("rules", "message", _RULE, repeated=True)
_ROLE_REF: Message = {
    1: ProtobufField("apiGroup"),
    2: ProtobufField("kind"),
    3: ProtobufField("name"),
}
_SUBJECT: Message = {
    1: ProtobufField("kind"),
    2: ProtobufField("apiGroup"),
    3: ProtobufField("name"),
    4: ProtobufField("namespace"),
}
_BINDING: Message = {
    1: _METADATA,
    2: ProtobufField("subjects", "message", _SUBJECT, repeated=True),
    3: ProtobufField("roleRef", "message", _ROLE_REF),
}
_SELECTOR: Message = {1: _map("matchLabels")}
_AGGREGATION: Message = {
    1: ProtobufField("clusterRoleSelectors", "message", _SELECTOR, repeated=True)
}
_PRECONDITIONS: Message = {1: ProtobufField("uid"), 2: ProtobufField("resourceVersion")}

MESSAGES: Mapping[str, Message] = {
    "Namespace": {
        1: _METADATA,
        2: ProtobufField("spec", "message", {1: _texts("finalizers")}),
    },
    "ConfigMap": {
        1: _METADATA,
        2: _map("data"),
        3: _map("binaryData", ProtobufField("value", "bytes")),
        4: ProtobufField("immutable", "bool"),
    },
    "Secret": {
        1: _METADATA,
        2: _map("data", ProtobufField("value", "bytes")),
        3: ProtobufField("type"),
        4: _map("stringData"),
        5: ProtobufField("immutable", "bool"),
    },
    "ServiceAccount": {
        1: _METADATA,
        2: ProtobufField("secrets", "message", _REFERENCE, repeated=True),
        3: ProtobufField("imagePullSecrets", "message", {1: ProtobufField("name")}, repeated=True),
        4: ProtobufField("automountServiceAccountToken", "bool"),
    },
    "Role": {1: _METADATA, 2: _RULES},
    "ClusterRole": {
        1: _METADATA,
        2: _RULES,
        3: ProtobufField("aggregationRule", "message", _AGGREGATION),
    },
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "DeleteOptions": {
        1: ProtobufField("gracePeriodSeconds", "int"),
        2: ProtobufField("preconditions", "message", _PRECONDITIONS),
        3: ProtobufField("orphanDependents", "bool"),
        4: ProtobufField("propagationPolicy"),
        5: _texts("dryRun"),
    },
}
_ENVELOPE: Message = {
    1: ProtobufField(
        "typeMeta", "message", {1: ProtobufField("apiVersion"), 2: ProtobufField("kind")}
    ),
    2: ProtobufField("raw", "bytes"),
}


class UnknownMessageError(ValueError):
    """The body is of a kind that cannot be read from protobuf here."""


def read_object(body: bytes) -> dict[str, Any]:
    """
    Return a protobuf body as the object it encodes.

    Raises:
        UnknownMessageError: A kind that is not in `MESSAGES`.
        ValueError: No Kubernetes protobuf.
    """
    if not body.startswith(MAGIC):
        raise ValueError("no Kubernetes protobuf body")
    envelope = _read(body[len(MAGIC) :], _ENVELOPE)
    type_meta = envelope.get("typeMeta", {})
    message = MESSAGES.get(type_meta.get("kind", ""))
    if message is None:
        raise UnknownMessageError(f"protobuf bodies of kind {type_meta.get('kind')} are not read")
    return {**type_meta, **_read(base64.b64decode(envelope.get("raw", "")), message)}


def _read(data: bytes, message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for number, raw in _fields(data):
        field = message.get(number)
        if field is None:
            continue
        value = _value(field, raw)
        if field.type == "map":
            fields.setdefault(field.name, {}).update(value)
        elif field.repeated:
            fields.setdefault(field.name, []).append(value)
        elif value not in ("", None):
            fields[field.name] = value
    return fields


def _value(field: ProtobufField, raw: Any) -> Any:
    if type(raw) is not (int if field.type in {"bool", "int"} else bytes):
        raise ValueError(f"the protobuf field {field.name} has another type")
    if isinstance(raw, int):
        return bool(raw) if field.type == "bool" else raw
    match field.type:
        case "message":
            return _read(raw, field.of or {})
        case "map":
            entry = _read(raw, field.of or {})
            return {entry.get("key", ""): entry.get("value", "")}
        case "bytes":
            return base64.b64encode(raw).decode()
        case "time":
            return _time(raw)
        case _:
            return raw.decode()


def _time(raw: bytes) -> str | None:
    seconds = _read(raw, {1: ProtobufField("seconds", "int")}).get("seconds")
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and raw value of every field of a message."""
    try:
        fields = UnknownFieldSet(Empty.FromString(data))
    except DecodeError as error:
        raise ValueError(f"the protobuf body cannot be read: {error}") from error
    for index in range(len(fields)):
        yield fields[index].field_number, fields[index].data
