"""
The CRDs that Crossplane makes from an XRD: the composite's, and the claim's of a legacy XRD.

Three levels of the author's schema reach the CRD only in part (see ``dropped_keywords``), deeper
ones as Kubernetes' schema type represents them (see ``typed_schema``). Crossplane's own fields are
added on top. Equal to the CRDs of Crossplane 2.3, recorded in ``tests/conformance/xrds``.

`problems` reports why the API server would refuse the CRD of an XRD, in its words. Crossplane
accepts such an XRD all the same and reports the refusal only in an event. CEL rules are compiled
where the CEL library has a build; their cost is not estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ground.objects.kube_objects import CRD, Manifest, annotations_of, dig, labels_of, metadata
from ground.objects.values import NotPlainError, copied
from kubeschema.xrd.definition import (
    XRD_KIND,
    BrokenXrdError,
    claim_columns,
    claim_fields,
    is_legacy,
    printer_columns,
    scope_of,
    spec_fields,
    status_fields,
    update_policy_of,
    versions_of,
)
from kubeschema.xrd.typed_schema import PRESERVE, RULES, Schema, Steps, typed

_BOUNDS, _EXACT_MAX = frozenset({"minimum", "maximum"}), 2**53
NAME_MAX = 63
"""Maximum length of an XR's name, because it becomes a label value."""
KEPT_AT_TOP = ("description", RULES)
KEPT_IN_STATUS = ("required", "properties", "description", "oneOf", RULES)
KEPT_IN_SPEC = (*KEPT_IN_STATUS, PRESERVE)
_NAMES = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
_COLUMN = ("name", "type", "format", "description", "priority", "jsonPath")
_SCALE = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")


def schema_steps(index: int) -> Steps:
    """Return where the schema of the version with this index stands in its XRD."""
    return ("spec", "versions", str(index), "schema", "openAPIV3Schema")


def crd_for(xrd: Manifest) -> Manifest:
    """
    Return the CRD of the composite resource.

    The XRD is its controller, so deleting the XRD deletes the CRD. Broken XRDs get a CRD too
    (``problems`` judges them), because Crossplane renders it before the API server judges it.

    Raises:
        BrokenXrdError: A version has no schema, or one that cannot be read.
    """
    scope = scope_of(xrd)
    definition = _Definition(
        xrd=xrd,
        names=xrd["spec"].get("names") or {},
        category="composite",
        spec_fields=spec_fields(scope, update_policy_of(xrd)),
        status_fields=status_fields(legacy=is_legacy(xrd)),
        columns=printer_columns(legacy=is_legacy(xrd)),
    )
    return _crd(definition, scope="Namespaced" if scope == "Namespaced" else "Cluster")


def claim_crd_for(xrd: Manifest) -> Manifest | None:
    """
    Return the CRD of the claims that a legacy XRD offers; None if it offers none.

    Raises:
        BrokenXrdError: As `crd_for`; or a claim uses a name of the composite resource.
    """
    names = dig(xrd, "spec", "claimNames", default=None)
    if not names:
        return None
    for field in ("kind", "plural", "singular", "listKind"):
        theirs = dig(xrd, "spec", "names", field, default=None)
        if names.get(field) and names[field] == theirs:
            raise BrokenXrdError(
                f'invalid resource claim names: "{theirs}" conflicts with composite resource name',
                hint="give the claim another name; composites often begin with X",
                steps=("spec", "claimNames", field),
            )
    policy = dig(xrd, "spec", "defaultCompositeDeletePolicy", default=None) or "Background"
    definition = _Definition(
        xrd=xrd,
        names=names,
        category="claim",
        spec_fields=claim_fields(str(policy)),
        status_fields=status_fields(legacy=True),
        columns=claim_columns(),
    )
    return _crd(definition, scope="Namespaced")


@dataclass(frozen=True, slots=True)
class _Definition:
    """What differs between the two CRDs."""

    xrd: Manifest
    names: dict[str, Any]
    category: str
    spec_fields: dict[str, Any]
    status_fields: dict[str, Any]
    columns: list[dict[str, Any]]


