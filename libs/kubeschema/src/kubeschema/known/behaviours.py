"""
What a CRD does not say about managed resources: ``schemas/behaviour.yaml`` of a pack.

Kinds are written ``Instance.ec2.aws.m.upbound.io``. The embedded platform's twins act by it, and
plans judge by ``replaces``. A kind that the file does not name behaves like `Behaviour()`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError
from yamlfiles import yaml11
from yamlfiles.documents import Files

__all__ = ["Behaviour", "Behaviours", "Reference", "behaviour_of"]

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
_PATH = {"type": "string", "pattern": r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$", "description": "dotted"}
_KIND = r"[A-Z][A-Za-z0-9]*\.[a-z0-9.-]+"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_KIND}$", "description": "Kind.group"},
    "additionalProperties": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "externalName": {"enum": ["assigned", "name"]},
            "identifier": {"type": "string", "minLength": 1, "maxLength": 500},
            "replaces": {"type": "array", "items": _PATH},
            "references": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "kind": {"type": "string", "pattern": f"^{_KIND}$"},
                        "field": _PATH,
                    },
                },
            },
            "observed": {"type": "object"},
            "failed": {"type": "object"},
            "connection": {"type": "object", "additionalProperties": {"type": "string"}},
            "delay": {
                "type": "string",
                "pattern": r"^[0-9]{1,4}(\.[0-9]{1,3})?s$",
                "description": "seconds, for example 2s",
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class Reference:
    """Where the value of one field of ``forProvider`` comes from, if it is referred to."""

    kind: GroupKind | None = None
    field: str = ""
    """Field of the referent's ``status.atProvider``, dotted; '': by the field's name."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How resources of one kind behave. Texts may have placeholders in braces."""

    assigned: bool = False
    """The cloud chooses the external name; else it is the object's name or its annotation."""
    identifier: str = ""
    """How an assigned external name looks."""
    replaces: tuple[str, ...] = ()
    """Fields of ``forProvider`` that no update can change, dotted; list positions left out."""
    references: Mapping[str, Reference] = field(default_factory=dict)
    """By the field that a reference sets."""
    observed: Mapping[str, Any] = field(default_factory=dict)
    """Values of ``status.atProvider`` that follow from nothing else."""
    failed: Mapping[str, Any] = field(default_factory=dict)
    """Values of ``status.atProvider`` where it fails on request."""
    connection: Mapping[str, str] = field(default_factory=dict)
    """Keys of the connection Secret."""
    delay_s: float | None = None
    """Seconds until a new one is ready; None: the twin decides."""


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
    (_POSTGRESQL, "Database"): Behaviour(references={"owner": Reference((_POSTGRESQL, "Role"))}),
    (_POSTGRESQL, "Grant"): Behaviour(references={"memberOf": Reference((_POSTGRESQL, "Role"))}),
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
    by_kind = yaml11.load(data, name=str(path), schema=_SCHEMA)
    return {_group_kind(kind): _behaviour(kind, entry, data) for kind, entry in by_kind.items()}


def _group_kind(text: str) -> GroupKind:
    kind, _, group = text.partition(".")
    return group, kind


def _behaviour(kind: str, entry: Mapping[str, Any], data: bytes) -> Behaviour:
    for key in ("identifier", "observed", "connection"):
        _check_placeholders(entry.get(key), (kind, key), data)
    references = {
        name: Reference(
            _group_kind(target["kind"]) if "kind" in target else None, target.get("field", "")
        )
        for name, target in entry.get("references", {}).items()
    }
    delay = entry.get("delay")
    return Behaviour(
        assigned=entry.get("externalName") == "assigned",
        identifier=entry.get("identifier", ""),
        replaces=tuple(entry.get("replaces", ())),
        references=references,
        observed=entry.get("observed", {}),
        failed=entry.get("failed", {}),
        connection=entry.get("connection", {}),
        delay_s=float(delay[:-1]) if delay else None,
    )


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
