"""
Parts of an author's schema that never reach the CRD, and what to write instead.

Crossplane does not report these: it accepts the XRD and makes the CRD, but the rule is missing.
Some cuts lose a rule or a field (`Cut.matters`); others lose only notes for people or other tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ground.objects.kube_objects import Manifest, dig
from kubeschema.xrd.definition import (
    BrokenXrdError,
    claim_fields,
    is_legacy,
    scope_of,
    spec_fields,
    status_fields,
    versions_of,
)
from kubeschema.xrd.derived_crds import (
    KEPT_AT_TOP,
    KEPT_IN_SPEC,
    KEPT_IN_STATUS,
    NAME_MAX,
    schema_steps,
)
from kubeschema.xrd.typed_schema import Schema, SchemaWalk, Steps, typed

REMARKS = frozenset(
    {
        *("title", "example", "examples", "externalDocs", "$schema", "id", "$comment"),
        *("deprecated", "readOnly", "writeOnly", "description"),
    }
)
"""Keywords that do not restrict values."""
_PARTS = {"spec": KEPT_IN_SPEC, "status": KEPT_IN_STATUS}
_SHAPE = frozenset({"type", "properties"})

_TOP_HINTS = {
    "required": "the CRD always requires spec and nothing else; require fields inside spec",
    "oneOf": "write oneOf inside spec, or a rule in x-kubernetes-validations",
    "default": "write defaults at the fields inside spec",
}
_PART_HINTS = {
    "default": "write the defaults at the fields inside: an XR without spec is refused, so they "
    "always apply",
    "anyOf": "write oneOf, or a rule in x-kubernetes-validations",
    "allOf": "write the parts as one schema, or as rules in x-kubernetes-validations",
    "not": "write a rule in x-kubernetes-validations",
    "minProperties": "write a rule in x-kubernetes-validations: has(self.a) || has(self.b)",
    "maxProperties": "write a rule in x-kubernetes-validations",
    "additionalProperties": "declare a field that is a map and put additionalProperties there, "
    "or set x-kubernetes-preserve-unknown-fields: true on spec",
    "x-kubernetes-preserve-unknown-fields": "only spec keeps it; declare an object inside status "
    "with x-kubernetes-preserve-unknown-fields: true",
}
_UNKNOWN_HINTS = {
    "const": "write enum with one value",
    "examples": "write example with one value, or an example into the description",
    "if": "write a rule in x-kubernetes-validations",
    "then": "write a rule in x-kubernetes-validations",
    "else": "write a rule in x-kubernetes-validations",
    "contains": "write a rule: self.exists(entry, ...)",
    "propertyNames": "write a rule: self.all(name, name.matches(...))",
    "prefixItems": "Kubernetes knows lists of one type only; declare an object",
    "unevaluatedProperties": "leave it out: unknown fields are pruned anyway",
    "dependentRequired": "write a rule: !has(self.a) || has(self.b)",
    "dependentSchemas": "write a rule in x-kubernetes-validations",
    "$defs": "write the schema where it is used",
}


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """One thing that the author wrote and the CRD lacks."""

    steps: Steps
    """Its position in the XRD."""
    message: str
    hint: str
    matters: bool
    """A rule, a default or a field is lost. Otherwise only a note."""
    rewritten: bool = False
    """The CRD has it, with another name or value."""


def cuts(xrd: Manifest) -> tuple[Cut, ...]:
    """
    Return what Crossplane silently drops or overrides with its own, in the file's order.

    A version whose schema cannot be read yields nothing here.
    """
    all_cuts: list[Cut] = []
    for index, version in enumerate(versions_of(xrd)):
        author = dig(version, "schema", "openAPIV3Schema", default=None)
        if isinstance(author, Mapping):
            all_cuts += _of_version(xrd, author, schema_steps(index))
    return tuple(all_cuts)


def dropped(xrd: Manifest) -> tuple[Cut, ...]:
    """Return the cuts that take a rule, a default or a field away as a whole."""
    return tuple(cut for cut in cuts(xrd) if cut.matters and not cut.rewritten)


def _of_version(xrd: Manifest, author: Mapping[str, Any], at: Steps) -> list[Cut]:
    reading = SchemaWalk()
    try:
        schema = typed(author, (), reading)
    except BrokenXrdError:
        return []
    version_cuts = [*_top(schema), *_name(schema), *_parts(schema), *_overridden(xrd, schema)]
    cut_steps = {cut.steps for cut in version_cuts}
    version_cuts += [cut for cut in _unread_keywords(reading) if not _below(cut.steps, cut_steps)]
    return [replace(cut, steps=(*at, *cut.steps)) for cut in version_cuts]


def _below(steps: Steps, cut_steps: set[Steps]) -> bool:
    return any(steps[:length] in cut_steps for length in range(1, len(steps) + 1))


def _top(schema: Schema) -> Iterator[Cut]:
    for key in schema:
        if key in {*KEPT_AT_TOP, *_SHAPE} or (key, schema[key]) == ("required", ["spec"]):
            continue
        hint = _TOP_HINTS.get(key, "write it inside spec, or a rule in x-kubernetes-validations")
        yield Cut(
            (key,),
            f"Crossplane drops {key} at the top of a schema",
            hint,
            matters=key not in REMARKS,
        )
    for name in schema.get("properties") or {}:
        if name not in {*_PARTS, "metadata", "apiVersion", "kind"}:
            yield Cut(
                ("properties", name),
                f'Crossplane drops the field "{name}": only spec and status reach the CRD',
                f"move {name} into spec",
                matters=True,
            )


def _name(schema: Schema) -> Iterator[Cut]:
    """Yield what is dropped from ``metadata``: only the name's maximum length is kept."""
    meta = dig(schema, "properties", "metadata", default={})
    at = ("properties", "metadata")
    hint = "write a rule at the top: self.metadata.name.matches(...)"
    for key in set(meta) - _SHAPE - REMARKS:
        yield Cut((*at, key), f"Crossplane drops {key} of metadata", hint, matters=True)
    for field in meta.get("properties") or {}:
        if field != "name":
            message = (
                f"Crossplane drops metadata.{field}: of metadata it reads the name's maxLength"
            )
            yield Cut((*at, "properties", field), message, hint, matters=True)
    name = dig(meta, "properties", "name", default={})
    for key in set(name) - {"type", "maxLength"} - REMARKS:
        message = f"Crossplane drops {key} of metadata.name: it reads maxLength alone"
        yield Cut((*at, "properties", "name", key), message, hint, matters=True)
    if name.get("maxLength", 0) > NAME_MAX:
        message = (
            f"Crossplane cuts maxLength {name['maxLength']} to {NAME_MAX}: names become labels"
        )
        field_steps = (*at, "properties", "name", "maxLength")
        hint = f"write {NAME_MAX} or less"
        yield Cut(field_steps, message, hint, matters=True, rewritten=True)


