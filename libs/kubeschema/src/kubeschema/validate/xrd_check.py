"""
Judge a whole XRD: what Crossplane and the API server refuse, drop, or accept unintended.

Each message of the API server comes with a hint on how to fix it. `judge_definition` reads a file
and reports line and column; `definition_findings` judges an object. CEL rules are compiled where
the library has a build; their cost is not checked.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from ground.objects.kube_objects import CRD, XRD, Kind, Manifest, dig
from kubeschema.validate.findings import Finding, FindingSeverity, Reason
from kubeschema.validate.located_findings import Located, located
from kubeschema.validate.object_check import Validator
from kubeschema.validate.xrd_smells import column_smells, schema_smells
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
        return
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
