"""
Rules about a kit's XRD: what Crossplane or the API server would refuse, drop, or never apply.

Fields of an XRD by their dotted path below ``spec``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ground.errors import OrderkitError
from ground.objects.kube_objects import dig
from kubeschema.samples import longest
from kubeschema.validate.findings import Finding, FindingSeverity, Located, Reason
from kubeschema.validate.xrd_check import definition_findings
from kubeschema.xrd import api_version_of, versions_of
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.field_problems import status_field
from orderkit.core.kit.kit_reader import definition_path
from orderkit.core.kit.model import Kit
from orderkit_workshop.check.kit_under_check import Doc, KitUnderCheck, finding_at, misshapen
from orderkit_workshop.check.rule_codes import KitRule
from orderkit_workshop.check.trial_orders import NAME_MAX

Schema = Mapping[str, Any]


def schema_at(spec: Schema, path: str) -> Schema | None:
    """Return the schema of a field; None if there is none."""
    for step in path.split("."):
        inner = (spec.get("properties") or {}).get(step)
        if not isinstance(inner, Mapping):
            return None
        spec = inner
    return spec


_RULES = "x-kubernetes-validations"
_LEGACY_KEYS = ("claimNames", "connectionSecretKeys")


def check_definition(subject: KitUnderCheck) -> Iterator[Located]:
    """Check the XRD, and whether the kit is readable."""
    definition = subject.definition
    if definition is None:
        if not any(u.file == definition_path(subject.name) for u in subject.pack.unreadable):
            message = "the kit has no XRD"
            yield subject.in_file(KitRule.XRD_REFUSED, definition_path(subject.name), message)
        return
    yield from _legacy(definition)
    yield from _definition_findings(definition)
    if subject.kit is not None:
        yield from _name(definition, subject.kit)
        yield from _columns(definition, subject.kit)


def _legacy(definition: Doc) -> Iterator[Located]:
    spec = definition.manifest.get("spec") or {}
    if api_version_of(definition.manifest) == "v1":
        message = "apiVersion v1 is served with a warning"
        yield finding_at(KitRule.XRD_LEGACY, definition, "apiVersion", message)
    for key in _LEGACY_KEYS:
        if dig(spec, key):
            message = f"spec.{key} is for legacy composite resources"
            yield finding_at(KitRule.XRD_LEGACY, definition, f"spec.{key}", message)
    if not dig(spec, "scope"):
        yield finding_at(KitRule.XRD_SCOPE, definition, "spec", "spec.scope is missing")


def _definition_findings(definition: Doc) -> Iterator[Located]:
    """Return what ``orderkit validate`` reports for an XRD, under the codes of this check."""
    explained = False
    for finding in definition_findings(definition.manifest):
        rule = _rule_of(finding)
        explained = explained or rule.severity is FindingSeverity.ERROR
        if finding.rule != "scope":  # reported already, with a higher severity for kits
            yield finding_at(rule, definition, finding.path, finding.message, hint=finding.hint)
    wrong = misshapen(definition.manifest)
    if wrong and not explained:
        message = f"{wrong} is missing or has a wrong type"
        yield finding_at(KitRule.XRD_REFUSED, definition, wrong, message)


def _rule_of(finding: Finding) -> KitRule:
    if finding.severity is FindingSeverity.ERROR:
        if finding.reason is Reason.CUT:
            return KitRule.XRD_CUT
        return KitRule.XRD_RULE if _RULES in finding.path else KitRule.XRD_REFUSED
    return (
        KitRule.XRD_UNMEANT if finding.severity is FindingSeverity.WARNING else KitRule.XRD_REMARK
    )


def _name(definition: Doc, kit: Kit) -> Iterator[Located]:
    """Names become labels: kit name and naming fields together may have 63 characters."""
    if not kit.name_from:
        return
    lengths = [longest(schema_at(kit.spec_schema, path) or {}, NAME_MAX) for path in kit.name_from]
    total = len(kit.name) + sum(length + 1 for length in lengths)
    if total > NAME_MAX:
        fields = " and ".join(kit.name_from)
        message = f"'{kit.name}-' and {fields} together can have {total} characters or more"
        yield finding_at(KitRule.NAME_LENGTH, definition, "spec.versions", message)


def _columns(definition: Doc, kit: Kit) -> Iterator[Located]:
    """
    Report outputs and facts without a printer column, with the column to add.

    The XRD is the author's own file, with comments and an order of its own: nothing rewrites it.
    """
    versions = list(versions_of(definition.manifest))
    index = next((n for n, version in enumerate(versions) if version.get("referenceable")), 0)
    shown = {
        column.get("jsonPath") for column in versions[index].get("additionalPrinterColumns") or ()
    }
    outputs = [(output.name, output.path, "") for output in kit.outputs if not output.is_secret]
    facts = [(fact.name, fact.path, ", priority: 1") for fact in kit.facts]
    for name, path, priority in (*outputs, *facts):
        schema = status_field(kit, path)
        if schema is None or f".status.{path}" in shown:
            continue
        type_ = "date" if schema.get("format") == "date-time" else schema.get("type", "string")
        column = f"{{name: {name.upper()}, type: {type_}, jsonPath: .status.{path}{priority}}}"
        field_path = f"spec.versions[{index}].additionalPrinterColumns"
        message = f"'{name}' of kit.yaml has no column: {column}"
        yield finding_at(KitRule.PRINTER_COLUMN, definition, field_path, message)


def check_readable(subject: KitUnderCheck) -> Iterator[Located]:
    """Report why the kit is unreadable, for kits without other findings."""
    try:
        checked_kit(subject.name, subject.pack.files)
    except OrderkitError as error:
        file = definition_path(subject.name)
        yield subject.in_file(KitRule.XRD_REFUSED, file, str(error), hint=error.hint)