def _crd(definition: _Definition, *, scope: str) -> Manifest:
    spec = definition.xrd["spec"]
    group, plural = spec.get("group", ""), definition.names.get("plural", "")
    name = metadata(definition.xrd).get("name", "")
    crd_spec: dict[str, Any] = {
        "group": group,
        "names": _names(definition),
        "scope": scope,
        "versions": [
            _version(definition, version, index)
            for index, version in enumerate(versions_of(definition.xrd))
        ],
    }
    if spec.get("conversion"):
        crd_spec["conversion"] = copied(spec["conversion"])
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {
            # Crossplane copies the XRD's name; the API server requires it to be <plural>.<group>.
            "name": name if definition.category == "composite" else f"{plural}.{group}",
            **_inherited(definition.xrd),
        },
        "spec": crd_spec,
    }


def _names(definition: _Definition) -> dict[str, Any]:
    names = {key: copied(definition.names[key]) for key in _NAMES if definition.names.get(key)}
    return {
        "plural": "",
        "kind": "",
        **names,
        "categories": [*names.get("categories", ()), definition.category],
    }


def _inherited(xrd: Manifest) -> dict[str, Any]:
    """Return the XRD's owner, labels and ``spec.metadata``, but not its annotations."""
    owner = {
        "apiVersion": XRD_KIND.api_version,
        "kind": XRD_KIND.kind,
        "name": metadata(xrd).get("name", ""),
        "uid": metadata(xrd).get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    extra = {"metadata": dig(xrd, "spec", "metadata", default=None) or {}}
    labels = {**labels_of(xrd), **labels_of(extra)}
    annotations = dict(annotations_of(extra))
    return {
        "ownerReferences": [owner],
        **({"labels": labels} if labels else {}),
        **({"annotations": annotations} if annotations else {}),
    }


def _version(definition: _Definition, version: dict[str, Any], index: int) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}}
    scale = dig(version, "subresources", "scale", default=None)
    if scale:
        subresources["scale"] = {key: scale[key] for key in _SCALE if scale.get(key)}
    columns = [_column(column) for column in version.get("additionalPrinterColumns") or ()]
    entry: dict[str, Any] = {
        "name": version.get("name", ""),
        "served": bool(version.get("served")),
        "storage": bool(version.get("referenceable")),
        "additionalPrinterColumns": [*columns, *copied(definition.columns)],
        "subresources": subresources,
        "schema": {"openAPIV3Schema": _schema(definition, version, index)},
    }
    if version.get("deprecated"):
        entry["deprecated"] = True
    if version.get("deprecationWarning") is not None:
        entry["deprecationWarning"] = version["deprecationWarning"]
    return entry


def _column(column: dict[str, Any]) -> dict[str, Any]:
    entries = {key: column[key] for key in _COLUMN if column.get(key)}
    return {"name": "", "type": "", "jsonPath": "", **entries}


def _schema(definition: _Definition, version: dict[str, Any], index: int) -> Schema:
    author = _author_schema(definition, version, index)
    name_max = dig(author, "properties", "metadata", "properties", "name", "maxLength")
    name = {
        "type": "string",
        "maxLength": NAME_MAX if name_max is None else min(name_max, NAME_MAX),
    }
    spec = _merged_object(author, "spec", KEPT_IN_SPEC, definition.spec_fields)
    status = _merged_object(author, "status", KEPT_IN_STATUS, definition.status_fields)
    return {
        "type": "object",
        **{key: author[key] for key in KEPT_AT_TOP if key in author},
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": name}},
            "spec": spec,
            "status": status,
        },
    }


def _author_schema(definition: _Definition, version: dict[str, Any], index: int) -> Schema:
    title = (
        "Composite Resource" if definition.category == "composite" else "Composite Resource Claim"
    )
    lead = f'cannot generate CRD for "{title}" "{metadata(definition.xrd).get("name")}": '
    if not isinstance(dig(version, "schema", "openAPIV3Schema"), dict):
        raise BrokenXrdError(
            f"{lead}custom resource validation cannot be nil",
            hint=f"version {version.get('name')} needs schema.openAPIV3Schema",
            steps=("spec", "versions", str(index)),
        )
    try:
        author = _with_doubles(version["schema"]["openAPIV3Schema"])
        return typed(copied(author), schema_steps(index))
    except NotPlainError as error:
        raise BrokenXrdError(f"{lead}{error}", steps=schema_steps(index)) from error
    except BrokenXrdError as error:
        raise BrokenXrdError(f"{lead}{error}", hint=error.hint, steps=error.steps) from error


