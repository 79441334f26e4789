"""
CompositeResourceDefinitions: the CRD that Crossplane makes of one, and what is wrong with it.

`crd_for` keeps and drops exactly what Crossplane (2.3 and later) does: three levels of the
author's schema reach the CRD in part, everything deeper as it is. `problems` says what the API
server would refuse in that CRD, in its words; `dropped` says what would vanish in silence.

Not here: claims (the claim's CRD is not made).

Called by the embedded assembly and by kit checks. Reads both API versions, v1 and v2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderkit.core.errors import OrderkitError
from orderkit.core.machinery import LEGACY, printer_columns, spec_fields, status_fields
from orderkit.core.objects import CRD, Kind, Manifest, annotations_of, dig, labels_of, metadata
from orderkit.core.plaindata import copied

GROUP = "apiextensions.crossplane.io"
XRD_KIND = Kind(GROUP, "v1", "CompositeResourceDefinition")
"""The storage version: it reads what was written as v1 and as v2."""
NAME_MAX = 63
"""The XR's name becomes a label value."""

_KEPT_AT_TOP = ("description", "x-kubernetes-validations")
_KEPT_IN_SPEC = (
    "required",
    "properties",
    "description",
    "oneOf",
    "x-kubernetes-validations",
    "x-kubernetes-preserve-unknown-fields",
)
_KEPT_IN_STATUS = ("required", "properties", "description", "oneOf", "x-kubernetes-validations")


class BrokenXrdError(OrderkitError):
    """No CRD can be made of this XRD, or the API server would refuse it."""


def scope_of(xrd: Manifest) -> str:
    """Return ``Namespaced``, ``Cluster`` or ``LegacyCluster``; each API version has its default."""
    default = LEGACY if _api_version(xrd) == "v1" else "Namespaced"
    return str(dig(xrd, "spec", "scope", default=None) or default)


def _api_version(xrd: Manifest) -> str:
    """Return the version part of ``apiVersion``."""
    return str(xrd.get("apiVersion", "")).rpartition("/")[2]


def machinery_path(xrd: Manifest) -> tuple[str, ...]:
    """Return where Crossplane keeps its fields in an XR: ``spec.crossplane``, legacy ``spec``."""
    return ("spec",) if scope_of(xrd) == LEGACY else ("spec", "crossplane")


def xr_kind(xrd: Manifest) -> Kind:
    """
    Return the kind that Compositions refer to: the referenceable version's.

    Raises:
        BrokenXrdError: No version is referenceable.
    """
    for version in dig(xrd, "spec", "versions", default=()):
        if version.get("referenceable"):
            spec = xrd["spec"]
            return Kind(spec["group"], version["name"], spec["names"]["kind"])
    raise BrokenXrdError(
        f"{metadata(xrd).get('name')}: must have exactly one version marked as storage version",
        hint="set referenceable: true on exactly one entry of spec.versions",
    )


def crd_for(xrd: Manifest) -> Manifest:
    """
    Return the CRD of the composite resource.

    The XRD is its controller, so the CRD goes with it. A CRD is returned for broken XRDs too
    (see `problems`), as Crossplane renders it before the API server judges.

    Raises:
        BrokenXrdError: A version has no schema.
    """
    spec = copied(xrd["spec"])
    names = spec["names"]
    names["categories"] = [*(names.get("categories") or []), "composite"]
    crd_spec: dict[str, Any] = {
        "group": spec["group"],
        "names": names,
        "scope": "Namespaced" if scope_of(xrd) == "Namespaced" else "Cluster",
        "versions": [_version(xrd, version) for version in spec.get("versions") or ()],
    }
    if spec.get("conversion"):
        crd_spec["conversion"] = spec["conversion"]
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": _crd_metadata(xrd),
        "spec": crd_spec,
    }


def _crd_metadata(xrd: Manifest) -> dict[str, Any]:
    """Name and labels of the XRD, ``spec.metadata`` on top; the XRD's annotations stay behind."""
    owner = {
        "apiVersion": XRD_KIND.api_version,
        "kind": XRD_KIND.kind,
        "name": metadata(xrd).get("name", ""),
        "uid": metadata(xrd).get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta: dict[str, Any] = {"name": metadata(xrd).get("name", ""), "ownerReferences": [owner]}
    extra = dig(xrd, "spec", "metadata", default={})
    labels = {**labels_of(xrd), **labels_of({"metadata": extra})}
    annotations = annotations_of({"metadata": extra})
    return {
        **meta,
        **({"labels": labels} if labels else {}),
        **({"annotations": dict(annotations)} if annotations else {}),
    }


def _version(xrd: Manifest, version: dict[str, Any]) -> dict[str, Any]:
    author = dig(version, "schema", "openAPIV3Schema")
    if not isinstance(author, dict):
        raise BrokenXrdError(
            f'cannot generate CRD for "Composite Resource" "{metadata(xrd).get("name")}": '
            "custom resource validation cannot be nil",
            hint=f"version {version.get('name')} needs schema.openAPIV3Schema",
        )
    legacy = scope_of(xrd) == LEGACY
    subresources: dict[str, Any] = {"status": {}}
    if dig(version, "subresources", "scale"):
        subresources["scale"] = version["subresources"]["scale"]
    made: dict[str, Any] = {
        "name": version.get("name", ""),
        "served": bool(version.get("served")),
        "storage": bool(version.get("referenceable")),
        "additionalPrinterColumns": [
            *(version.get("additionalPrinterColumns") or []),
            *printer_columns(legacy=legacy),
        ],
        "subresources": subresources,
        "schema": {"openAPIV3Schema": _schema(xrd, author)},
    }
    for key in ("deprecated", "deprecationWarning"):
        if version.get(key):
            made[key] = version[key]
    return made


def _schema(xrd: Manifest, author: dict[str, Any]) -> dict[str, Any]:
    spec = _part(author, "spec", _KEPT_IN_SPEC)
    spec["properties"] |= spec_fields(scope_of(xrd), _update_policy(xrd))
    status = _part(author, "status", _KEPT_IN_STATUS)
    status["properties"] |= status_fields(legacy=scope_of(xrd) == LEGACY)
    author_max = dig(author, "properties", "metadata", "properties", "name", "maxLength")
    name_max = min(author_max, NAME_MAX) if isinstance(author_max, int) else NAME_MAX
    return {
        "type": "object",
        **{key: author[key] for key in _KEPT_AT_TOP if author.get(key)},
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": name_max}},
            },
            "spec": spec,
            "status": status,
        },
    }


