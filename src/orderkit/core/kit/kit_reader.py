"""
Read a kit from a pack's files: ``definition.yaml`` and, if there is one, ``kit.yaml``.

Messages name file, line, key and the way out. Whether both files agree is not checked here: that
is done before a pack is published (``core.kit.consistency``). Called by ``core.kit.pack``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import InvalidInputError
from orderkit.core.kit.kit_schema import KIT_SCHEMA
from orderkit.core.kit.model import (
    Direction,
    End,
    Example,
    First,
    Gate,
    Hidden,
    Hints,
    How,
    KindRef,
    Kit,
    KitChange,
    Lease,
    Link,
    Page,
    Picker,
    Refers,
    Survivor,
    When,
    spelt_out,
)
from orderkit.core.objects.kube_objects import XRD, Manifest, annotations_of, dig
from orderkit.core.yaml import yaml11
from orderkit.core.yaml.documents import Files, data_kinds

TERASKY = "terasky.backstage.io/"
"""Annotations that the TeraSky ingestor reads; here they are defaults of kit.yaml."""
_XRD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "kind": {"const": XRD.kind},
        "spec": {
            "type": "object",
            "required": ["group", "names", "versions"],
            "properties": {
                "group": {"type": "string"},
                "names": {
                    "type": "object",
                    "required": ["kind"],
                    "properties": {"kind": {"type": "string"}},
                },
                "versions": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"schema": {"type": "object"}}},
                    "contains": {"properties": {"referenceable": {"const": True}}},
                    "minContains": 1,
                    "maxContains": 1,
                },
            },
        },
    },
}


def kit_path(name: str) -> PurePosixPath:
    """Return where a kit's kit.yaml lies in a pack."""
    return PurePosixPath("templates", name, "kit.yaml")


def definition_path(name: str) -> PurePosixPath:
    """Return where a kit's XRD lies in a pack."""
    return PurePosixPath("gitops", "apis", name, "definition.yaml")


def read_kit(name: str, files: Files) -> Kit:
    """
    Read one kit of a pack.

    Raises:
        InvalidInputError: The XRD is missing, or a file is broken; file, line and key are named.
    """
    path = definition_path(name)
    if path not in files:
        raise InvalidInputError(
            str(path), None, "is missing", hint=f"kit '{name}' needs an XRD there"
        )
    xrd = yaml11.load(files[path], name=str(path), schema=_XRD_SCHEMA)
    return kit_of(name, kit_spec(name, files), xrd)


def kit_spec(name: str, files: Files) -> dict[str, Any]:
    """
    Return ``spec`` of a kit's kit.yaml; empty if it has none.

    Raises:
        InvalidInputError: kit.yaml is broken; file, line and key are named.
    """
    return _document(name, files).get("spec") or {}


def _document(name: str, files: Files) -> dict[str, Any]:
    path = kit_path(name)
    if path not in files:
        return {}
    found = yaml11.load(files[path], name=str(path), schema=KIT_SCHEMA)
    if found["metadata"]["name"] != name:
        line = yaml11.line_of(files[path], ("metadata", "name"))
        raise InvalidInputError(
            f"{path}:{line}: metadata.name",
            found["metadata"]["name"],
            f"is not the name of its folder, '{name}'",
        )
    return found


