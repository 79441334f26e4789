"""
A pack and its kits, as read from files that somebody else has fetched.

``pack.yaml`` marks the root and names the kits. Each kit has its rooms: ``templates/<kit>``
with ``kit.yaml`` and ``template.yaml``, ``stations/<kit>``, ``gitops/apis/<kit>``. This module
reads them from a mapping of paths to bytes; whether those come from a folder, a wheel or a
repository is the caller's business.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core import yamltext
from orderkit.core.errors import InvalidInputError, NotFoundError
from orderkit.core.names import OrderId, TeamName, check_label
from orderkit.core.objects import XRD, Kind, Manifest, dig
from orderkit.core.xrd import xr_kind

API_VERSION = "orderkit.dev/v1alpha1"

Files = Mapping[PurePosixPath, bytes]

_NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 40}


def _document(kind: str, spec: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Return the schema of one of our own documents: header, name, a closed spec."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            "metadata": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name"],
                "properties": {"name": _NAME},
            },
            "spec": {
                "type": "object",
                "additionalProperties": False,
                "required": required,
                "properties": spec,
            },
        },
    }


PACK_SCHEMA = _document(
    "Pack",
    {"title": {"type": "string"}, "kits": {"type": "array", "items": _NAME, "uniqueItems": True}},
    ["kits"],
)
KIT_SCHEMA = _document(
    "Kit",
    {
        "title": {"type": "string"},
        "nameFrom": {"type": "string"},
        "teamFrom": {"type": "string"},
        "aliases": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    ["title", "nameFrom", "teamFrom"],
)


@dataclass(frozen=True, slots=True)
class Kit:
    """What the platform offers: a form, a skeleton, an XRD, and how orders are named."""

    name: str
    title: str
    name_from: str
    """XRD property that gives the order its name."""
    team_from: str
    """XRD property that names the team."""
    aliases: Mapping[str, str]
    """XRD property -> form parameter, where they differ."""
    xrd: Manifest

    @property
    def kind(self) -> Kind:
        """The XR's kind, at the referenceable version."""
        return xr_kind(self.xrd)

    @property
    def spec_schema(self) -> dict[str, Any]:
        """The XRD's schema of ``spec`` at the referenceable version."""
        version = next(v for v in self.xrd["spec"]["versions"] if v.get("referenceable"))
        found: dict[str, Any] = dig(
            version, "schema", "openAPIV3Schema", "properties", "spec", default={}
        )
        return found

    def parameter(self, xrd_property: str) -> str:
        """Return the form parameter that carries an XRD property."""
        return self.aliases.get(xrd_property, xrd_property)

    def order_id(self, parameters: Mapping[str, object]) -> OrderId:
        """
        Name an order by its parameters.

        Raises:
            InvalidInputError: The result is no RFC 1123 label.
        """
        field = self.parameter(self.name_from)
        return OrderId(check_label(field, f"{self.name}-{parameters.get(field, '')}"))

    def team(self, parameters: Mapping[str, object]) -> TeamName:
        """
        Return the team that orders.

        Raises:
            InvalidInputError: It is no RFC 1123 label.
        """
        field = self.parameter(self.team_from)
        return TeamName(check_label(field, str(parameters.get(field, ""))))


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack's name, its kits and all its files."""

    name: str
    kit_names: tuple[str, ...]
    files: Files

    def kit(self, name: str) -> Kit:
        """
        Read one kit.

        Raises:
            NotFoundError: The pack has no kit of that name.
            InvalidInputError: One of its files is broken.
        """
        if name not in self.kit_names:
            near = difflib.get_close_matches(name, self.kit_names, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"kits: {', '.join(self.kit_names)}"
            raise NotFoundError(f"kit '{name}' is not in pack '{self.name}'", hint=hint)
        spec = self._read(f"templates/{name}/kit.yaml", KIT_SCHEMA)["spec"]
        return Kit(
            name=name,
            title=spec["title"],
            name_from=spec["nameFrom"],
            team_from=spec["teamFrom"],
            aliases=spec.get("aliases", {}),
            xrd=self._read(f"gitops/apis/{name}/definition.yaml", _XRD_SCHEMA),
        )

    def kits(self) -> tuple[Kit, ...]:
        """Read every kit; raises like `kit`."""
        return tuple(self.kit(name) for name in self.kit_names)

    def folder(self, path: str) -> Files:
        """Return the files below a folder, by their path relative to it."""
        root = PurePosixPath(path)
        return {
            file.relative_to(root): data
            for file, data in self.files.items()
            if file.is_relative_to(root)
        }

    def _read(self, path: str, schema: dict[str, Any]) -> dict[str, Any]:
        data = self.files.get(PurePosixPath(path))
        if data is None:
            raise InvalidInputError(path, None, f"is missing in pack '{self.name}'")
        return yamltext.load(data, name=path, schema=schema)


_XRD_SCHEMA = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "kind": {"const": XRD.kind},
        "spec": {
            "type": "object",
            "required": ["group", "names", "versions"],
            "properties": {
                "versions": {
                    "type": "array",
                    "contains": {"properties": {"referenceable": {"const": True}}},
                    "minContains": 1,
                    "maxContains": 1,
                }
            },
        },
    },
}


def read_pack(files: Files) -> Pack:
    """
    Read ``pack.yaml``.

    Raises:
        InvalidInputError: It is missing or broken.
    """
    data = files.get(PurePosixPath("pack.yaml"))
    if data is None:
        raise InvalidInputError("pack.yaml", None, "is missing: this is no pack")
    found = yamltext.load(data, name="pack.yaml", schema=PACK_SCHEMA)
    return Pack(found["metadata"]["name"], tuple(found["spec"]["kits"]), files)
