"""
Judge a whole XRD: what Crossplane and the API server refuse, drop, or accept unintended.

Each message of the API server comes with a hint on how to fix it. `judge_definition` reads a file
and reports line and column; `definition_findings` judges an object. CEL rules are compiled where
the library has a build; their cost is not checked.

`schema_smells` and `column_smells` find what is accepted but probably unintended: defaults that
never apply, objects that keep no fields, patterns that the form's engine reads differently, columns
of fields that do not exist.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from ground import regular_expressions
from ground.objects.kube_objects import CRD, XRD, Kind, Manifest, dig
from kubeschema import structural
from kubeschema.pruning import INT_OR_STRING, PRESERVE, default
from kubeschema.re2_patterns import PatternError, compile_pattern
from kubeschema.validate.findings import Finding, FindingSeverity, Located, Reason, located
from kubeschema.validate.object_check import Validator
from kubeschema.xrd import (
    GROUP,
    BrokenXrdError,
    api_version_of,
    claim_problem,
    crd_for,
    cuts,
    problems,
    schema_steps,
    spec_schema,
    typed,
    versions_of,
)
from yamlfiles.manifests import ManifestError
from yamlfiles.positions import located_manifests

__all__ = ["definition_findings", "hint_for"]


Schema = Mapping[str, Any]

_COLUMN_PATH = re.compile(r"\.(spec|status)((?:\.[A-Za-z0-9_-]+)*)\Z")
_UNLIKE = re.compile(r"(\\[sS])|\\.|\[(?:\\[^sS]|[^\\\]])*\]|(\.)")
"""
Constructs that RE2 and JavaScript both accept but match differently for a few characters (in the
regular expression's groups).
"""


def schema_smells(schema: Schema, at: str) -> Iterator[Finding]:
    """
    Yield findings about the fields of a version.

    Args:
        schema: The author's, as Crossplane reads it (``xrd.typed_schema``).
        at: Path of the schema in its XRD.
    """
    for section in ("spec", "status"):
        section_schema = (schema.get("properties") or {}).get(section)
        if section_schema:
            yield from _walk(section_schema, f"{at}.properties[{section}]", section, is_part=True)


def _walk(schema: Schema, path: str, field: str, *, is_part: bool = False) -> Iterator[Finding]:
    yield from _pattern(schema, path, field)
    yield from _multiple(schema, path, field)
    if not is_part:
        yield from _empty(schema, path, field)
    for name, child in (schema.get("properties") or {}).items():
        child_path, label = f"{path}.properties[{name}]", f"{field}.{name}"
        if name not in (schema.get("required") or ()):
            yield from _orphans(child, child_path, label)
        yield from _walk(child, child_path, label)
    for keyword, sign in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(keyword), Mapping):
            yield from _walk(schema[keyword], f"{path}.{keyword}", f"{field}{sign}")


def _unmeant(
    path: str,
    message: str,
    hint: str,
    severity: FindingSeverity = FindingSeverity.WARNING,
    **details: str,
) -> Finding:
    return Finding(path, Reason.UNMEANT, message, hint=hint, severity=severity, **details)


def _orphans(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    """Find defaults inside an object that may be missing and has no default itself."""
    if schema.get("type") != "object" or "default" in schema or not schema.get("properties"):
        return
    shaped = default(schema, {})
    if shaped and not structural.problems(schema, shaped):
        yield _unmeant(
            path,
            f"the defaults inside {field} do not apply where an XR leaves {field} out",
            f"write default: {{}} at {field}",
            rule="default",
        )


def _empty(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    has_content = any(
        schema.get(key) not in (None, False) for key in ("properties", "additionalProperties")
    )
    embedded = schema.get("x-kubernetes-embedded-resource")
    if schema.get("type") == "object" and not (has_content or schema.get(PRESERVE) or embedded):
        yield _unmeant(
            path,
            f"{field} is an object without fields: whatever is written into it is dropped",
            f"declare its fields, or set {PRESERVE}: true",
            rule="properties",
        )


def _multiple(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    factor = schema.get("multipleOf")
    if isinstance(factor, float) and not factor.is_integer():
        yield _unmeant(
            f"{path}.multipleOf",
            f"the API server rounds {factor} down where {field} is a whole number, "
            "and refuses it if nothing is left",
            "count in a smaller unit, with an integer",
            rule=f"multipleOf {factor}",
        )


def _pattern(schema: Schema, path: str, field: str) -> Iterator[Finding]:
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or schema.get(INT_OR_STRING):
        return
    try:
        compile_pattern(pattern)
    except PatternError:
        return  # the server reports this itself
    try:
        regular_expressions.compile_pattern(pattern)
    except ValueError as error:
        yield _unmeant(
            f"{path}.pattern",
            f"the API server (RE2) and forms (JavaScript) do not read {pattern!r} alike: {error}",
            "generated forms get it translated where that is exact; for others write classes out: "
            "[a-zA-Z] for [[:alpha:]] or (?i), $ for \\z, (…) for (?P<name>…)",
            rule=f"pattern {pattern}",
        )
        return
    unlike = next((m[1] or m[2] for m in _UNLIKE.finditer(pattern) if m[1] or m[2]), "")
    if unlike:
        yield _unmeant(
            f"{path}.pattern",
            f"{unlike} means other characters to the API server (RE2) than to forms "
            f"(JavaScript): line ends and spaces beyond ASCII differ in {field}",
            "list the characters that are allowed, if it matters",
            FindingSeverity.NOTE,
            rule=f"pattern {pattern}",
        )


def column_smells(columns: list[Any], schema: Schema, at: str) -> Iterator[Finding]:
    """
    Yield findings about printer columns that show a field the CRD lacks.

    Args:
        schema: The CRD's.
        at: Path of the version in its XRD.
    """
    for index, column in enumerate(columns):
        json_path = column.get("jsonPath") if isinstance(column, Mapping) else None
        if isinstance(json_path, str) and not _exists(json_path, schema):
            yield _unmeant(
                f"{at}.additionalPrinterColumns[{index}].jsonPath",
                f"the column {column.get('name')} shows {json_path}, which the schema lacks",
                "name a field of spec or status, or declare it",
                rule=f"jsonPath {json_path}",
            )


def _exists(json_path: str, schema: Schema) -> bool:
    """Return whether the path exists. Filters and indices are assumed to be right."""
    match = _COLUMN_PATH.match(json_path)
    if match is None:
        return True
    level = schema["properties"][match[1]]
    for step in match[2].split(".")[1:]:
        if level.get(PRESERVE) or "additionalProperties" in level:
            return True
        if step not in (level.get("properties") or {}):
            return False
        level = level["properties"][step]
    return True


_HINTS = (
    (r"\.default: Unsupported value", "write one of the enum's values as default"),
    (r"\.default: .*failed rule", "write a default that the field's own rule accepts"),
    (r"\.default[.:\[]", "write a default that the field's own schema accepts"),
    (
        r"\.enum\[\d+\]: ",
        "quote it if it is meant as text: unquoted, YAML reads OFF, N, NO, 1 as something else",
    ),
    (
        r"undefined field",
        "name a field declared at this level; has(self.x) asks whether an optional one is there",
    ),
    (r"undeclared reference to 'oldSelf", "oldSelf exists only where old values can be found"),
    (r"\.rule: .*compilation failed", "rules are CEL: self is the value at this level"),
    (r"messageExpression", "messageExpression is CEL and gives a text"),
    (r"\.pattern: ", "patterns are RE2: no look-around, no back references"),
    (r"\.type: Required value", "give the field a type: string, integer, number, boolean, …"),
    (r"\.items: Required value", "say what the list has: items: {type: …}"),
    (r"list-map-keys", "name required fields of the items that have no duplicates"),
    (r"must not be used in nested|to be structural", "write it beside the field itself"),
    (r"metadata\.name: ", "name the XRD <plural>.<group>"),
    (r"must be empty if x-kubernetes-int-or-string", "remove type: int-or-string stands for it"),
    (r"Claims aren't|can offer claims", "remove spec.claimNames: people order the XR itself"),
    (
        r"support connection secrets|connection secrets aren't",
        "remove spec.connectionSecretKeys: compose a Secret instead",
    ),
    (r"deprecationWarning", "set deprecated: true too"),
)
_VERSION_PREFIX = re.compile(r"cannot generate CRD for \"[^\"]*\" \"[^\"]*\": ")


def judge_definition(path: PurePath, data: bytes) -> tuple[Located, ...]:
    """Judge every XRD of a file, in the file's order. Other objects are skipped."""
    try:
        manifests = located_manifests(str(path), data)
    except ManifestError as error:
        broken = Finding("", Reason.UNREADABLE, error.reason, hint=error.hint)
        return (Located(path, error.line, None, "", broken),)
    findings = [
        located(path, entry, finding.path, finding)
        for entry in manifests
        if is_definition(entry.manifest)
        for finding in definition_findings(entry.manifest)
    ]
    return tuple(sorted(findings, key=lambda located_: (located_.line or 0, located_.column or 0)))


def is_definition(manifest: Manifest) -> bool:
    """Return whether the object is an XRD of any version."""
    try:
        kind = Kind.of(manifest)
    except ValueError:
        return False
    return (kind.group, kind.kind) == (XRD.group, XRD.kind)


def definition_findings(xrd: Manifest) -> tuple[Finding, ...]:
    """Return all findings about an XRD, sorted by path."""
    own_findings = _own_findings(xrd)
    if any(finding.reason is not Reason.UNKNOWN_FIELD for finding in own_findings):
        return tuple(sorted(own_findings))
    findings = [*own_findings, *_versions(xrd), *_refusals(xrd), *_cuts(xrd), *_smells(xrd)]
    return tuple(sorted(set(findings)))


def _own_findings(xrd: Manifest) -> tuple[Finding, ...]:
    """Judge the XRD by the schema of XRDs, as the API server does first."""
    version = api_version_of(xrd)
    if version not in ("v1", "v2"):
        message = f'no matches for kind "{XRD.kind}" in version "{xrd.get("apiVersion")}"'
        hint = f"write apiVersion: {GROUP}/v2"
        return (Finding("apiVersion", Reason.UNKNOWN_VERSION, message, hint=hint),)
    findings = _validator(version).check(xrd).findings
    return tuple(replace(f, hint=f.hint or hint_for(f.message)) for f in findings)


@functools.cache
def _validator(version: str) -> Validator:
    """Return the validator of XRDs. Cached: compiling its rules takes longer than judging."""
    return Validator(_definition_of_definitions(version))


def _definition_of_definitions(version: str) -> Manifest:
    properties: dict[str, Any] = {"spec": spec_schema(version), "status": _ANYTHING}
    schema = {"type": "object", "required": ["spec"], "properties": properties}
    served = {"name": version, "served": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": XRD.kind}
    return {"kind": CRD.kind, "spec": {"group": GROUP, "names": names, "versions": [served]}}


_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _versions(xrd: Manifest) -> Iterator[Finding]:
    """Check that exactly one version is referenceable, and that it is served."""
    message = "must have exactly one version marked as storage version"
    hint = "Compositions refer to one version: set referenceable: true there and false elsewhere"
    marked = [i for i, version in enumerate(versions_of(xrd)) if version.get("referenceable")]
    if not marked:
        yield Finding("spec.versions", Reason.BROKEN_SCHEMA, f"Invalid value: {message}", hint=hint)
    for index in marked[1:]:
        first_marked = versions_of(xrd)[marked[0]]["name"]
        yield Finding(
            f"spec.versions[{index}].referenceable",
            Reason.BROKEN_SCHEMA,
            f"Invalid value: {message}; version {first_marked} is marked too",
            hint=hint,
        )
    if len(marked) == 1 and not versions_of(xrd)[marked[0]].get("served"):
        yield Finding(
            f"spec.versions[{marked[0]}].served",
            Reason.UNMEANT,
            "the referenceable version is not served: nobody can write what Compositions read",
            rule="served",
            hint="set served: true",
            severity=FindingSeverity.WARNING,
        )
    if not dig(xrd, "spec", "scope", default=None):
        yield Finding(
            "spec",
            Reason.UNMEANT,
            f"no scope: it is {_default_scope(xrd)} here, and tools without a server may think "
            "otherwise",
            rule="scope",
            hint=f"write scope: {_default_scope(xrd)}",
            severity=FindingSeverity.NOTE,
        )


def _default_scope(xrd: Manifest) -> str:
    return "LegacyCluster" if api_version_of(xrd) == "v1" else "Namespaced"


def _refusals(xrd: Manifest) -> Iterator[Finding]:
    """Yield why the API server would refuse the CRD, or Crossplane would not make it."""
    try:
        crd_for(xrd)
    except BrokenXrdError as error:
        yield _unmade(error)
        return
    for line in problems(xrd):
        path, _, message = line.partition(": ")
        if path != "spec.versions":  # reported with its position by _versions
            yield Finding(path, Reason.BROKEN_SCHEMA, message, hint=hint_for(line))
    claim = claim_problem(xrd)
    if claim is not None:
        yield _unmade(claim)


def _unmade(error: BrokenXrdError) -> Finding:
    message = _VERSION_PREFIX.sub("", str(error))
    return Finding(path_of(error.steps), Reason.BROKEN_SCHEMA, message, hint=error.hint)


def hint_for(line: str) -> str:
    """Return what to do about a refusal of the API server; empty if nothing is known."""
    return next((hint for pattern, hint in _HINTS if re.search(pattern, line)), "")


def _cuts(xrd: Manifest) -> Iterator[Finding]:
    for cut in cuts(xrd):
        severity = FindingSeverity.ERROR if cut.matters else FindingSeverity.NOTE
        yield Finding(path_of(cut.steps), Reason.CUT, cut.message, hint=cut.hint, severity=severity)


def _smells(xrd: Manifest) -> Iterator[Finding]:
    try:
        crd = crd_for(xrd)
    except BrokenXrdError:
        return  # `_refusals` has said so
    for index, version in enumerate(versions_of(xrd)):
        author = typed(version["schema"]["openAPIV3Schema"])
        yield from schema_smells(author, path_of(schema_steps(index)))
        columns = version.get("additionalPrinterColumns") or []
        crd_schema = crd["spec"]["versions"][index]["schema"]["openAPIV3Schema"]
        yield from column_smells(columns, crd_schema, f"spec.versions[{index}]")


def path_of(steps: tuple[str, ...]) -> str:
    """Write steps as the API server writes a path: ``versions[0].schema.properties[spec]``."""
    path = ""
    for before, step in zip(("", *steps), steps, strict=False):
        if step.isdigit() or before == "properties":
            path += f"[{step}]"
        else:
            path += f".{step}"
    return path.removeprefix(".")