def kit_of(name: str, spec: Mapping[str, Any], xrd: Manifest) -> Kit:
    """Return a kit with the defaults of what `spec`, checked before, leaves out."""
    kind = str(dig(xrd, "spec", "names", "kind", default=name))
    named = spec.get("nameFrom", ())
    kit = Kit(name=name, xrd=xrd)
    said = annotations_of(xrd)
    tags = re.split(r"[,\s]+", said.get(f"{TERASKY}backstage-tags", "").strip())
    return Kit(
        name=name,
        xrd=xrd,
        title=spec.get("title") or said.get(f"{TERASKY}title") or spelt_out(kind),
        description=spec.get("description")
        or said.get(f"{TERASKY}description")
        or str(kit.schema.get("description") or ""),
        owner=spec.get("owner") or said.get(f"{TERASKY}owner") or kit.owner,
        type=spec.get("type", kit.type),
        tags=tuple(spec.get("tags", filter(None, tags))),
        name_from=(named,) if isinstance(named, str) else tuple(named),
        team_from=spec.get("teamFrom", ""),
        xr_name=spec.get("xrName", kit.xr_name),
        xr_namespace=spec.get("xrNamespace", ""),
        aliases=spec.get("aliases", {}),
        pages=tuple(_page(page) for page in spec.get("pages", ())),
        fields={path: _hints(found) for path, found in spec.get("fields", {}).items()},
        hidden={
            path: Hidden(found["from"], found.get("pattern", ""))
            for path, found in spec.get("hidden", {}).items()
        },
        links=tuple(_link(link) for link in spec.get("links", ())),
        changes=tuple(_change(change) for change in spec.get("changes", ())),
        end=_end(spec.get("end", {})),
        lease=Lease(**spec.get("lease", {})),
        gate=_gate(spec["gate"]) if "gate" in spec else None,
        examples=tuple(
            Example(e["name"], e.get("title") or spelt_out(e["name"]), e["values"])
            for e in spec.get("examples", ())
        ),
        composes=tuple(map(_kind, spec.get("composes", ()))),
        requires=tuple(map(_kind, spec.get("requires", ()))),
        data_kinds=data_kinds(spec),
        facts=tuple(spec.get("facts", ())),
    )


def _page(found: Mapping[str, Any]) -> Page:
    return Page(found["title"], tuple(found["fields"]), found.get("description", ""))


def _hints(found: Mapping[str, Any]) -> Hints:
    built = ("picker", "refers", "when", "labels")
    plain = {key: value for key, value in found.items() if key not in built}
    return Hints(
        **plain,
        labels={str(value): text for value, text in found.get("labels", {}).items()},
        picker=_picker(found["picker"]) if "picker" in found else None,
        refers=_refers(found["refers"]) if "refers" in found else None,
        when=_when(found["when"]) if "when" in found else None,
    )


def _picker(found: Mapping[str, Any]) -> Picker:
    wanted = found.get("filter", ())
    return Picker(
        found["kind"],
        tuple([wanted] if isinstance(wanted, dict) else wanted),
        found.get("value", "reference"),
    )


def _refers(found: Mapping[str, Any]) -> Refers:
    return Refers(found["apiVersion"], found["kind"], found.get("ready", ""))


def _when(found: Mapping[str, Any]) -> When:
    ((path, values),) = found.items()
    return When(path, tuple(values) if isinstance(values, list) else (values,))


def _link(found: Mapping[str, Any]) -> Link:
    return Link(
        found["title"], found.get("url", ""), found.get("entityRef", ""), found.get("icon", "")
    )


def _change(found: Mapping[str, Any]) -> KitChange:
    return KitChange(
        name=found["name"],
        title=found.get("title") or spelt_out(found["name"]),
        fields=tuple(found["fields"]),
        direction=Direction(found.get("direction", "any")),
        who=tuple(found.get("who", ("team",))),
        how=How(found.get("how", "direct")),
        warning=found.get("warning", ""),
        differs=found.get("differs", False),
    )


def _end(found: Mapping[str, Any]) -> End:
    first = found.get("first")
    return End(
        found.get("repository", "archive"),
        tuple(
            Survivor(each) if isinstance(each, str) else _survivor(each)
            for each in found.get("survives", ())
        ),
        First(first["set"], first.get("until", {}), first.get("why", "")) if first else None,
    )


def _survivor(found: Mapping[str, Any]) -> Survivor:
    return Survivor(found["text"], found["unless"], found.get("name", ""), found.get("ask", ""))


def _gate(found: Mapping[str, Any]) -> Gate:
    return Gate(found["paused"], found["cause"], tuple(found["exhausted"]))


def _kind(found: Mapping[str, Any]) -> KindRef:
    return KindRef(found["apiVersion"], found["kind"], found.get("resource", ""))
