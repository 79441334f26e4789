"""
Check objects of one XRD or CRD, in all its versions.

The order is the server's: unknown fields, defaults, structure, then rules, which run only if the
structural faults allow it.

The rule behind a finding (`rule_of`) and how to fix it are read from the schema at its path. The
server's message says what is wrong. The hint adds the nearest known field, the author's description
of the field, or an allowed value.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import shorten
from ground.objects.kube_objects import CRD, XRD, Kind, Manifest, dig, metadata
from kubeschema import structural
from kubeschema.cel import BLOCKING, Broken, Gap, RuleSet, has_rules, rules_of
from kubeschema.field_paths import schema_at, value_at
from kubeschema.pruning import default, prune
from kubeschema.structural import SchemaProblem
from kubeschema.validate.findings import DefaultedValue, Finding, Reason, ValidationReport
from kubeschema.xrd import crd_for

__all__ = ["nearest", "shown"]


_KEYWORDS = (
    *("enum", "pattern", "format", "minimum", "maximum", "multipleOf", "minLength", "maxLength"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "type"),
)
_VALUE_MAX = 120


def shown(value: Any) -> str:
    """Write a value as JSON, shortened; empty if there is no value."""
    if value is None:
        return ""
    return shorten(json.dumps(value, ensure_ascii=False, sort_keys=True), limit=_VALUE_MAX)


def rule_of(schema: Mapping[str, Any], message: str) -> str:
    """Return the keyword that a structural message refers to, with its argument."""
    for keyword in _KEYWORDS:
        if keyword in schema and _is_about(keyword, schema[keyword], message):
            return f"{keyword} {json.dumps(schema[keyword], ensure_ascii=False)}"
    return ""


def _is_about(keyword: str, argument: Any, message: str) -> bool:
    phrases = {
        "enum": "supported values",
        "pattern": "should match",
        "format": f"must be of type {argument}",
        "minimum": "should be greater",
        "maximum": "should be less",
        "multipleOf": "multiple of",
        "minLength": "chars long",
        "maxLength": "Too long",
        "minItems": "should have at least",
        "maxItems": "Too many",
        "minProperties": "should have at least",
        "maxProperties": "Too many",
        "type": f"must be of type {argument}",
    }
    return phrases[keyword] in message


def nearest(name: str, names: Mapping[str, Any]) -> str:
    """Return a hint for a misspelt name."""
    if near := difflib.get_close_matches(name, names, n=1):
        return f"did you mean '{near[0]}'?"
    return f"fields here: {', '.join(names)}" if names else "no field is declared here"


def rule_hint(fields: Sequence[tuple[str, Any, Any]], *, is_step: bool) -> str:
    """
    Return what to do about a broken rule.

    Args:
        fields: Paths, new and old values of what it is about; the first is the finding's.
        is_step: The rule compares with the object before the change.
    """
    names = {path: path.removeprefix("spec.") for path, _, _ in fields}
    if not is_step:
        others = [f"{names[path]} {shown(new) or '(not set)'}" for path, new, _ in fields[1:]]
        return f"the rule also reads {', '.join(others)}" if others else ""
    if len(fields) == 1:
        old = shown(fields[0][2])
        return f"put back {old}" if old else ""
    back = (f"{names[path]} {shown(old) or '(not set)'}" for path, _, old in fields)
    return f"put back {', '.join(back)}"


def advice_for(schema: Mapping[str, Any], rule: str, value: Any = None) -> str:
    """Return a hint for a field whose value is wrong or missing."""
    description = shorten(str(schema.get("description") or ""), limit=160)
    return "; ".join(filter(None, (_remedy(schema, rule, value), description)))


def _remedy(schema: Mapping[str, Any], rule: str, value: Any) -> str:
    keyword, _, argument = rule.partition(" ")
    if keyword == "enum":
        choices = ", ".join(json.dumps(entry, ensure_ascii=False) for entry in schema["enum"])
        return f"use one of {choices}"
    if keyword == "required":
        return "add the field"
    if keyword == "type":
        type_ = str(schema.get("type"))
        if type_ == "string" and isinstance(value, bool | int | float):
            return f'quote it: "{json.dumps(value)}"'
        return f"write {_EXAMPLES.get(type_, type_)}"
    return f"keep to {keyword} {shorten(argument)}" if keyword in _KEYWORDS else ""


_EXAMPLES = {
    "string": "a text",
    "integer": "a whole number, without quotes",
    "number": "a number, without quotes",
    "boolean": "true or false, without quotes",
    "array": "a list: one line '- …' for each entry",
    "object": "a map of fields",
}


_REASONS = {
    "FieldValueRequired": Reason.REQUIRED,
    "FieldValueTypeInvalid": Reason.WRONG_TYPE,
    "FieldValueNotSupported": Reason.NOT_ALLOWED,
    "FieldValueTooLong": Reason.TOO_LONG,
    "FieldValueTooMany": Reason.TOO_LONG,
    "FieldValueDuplicate": Reason.DUPLICATE,
}
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_NAME_MAX = 253
"""Kubernetes' limit of an object's name."""
_WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_NAME_WAY_OUT = "lower-case letters, digits, '-' and '.'; start and end with a letter or digit"


@dataclass(frozen=True, slots=True)
class _Version:
    schema: dict[str, Any]
    rules: RuleSet
    ruled: bool
    """Whether the version has CEL rules."""


class Validator:
    """Checks objects of one kind. Rules are compiled for the first object."""

    def __init__(self, definition: Manifest) -> None:
        """
        Read an XRD (checked with the CRD that Crossplane makes from it) or a CRD.

        Raises:
            BrokenXrdError: A version of the XRD has no schema.
            ValueError: It is neither.
        """
        if definition.get("kind") not in {CRD.kind, XRD.kind}:
            raise ValueError(f"{definition.get('kind')} is neither an XRD nor a CRD")
        crd = definition if definition.get("kind") == CRD.kind else crd_for(definition)
        spec = crd["spec"]
        self.group: str = spec["group"]
        self.kind: str = spec["names"]["kind"]
        self.is_namespaced: bool = spec.get("scope") == "Namespaced"
        self._versions = {
            version["name"]: _version(version) for version in spec["versions"] if version["served"]
        }

    @property
    def versions(self) -> tuple[str, ...]:
        """The served versions."""
        return tuple(self._versions)

    def schema(self, version: str) -> dict[str, Any]:
        """Return the schema of a served version; raises KeyError for other versions."""
        return self._versions[version].schema

    def faults(self) -> tuple[tuple[str, str], ...]:
        """Return path in the schema and message for each rule that the server would refuse."""
        return tuple(
            (f"{name}: {path.removeprefix('.')}", message)
            for name, version in self._versions.items()
            for path, message in version.rules.faults()
        )

    def check(self, new: Manifest, old: Manifest | None = None) -> ValidationReport:
        """
        Judge an object, and the change from `old` if passed.

        The object is not changed. Both are read in the version that `new` names. `old` is taken as
        stored; only its defaults are filled in.

        Raises:
            ValueError: The object is not of this kind (group and kind differ).
        """
        kind = Kind.of(new)
        if (kind.group, kind.kind) != (self.group, self.kind):
            raise ValueError(f"{kind} is not a {self.kind}.{self.group}")
        version = self._versions.get(kind.version)
        if version is None:
            return self._unknown_version(kind, new)
        kept, pruned = prune(version.schema, new)
        result = default(version.schema, kept)
        problems = structural.problems(version.schema, result)
        findings = [_unknown(version.schema, new, path) for path in pruned]
        findings += [_structural(version.schema, new, result, problem) for problem in problems]
        findings += _name_findings(new)
        gaps: tuple[Gap, ...] = ()
        if not any(problem.reason in BLOCKING for problem in problems):
            ruled, gaps = _rule_findings(version, result, old)
            findings += ruled
        return ValidationReport(
            kind=kind,
            name=str(metadata(new).get("name") or ""),
            findings=tuple(sorted(findings)),
            not_evaluated=gaps,
            defaulted=tuple(_changes(kept, result, "")),
            pruned=tuple(pruned),
            result=result,
        )

    def _unknown_version(self, kind: Kind, new: Manifest) -> ValidationReport:
        finding = Finding(
            "apiVersion",
            Reason.UNKNOWN_VERSION,
            f'no matches for kind "{kind.kind}" in version "{kind.api_version}"',
            value=shown(kind.api_version),
            hint=f"served: {', '.join(f'{self.group}/{name}' for name in self._versions)}",
        )
        name = str(metadata(new).get("name") or "")
        return ValidationReport(kind, name, (finding,), (), (), (), new)


def _version(version: dict[str, Any]) -> _Version:
    schema = dig(version, "schema", "openAPIV3Schema", default=None) or {"type": "object"}
    return _Version(schema, rules_of(schema), has_rules(schema))


def _unknown(schema: dict[str, Any], new: Manifest, path: str) -> Finding:
    parent, _, name = path.rpartition(".")
    properties = schema_at(schema, parent).get("properties") or {}
    if not parent:
        properties = {**properties, "apiVersion": {}, "kind": {}, "metadata": {}}
    return Finding(
        path,
        Reason.UNKNOWN_FIELD,
        f'unknown field "{path}"',
        rule="declared fields only",
        value=shown(value_at(new, path)),
        hint=nearest(name, properties),
    )


def _structural(
    schema: dict[str, Any], new: Manifest, result: Manifest, problem: SchemaProblem
) -> Finding:
    field_schema = schema_at(schema, problem.path)
    rule, value = rule_of(field_schema, problem.message), value_at(new, problem.path)
    if value is None:
        value = value_at(result, problem.path)
    if problem.reason == "FieldValueRequired":
        rule = "required"
    return Finding(
        problem.path,
        _REASONS.get(problem.reason, Reason.INVALID),
        problem.message,
        rule=rule,
        value=shown(value),
        hint=advice_for(field_schema, rule, value),
    )


def _name_findings(new: Manifest) -> Iterator[Finding]:
    name = metadata(new).get("name")
    if name is None and isinstance(metadata(new).get("generateName"), str):
        return
    if not isinstance(name, str) or not name:
        message = "Required value: name or generateName is required"
        yield Finding("metadata.name", Reason.REQUIRED, message, hint="give the object a name")
    elif len(name) > _NAME_MAX or not _SUBDOMAIN.match(name):
        message = f'Invalid value: "{name}": must be a lowercase RFC 1123 subdomain'
        yield Finding("metadata.name", Reason.NAME, message, "RFC 1123", shown(name), _NAME_WAY_OUT)


def _rule_findings(
    version: _Version, result: Manifest, old: Manifest | None
) -> tuple[list[Finding], tuple[Gap, ...]]:
    if not version.ruled:
        return [], ()
    before = default(version.schema, old) if old is not None else None
    verdicts = version.rules.check(result, before)
    findings = [_broken(version.schema, broken, result, before) for broken in verdicts.broken]
    return findings, verdicts.gaps


def _broken(
    schema: dict[str, Any], broken: Broken, result: Manifest, before: Manifest | None
) -> Finding:
    """Return the finding about a broken rule: it names the fields that the rule is about."""
    place = broken.problem.path
    fields = [(f"{place}{f.path}".removeprefix("."), f.new, f.old) for f in broken.fields]
    # a rule of the whole object that reads name or status is about what else it reads
    fields = [entry for entry in fields if not entry[0].startswith(("metadata.", "status."))]
    fields.sort(key=lambda entry: _rank(entry[0], broken.problem.message))
    if not fields:
        fields = [(place, value_at(result, place), value_at(before, place))]
    path, value, _ = fields[0]
    hint = rule_hint(fields, is_step=broken.is_transition and before is not None)
    return Finding(
        path,
        Reason.TRANSITION if broken.is_transition else Reason.RULE,
        broken.problem.message,
        rule=broken.rule,
        value=shown(value),
        hint="; ".join(filter(None, (hint, advice_for(schema_at(schema, path), "")))),
        place=None if path == place else place,
    )


def _rank(path: str, message: str) -> int:
    """Say how surely an author's message is about a field: it names the path, the name, or none."""
    words = set(_WORD.findall(message))
    return 0 if path in words else 1 if path.rpartition(".")[2] in words else 2


def _changes(before: Any, after: Any, path: str) -> Iterator[DefaultedValue]:
    """Yield the values that `after` has and `before` lacks."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in after.items():
            field_path = f"{path}.{name}" if path else name
            if name not in before or before[name] is None is not value:
                yield DefaultedValue(field_path, value)
            else:
                yield from _changes(before[name], value, field_path)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old_entry, new_entry) in enumerate(zip(before, after, strict=True)):
            yield from _changes(old_entry, new_entry, f"{path}[{index}]")