def _with_doubles(value: Any) -> Any:
    """
    Return a schema with the bounds of machine integers as doubles.

    JSONSchemaProps has ``Maximum *float64``, so the API server reads 9223372036854775807 as 2^63.
    """
    if isinstance(value, dict):
        return {
            key: float(entry)
            if key in _BOUNDS and isinstance(entry, int) and abs(entry) > _EXACT_MAX
            else _with_doubles(entry)
            for key, entry in value.items()
        }
    return [_with_doubles(entry) for entry in value] if isinstance(value, list) else value


def _merged_object(author: Schema, name: str, kept: tuple[str, ...], ours: Schema) -> Schema:
    theirs = dig(author, "properties", name, default={})
    kept_schema = {key: theirs[key] for key in kept if key in theirs}
    properties = {**(kept_schema.get("properties") or {}), **copied(ours)}
    return {"type": "object", **kept_schema, "properties": properties}


_PART = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_1123 = re.compile(rf"{_PART}(\.{_PART})*")
_DNS_1123_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123',"
    " regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def problems(xrd: Manifest) -> tuple[str, ...]:
    """
    Return one line per fault, ``path: message``; empty if the server would accept the CRD.

    Claims add only the fault that `claim_problem` returns: their CRD has the same schemas.
    """
    try:
        crd = crd_for(xrd)
    except BrokenXrdError as error:
        return (str(error),)
    return (*_name_problems(crd), *_version_problems(crd), *_schema_problems(crd))


def claim_problem(xrd: Manifest) -> BrokenXrdError | None:
    """Return why Crossplane makes no CRD for the claims of an XRD whose XRs are valid."""
    try:
        claim_crd_for(xrd)
    except BrokenXrdError as error:
        return error
    return None


def _name_problems(crd: Manifest) -> Iterator[str]:
    name, spec = metadata(crd)["name"], crd["spec"]
    if name != f"{spec['names'].get('plural')}.{spec['group']}":
        yield (f'metadata.name: Invalid value: "{name}": must be spec.names.plural+"."+spec.group')
    if not _DNS_1123.fullmatch(spec["group"]):
        yield f'spec.group: Invalid value: "{spec["group"]}": {_DNS_1123_RULE}'
    for field in ("plural", "kind"):
        yield from _label_problem(f"spec.names.{field}", spec["names"].get(field), mixed_case=True)


def _label_problem(path: str, value: object, *, mixed_case: bool = False) -> Iterator[str]:
    """Say, as the API server does, why a name is no DNS label; it becomes a part of many texts."""
    if not value:
        yield f"{path}: Required value"
    elif not _DNS_1035.fullmatch(str(value).lower() if mixed_case else str(value)):
        rule = "may have mixed case, but should otherwise match: " if mixed_case else ""
        yield f'{path}: Invalid value: "{value}": {rule}{_DNS_1035_RULE}'


def _version_problems(crd: Manifest) -> Iterator[str]:
    versions = crd["spec"]["versions"]
    if sum(version["storage"] for version in versions) != 1:
        yield (
            "spec.versions: Invalid value: must have exactly one version marked as storage version"
        )
    for index, version in enumerate(versions):
        if "deprecationWarning" in version and not version.get("deprecated"):
            yield (
                f"spec.versions[{index}].deprecationWarning: Invalid value: "
                f'"{version["deprecationWarning"]}": can only be set for deprecated versions'
            )
    names = [version.get("name") for version in versions]
    for index, name in enumerate(names):
        yield from _label_problem(f"spec.versions[{index}].name", name)
        if name in names[:index]:
            yield f'spec.versions[{index}].name: Duplicate value: "{name}"'


def _schema_problems(crd: Manifest) -> Iterator[str]:
    from kubeschema.cel import rules_of
    from kubeschema.structural.structural_rules import check_schema  # lazy: jsonschema

    for index, version in enumerate(crd["spec"]["versions"]):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = version["schema"]["openAPIV3Schema"]
        faults = check_schema(schema, at=path)
        yield from faults
        if not faults:
            yield from (
                f"{field_path}: {message}"
                for field_path, message in rules_of(schema).faults(at=path)
            )
