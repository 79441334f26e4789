"""
Rules about a kit's XRD: what Crossplane or the API server would refuse, drop, or never apply.

Called by ``core.kit.checking``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderkit.core.errors import OrderkitError
from orderkit.core.kit.checking.orders import NAME_MAX
from orderkit.core.kit.checking.paths import schema_at
from orderkit.core.kit.checking.rules import Rule
from orderkit.core.kit.checking.sampling import longest
from orderkit.core.kit.checking.subject import Doc, Subject, found, misshapen
from orderkit.core.kit.model import Kit
from orderkit.core.kit.reading import definition_path, read_kit
from orderkit.core.objects import dig
from orderkit.core.validate.located import Located
from orderkit.core.xrd import api_version_of, cuts, problems, schema_steps

Schema = Mapping[str, Any]
_RULES = "x-kubernetes-validations"
_OPEN = ("properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields")
_LEGACY_KEYS = ("claimNames", "connectionSecretKeys")


def check_definition(subject: Subject) -> Iterator[Located]:
    """Judge the XRD, and whether the kit can be read at all."""
    definition = subject.definition
    if definition is None:
        if not any(u.file == definition_path(subject.name) for u in subject.pack.unreadable):
            told = "the kit has no XRD"
            yield subject.in_file(Rule.XRD_REFUSED, definition_path(subject.name), told)
        return
    wrong = misshapen(definition.manifest)
    if wrong:
        told = f"{wrong} is missing or of another type"
        yield found(Rule.XRD_REFUSED, definition, wrong, told)
        return
    yield from _age(definition)
    yield from _refused(definition)
    yield from _cut(definition)
    yield from _shapes(definition)
    if subject.kit is not None:
        yield from _name(definition, subject.kit)


def _age(definition: Doc) -> Iterator[Located]:
    spec = definition.manifest.get("spec") or {}
    if api_version_of(definition.manifest) == "v1":
        told = "apiVersion v1 is served with a warning"
        yield found(Rule.XRD_LEGACY, definition, "apiVersion", told)
    for key in _LEGACY_KEYS:
        if dig(spec, key):
            told = f"spec.{key} is for legacy composite resources"
            yield found(Rule.XRD_LEGACY, definition, f"spec.{key}", told)
    if not dig(spec, "scope"):
        yield found(Rule.XRD_SCOPE, definition, "spec", "spec.scope is missing")


def _refused(definition: Doc) -> Iterator[Located]:
    for line in problems(definition.manifest):
        path, separator, told = line.partition(": ")
        rule = Rule.XRD_RULE if _RULES in path else Rule.XRD_REFUSED
        yield found(rule, definition, path if separator else "spec", told or line)


def _cut(definition: Doc) -> Iterator[Located]:
    for cut in cuts(definition.manifest):
        if cut.matters:
            path = ".".join(str(step) for step in cut.steps)
            yield found(Rule.XRD_CUT, definition, path, cut.told, hint=cut.hint)


def _shapes(definition: Doc) -> Iterator[Located]:
    """Walk the part of each version's schema that people fill in."""
    for index, version in enumerate(dig(definition.manifest, "spec", "versions", default=()) or ()):
        spec = dig(version, "schema", "openAPIV3Schema", "properties", "spec", default=None)
        if isinstance(spec, Mapping):
            at = ".".join((*map(str, schema_steps(index)), "properties", "spec"))
            yield from _walk(definition, spec, at, absent="")


def _walk(definition: Doc, schema: Schema, at: str, *, absent: str) -> Iterator[Located]:
    """
    Judge one level.

    Args:
        absent: The object on the way here that may be absent; empty if all are there.
    """
    required = set(schema.get("required") or ())
    for name, inner in (schema.get("properties") or {}).items():
        if not isinstance(inner, Mapping):
            continue
        here = f"{at}.properties.{name}"
        if absent and "default" in inner:
            told = f"the default of {name} applies only where somebody writes '{absent}: {{}}'"
            yield found(Rule.XRD_DEFAULT, definition, f"{here}.default", told)
        if inner.get("type") == "object":
            if not any(key in inner for key in _OPEN):
                told = f"{name} is an object of which nothing is declared"
                yield found(Rule.XRD_OPEN_OBJECT, definition, here, told)
            there = "default" in inner or (name in required and not absent)
            gone = absent or ("" if there else name)
            yield from _walk(definition, inner, here, absent=gone)


def _name(definition: Doc, kit: Kit) -> Iterator[Located]:
    """Names become labels: kit and fields together may have 63 characters."""
    if not kit.name_from:
        return
    lengths = [longest(schema_at(kit.spec_schema, path) or {}, NAME_MAX) for path in kit.name_from]
    total = len(kit.name) + sum(length + 1 for length in lengths)
    if total > NAME_MAX:
        fields = " and ".join(kit.name_from)
        told = f"'{kit.name}-' and {fields} together can have {total} characters or more"
        yield found(Rule.NAME_LENGTH, definition, "spec.versions", told)


def check_readable(subject: Subject) -> Iterator[Located]:
    """Tell why the kit cannot be read; for kits of which no other rule has told anything."""
    try:
        read_kit(subject.name, subject.pack.files)
    except OrderkitError as error:
        file = definition_path(subject.name)
        yield subject.in_file(Rule.XRD_REFUSED, file, str(error), hint=error.hint)