def _parts(schema: Schema) -> Iterator[Cut]:
    for section, kept in _PARTS.items():
        theirs = dig(schema, "properties", section, default={})
        for key in theirs:
            if key in kept or key in _SHAPE:
                continue
            hint = _PART_HINTS.get(key, "write a rule in x-kubernetes-validations")
            yield Cut(
                ("properties", section, key),
                f"Crossplane drops {key} of {section}",
                hint,
                matters=key not in REMARKS,
            )


def _overridden(xrd: Manifest, schema: Schema) -> Iterator[Cut]:
    """Find the author's fields that have the names of Crossplane's fields."""
    ours = {
        "spec": set(spec_fields(scope_of(xrd), "Automatic")),
        "status": set(status_fields(legacy=is_legacy(xrd))),
    }
    if dig(xrd, "spec", "claimNames", default=None):
        ours["spec"] |= set(claim_fields("Background"))
    for section, fields in ours.items():
        for name in dig(schema, "properties", section, "properties", default={}):
            if name in fields:
                yield Cut(
                    ("properties", section, "properties", name),
                    f"Crossplane replaces {section}.{name} with its own field of that name",
                    "give the field another name",
                    matters=True,
                )


def _unread_keywords(reading: SchemaWalk) -> Iterator[Cut]:
    for steps in reading.unknown:
        keyword = steps[-1]
        remark = keyword in REMARKS or keyword.startswith("x-")
        hint = _UNKNOWN_HINTS.get(keyword, "leave it out, or write a rule")
        if remark:
            hint = "nothing in the cluster sees it; tools that read the XRD do"
        message = f"Crossplane drops {keyword}: Kubernetes' schemas have no such keyword"
        yield Cut(steps, message, hint, matters=not remark)
    for steps, keyword in reading.recased:
        message = f"Crossplane reads {steps[-1]} as {keyword}; other tools do not"
        yield Cut(steps, message, f"write {keyword}", matters=True, rewritten=True)