def _update_policy(xrd: Manifest) -> str | None:
    found = dig(xrd, "spec", "defaultCompositionUpdatePolicy")
    return str(found) if found else None


def _part(author: dict[str, Any], name: str, kept: tuple[str, ...]) -> dict[str, Any]:
    theirs = dig(author, "properties", name, default={})
    found = {key: theirs[key] for key in kept if theirs.get(key)}
    return {"type": "object", **found, "properties": dict(found.get("properties") or {})}


def problems(xrd: Manifest) -> tuple[str, ...]:
    """
    Return why the API server would refuse the XRD's CRD, in its words; empty if it would not.

    Crossplane accepts such an XRD all the same and only tells in an event. CEL rules are compiled
    where the CEL library has a build; their cost is not estimated.
    """
    try:
        crd = crd_for(xrd)
    except BrokenXrdError as error:
        return (str(error),)
    return (*_name_problems(crd), *_version_problems(crd), *_schema_problems(crd))


def _name_problems(crd: Manifest) -> Iterator[str]:
    name, spec = metadata(crd)["name"], crd["spec"]
    if name != f"{spec['names'].get('plural')}.{spec['group']}":
        yield (f'metadata.name: Invalid value: "{name}": must be spec.names.plural+"."+spec.group')


def _version_problems(crd: Manifest) -> Iterator[str]:
    versions = crd["spec"]["versions"]
    if sum(version["storage"] for version in versions) != 1:
        yield (
            "spec.versions: Invalid value: must have exactly one version marked as storage version"
        )
    names = [version["name"] for version in versions]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f'spec.versions[{index}].name: Duplicate value: "{name}"'


def _schema_problems(crd: Manifest) -> Iterator[str]:
    from orderkit.core.cel import RuleSet
    from orderkit.core.structural.checking import check_schema  # lazy: jsonschema

    for index, version in enumerate(crd["spec"]["versions"]):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = version["schema"]["openAPIV3Schema"]
        faults = check_schema(schema, at=path)
        yield from faults
        if not faults:
            yield from (f"{where}: {told}" for where, told in RuleSet(schema).faults(at=path))


def dropped(xrd: Manifest) -> tuple[str, ...]:
    """Return the paths of the author's schema that never reach the CRD, sorted per version."""
    found: list[str] = []
    for version in dig(xrd, "spec", "versions", default=()):
        schema = dig(version, "schema", "openAPIV3Schema", default={})
        found += [f"{version.get('name')}: {path}" for path in sorted(_dropped(schema, xrd))]
    return tuple(found)


def _dropped(schema: Mapping[str, Any], xrd: Manifest) -> Iterator[str]:
    harmless = {"type", "properties"}
    parts = {"spec": _KEPT_IN_SPEC, "status": _KEPT_IN_STATUS}
    for key, value in schema.items():
        if key not in {*_KEPT_AT_TOP, *harmless} and (key, value) != ("required", ["spec"]):
            yield key
    for name in schema.get("properties") or {}:
        if name not in {*parts, "metadata", "apiVersion", "kind"}:
            yield f"properties.{name}"
    for name, kept in parts.items():
        theirs = dig(schema, "properties", name, default={})
        yield from (f"properties.{name}.{key}" for key in theirs if key not in {*kept, *harmless})
    yield from _overridden(schema, xrd)


def _overridden(schema: Mapping[str, Any], xrd: Manifest) -> Iterator[str]:
    """Author fields that have the name of one of Crossplane's."""
    ours = {
        "spec": spec_fields(scope_of(xrd), None),
        "status": status_fields(legacy=scope_of(xrd) == LEGACY),
    }
    for part, fields in ours.items():
        theirs = dig(schema, "properties", part, "properties", default={})
        yield from (f"properties.{part}.properties.{key}" for key in theirs if key in fields)
