"""
Rules about a kit's interface: its XRD, kit.yaml and its forms, which must agree.

Of an XRD: what Crossplane or the API server would refuse, drop, or never apply. Its fields are
named by their dotted path below ``spec``.

Of patterns in forms: JavaScript must not need exponential time for them. Orderkit itself matches
patterns in linear time; the browser and the portal's backend do not. The forms are checked, so that
patterns from the XRD, its rules and kit.yaml are all found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ground.errors import OrderkitError
from ground.js_backtracking import backtracks
from ground.objects.kube_objects import dig, metadata
from ground.objects.values import ABSENT, with_value
from ground.suggestions import did_you_mean
from kubeschema.samples import longest
from kubeschema.structural.api_messages import path_of
from kubeschema.validate.findings import Finding, FindingSeverity, Located, Reason
from kubeschema.validate.xrd_check import definition_findings
from kubeschema.xrd import api_version_of, versions_of, xr_kind
from orderkit.core.kit.approval_rules import Subjects, needs_of
from orderkit.core.kit.checked_kits import checked_kit, kind_problems
from orderkit.core.kit.consistency import problems
from orderkit.core.kit.field_problems import PLAIN_TEXT_RULE, KitProblem, status_field
from orderkit.core.kit.form_layout import PAGE_MAX
from orderkit.core.kit.generated_mark import is_generated
from orderkit.core.kit.kit_file import Direction, kit_schema
from orderkit.core.kit.model import NAME_PARAMETER, TEAM_PARAMETER, Kit
from orderkit.core.kit.pack import definition_path, is_covered, kit_of
from orderkit.core.kit.xrd_fields import KitField, fields_of
from orderkit.core.secret_values import SECRET_NAME, entries_of, has_random_word
from orderkit_workshop.check.kit_under_check import (
    Doc,
    KitUnderCheck,
    finding_at,
    misshapen,
    read_docs,
)
from orderkit_workshop.check.rule_codes import KitRule
from orderkit_workshop.check.trial_runs import NAME_MAX, Order, Run, imported_specs

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
        rule = _rule_of_finding(finding)
        explained = explained or rule.severity is FindingSeverity.ERROR
        if finding.rule != "scope":  # reported already, with a higher severity for kits
            yield finding_at(rule, definition, finding.path, finding.message, hint=finding.hint)
    wrong = misshapen(definition.manifest)
    if wrong and not explained:
        message = f"{wrong} is missing or has a wrong type"
        yield finding_at(KitRule.XRD_REFUSED, definition, wrong, message)


def _rule_of_finding(finding: Finding) -> KitRule:
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
    """Report outputs and facts without a printer column, with the column to add."""
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
        # only said: the XRD is the author's own file, with comments and an order of its own
        message = f"'{name}' of kit.yaml has no column: {column}"
        yield finding_at(KitRule.PRINTER_COLUMN, definition, field_path, message)


def check_readable(subject: KitUnderCheck) -> Iterator[Located]:
    """Report why the kit is unreadable, for kits without other findings."""
    try:
        checked_kit(subject.name, subject.pack.files)
    except OrderkitError as error:
        file = definition_path(subject.name)
        yield subject.in_file(KitRule.XRD_REFUSED, file, str(error), hint=error.hint)


def check_form_patterns(subject: KitUnderCheck) -> Iterator[Located]:
    """Check every pattern of the kit's template and of its day-2 forms."""
    folders = {PurePosixPath(folder, subject.name) for folder in ("templates", "day2")}
    for path in sorted(subject.pack.files):
        if path.parent not in folders or path.suffix != ".yaml":
            continue
        data = subject.pack.files[path]
        advice = KitRule.PATTERN_BACKTRACKS.advice
        hint = f"change it in the XRD or kit.yaml: {advice}" if is_generated(data) else advice
        for doc in read_docs(path, data)[0]:
            for at, pattern in _patterns(doc.manifest.get("spec"), "spec"):
                if _is_slow(pattern):
                    message = f"{pattern!r} can read a short text in too many ways"
                    rule = KitRule.PATTERN_BACKTRACKS
                    yield finding_at(rule, doc, at, message, hint=hint)


def _is_slow(pattern: str) -> bool:
    try:
        return backtracks(pattern)
    except ValueError:
        return False  # no pattern of JavaScript: the template's own check refuses it


def _patterns(node: Any, at: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each pattern below a node."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _patterns(item, f"{at}[{index}]")
    elif isinstance(node, Mapping):
        for key, inner in node.items():
            if key == "pattern" and isinstance(inner, str):
                yield f"{at}.{key}", inner
            elif key == "patternProperties" and isinstance(inner, Mapping):
                yield from ((f"{at}.{key}", str(pattern)) for pattern in inner)
            yield from _patterns(inner, f"{at}.{key}")


VISIBLE_MAX = 5


def check_kit_yaml(subject: KitUnderCheck) -> Iterator[Located]:
    """Check kit.yaml against its schema, and against the XRD."""
    docs, broken = subject.kit_docs
    yield from broken
    wrong = [entry for doc in docs[:1] for entry in _schema(subject, doc)]
    yield from wrong
    definition = subject.definition
    if not wrong and not broken and definition and not misshapen(definition.manifest):
        yield from _consistency(subject, definition)


def _consistency(subject: KitUnderCheck, definition: Doc) -> Iterator[Located]:
    doc = subject.kit_doc
    spec = dig(doc.manifest, "spec", default=None) or {} if doc else {}
    try:
        xr_kind(definition.manifest)
        wrong = list(kind_problems(subject.name, definition.manifest, subject.pack.files))
        wrong += problems(kit_of(subject.name, spec, definition.manifest), spec)
    except OrderkitError:
        return  # no CRD, or no referenceable version: reported by the rules about the XRD
    for problem in wrong:
        message = f"{problem.value!r} {problem.rule}"
        doc_at_fault = definition if problem.file == "xrd" or doc is None else doc
        yield finding_at(
            _rule_of_problem(problem),
            doc_at_fault,
            path_of(problem.steps),
            message,
            hint=problem.hint,
        )


def _rule_of_problem(problem: KitProblem) -> KitRule:
    if problem.rule == PLAIN_TEXT_RULE:
        return KitRule.SECRET_FIELD
    if problem.file == "xrd":
        is_name = problem.steps[1] in ("names", "claimNames")
        return KitRule.KIND_TWICE if is_name else KitRule.XRD_FORM
    if problem.steps[1:2] == ("changes",) and "fields" in problem.steps:
        direction = problem.rule.startswith(("cannot grow", "has no steps"))
        return KitRule.CHANGE_DIRECTION if direction else KitRule.CHANGE_FIELDS
    if problem.rule == "is not a field of the XRD":
        return KitRule.KIT_FIELD
    return KitRule.KIT_CONSISTENCY


def check_changes(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    """Check which fields the kit's changes may touch."""
    naming = {*kit.name_from, kit.team_from, kit.xr_name}
    never = {
        path
        for change in kit.changes
        if change.direction is Direction.NEVER
        for path in change.fields
    }
    for index, change in enumerate(kit.changes):
        if change.direction is Direction.NEVER:
            continue
        for number, path in enumerate(change.fields):
            field_path = f"spec.changes[{index}].fields[{number}]"
            if path in naming:
                message = (
                    f"change '{change.name}' may touch {path}, which names the order or its team"
                )
                yield subject.in_kit(KitRule.CHANGE_NAMES, field_path, message)
            if path in never:
                message = f"{path} never changes, but is part of change '{change.name}'"
                yield subject.in_kit(KitRule.CHANGE_CONFLICT, field_path, message)


def check_import(subject: KitUnderCheck, kit: Kit, orders: Sequence[Order]) -> Iterator[Located]:
    """Warn if the kit's own rules let a team take over what exists without anybody else."""
    if kit.imports is None or not orders:
        return
    spec = orders[0].xr["spec"]
    names = dict.fromkeys(kit.imports.names.values())
    for path in (*names, kit.imports.manage):
        spec = with_value(spec, path.split("."), ABSENT)
    named, managing = (spec for _, spec in imported_specs(kit, spec))
    is_named_later = any(
        change.direction is not Direction.NEVER and is_covered(path, change.fields)
        for change in kit.changes
        for path in names
    )
    naming = [(None, named), *([(spec, named)] if is_named_later else [])]
    if not (
        _others_agree(kit, named, managing) or all(_others_agree(kit, *step) for step in naming)
    ):
        message = f"no one outside the team has to approve when {' or '.join(names)} is set"
        yield subject.in_kit(KitRule.IMPORT_AGREEMENT, "spec.import", message)


def _others_agree(kit: Kit, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Say whether a step of an order that costs nothing needs somebody outside its team."""
    requester = {"ref": "user:default/somebody", "name": "somebody", "proved": True}
    order = {"name": kit.name, "team": "team-a", "kit": kit.name, "isNew": old is None}
    cost = {"before": 0, "after": 0, "difference": 0, "currency": ""}
    needs = needs_of(kit, Subjects(old, new, requester, order, cost))
    return any("team" not in need.by for need in needs)


def check_visible(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    """Warn about long forms, fields that nothing offers, and secrets that no form asks for."""
    fields = fields_of(kit)
    for field in fields.form:
        if field.unseen or field.in_yaml or field.hidden:
            continue
        if not (_is_asked(subject, kit, field) or _may_change(kit, field.path)):
            at = f"spec.fields.{field.path}" if field.path in kit.fields else "spec"
            message = f"{field.path}: no form asks for it, and no change has it"
            yield subject.in_kit(KitRule.FIELD_UNREACHABLE, at, message)
    visible = [
        field.path
        for outer in fields.form
        if outer.asked and not outer.advanced
        for field in outer.walk()
        if field.visible and not field.fields
    ]
    if len(visible) > VISIBLE_MAX:
        names = ", ".join(visible[:PAGE_MAX]) + (", ..." if len(visible) > PAGE_MAX else "")
        message = f"the form shows {len(visible)} fields: {names}"
        yield subject.in_kit(KitRule.MANY_FIELDS, "spec", message)
    for top in fields.top:
        for field in () if top.needs_secret else top.secrets():
            message = f"{field.path} looks like a secret: no form asks for it"
            yield subject.in_kit(KitRule.SECRET_WITHHELD, "spec", message)


def check_public_keys(subject: KitUnderCheck, kit: Kit, runs: Sequence[Run]) -> Iterator[Located]:
    """Warn if a key of Secrets is declared public whose name or value looks like a secret."""
    composed = [d.manifest for run in runs for d in run.simulation.final.resources.values()]
    entries = list(entries_of([*kit.fixtures, *composed])) if kit.public_keys else []
    for key in sorted(kit.public_keys):
        values = (text for name, text in entries if name == key)
        if SECRET_NAME.search(key):
            message = f"'{key}' is declared public, and has the name of a secret"
        elif any(map(has_random_word, values)):
            message = f"'{key}' is declared public, and has a random value in a Secret of this kit"
        else:
            continue
        yield subject.in_kit(KitRule.PUBLIC_KEY, "spec.secrets.public", message)


def _is_asked(subject: KitUnderCheck, kit: Kit, field: KitField) -> bool:
    """Say whether the form of the order asks for a field of its own."""
    form = subject.pack.files.get(PurePosixPath("templates", subject.name, "template.yaml"))
    if form is None or is_generated(form):
        return field.hints.ask == "order"
    docs, _ = read_docs(PurePosixPath("template.yaml"), form)
    asked = {
        parameter
        for doc in docs[:1]
        for parameter, _ in _parameters(dig(doc.manifest, "spec", "parameters", default=None))
    }
    return not docs or kit.parameter(field.path) in asked


def _may_change(kit: Kit, path: str) -> bool:
    """Say whether a change offers a field, one inside it, or the group that has it."""
    return not kit.changes or any(
        f"{path}.".startswith(f"{changed}.") or changed.startswith(f"{path}.")
        for change in kit.changes
        if change.direction is not Direction.NEVER
        for changed in change.fields
    )


def check_hand_written_form(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    """Compare a hand-written template.yaml with the XRD."""
    path = PurePosixPath("templates", subject.name, "template.yaml")
    data = subject.pack.files.get(path)
    if data is None or is_generated(data):
        return
    docs, broken = read_docs(path, data)
    yield from broken
    for doc in docs[:1]:
        yield from _compared(doc, kit)


def _compared(doc: Doc, kit: Kit) -> Iterator[Located]:
    form_parameters = dict(_parameters(dig(doc.manifest, "spec", "parameters", default=None)))
    fields = {field.path: field for field in fields_of(kit).form}
    xrd_parameters = {kit.parameter(path) for path in fields}
    platform_parameters = {NAME_PARAMETER, TEAM_PARAMETER}
    for parameter, field_path in form_parameters.items():
        if parameter not in xrd_parameters | platform_parameters:
            hint = did_you_mean(parameter, sorted(xrd_parameters))
            message = f"the form asks for '{parameter}', which the XRD does not have"
            yield finding_at(KitRule.FORM_FIELD_UNKNOWN, doc, field_path, message, hint=hint)
    for path, field in fields.items():
        if kit.parameter(path) in form_parameters or field.hidden or not field.required:
            continue
        message = f"the XRD requires {path}, but the form has no parameter '{kit.parameter(path)}'"
        yield finding_at(KitRule.FORM_FIELD_MISSING, doc, "spec.parameters", message)


def _parameters(node: Any, at: str = "spec.parameters") -> Iterator[tuple[str, str]]:
    """Yield the form's top-level parameters with their paths, including conditional ones."""
    if isinstance(node, list):
        for index, page in enumerate(node):
            yield from _parameters(page, f"{at}[{index}]")
    elif isinstance(node, Mapping):
        for name, inner in (node.get("properties") or {}).items():
            if dig(inner, "ui:widget") != "hidden":
                yield str(name), f"{at}.properties.{name}"
        for field, dependency in (node.get("dependencies") or {}).items():
            yield from _parameters(dependency, f"{at}.dependencies.{field}")
        for key in ("oneOf", "anyOf", "allOf", "then", "else"):
            if key in node:
                yield from _parameters(node[key], f"{at}.{key}")


def _schema(subject: KitUnderCheck, doc: Doc) -> Iterator[Located]:
    import jsonschema

    errors = jsonschema.Draft202012Validator(kit_schema()).iter_errors(doc.manifest)
    for error in sorted(errors, key=lambda e: list(map(str, e.absolute_path))):
        at = path_of(error.absolute_path)
        if error.validator == "additionalProperties":
            known_keys = list(error.schema.get("properties", ()))
            for key in sorted(set(error.instance) - set(known_keys)):
                hint = did_you_mean(str(key), known_keys, f"known: {', '.join(known_keys)}")
                key_path = f"{at}.{key}" if at else str(key)
                yield finding_at(
                    KitRule.KIT_SCHEMA, doc, key_path, f"'{key}' is not a known key", hint=hint
                )
        else:
            rule = KitRule.CHANGE_FIELDS if _is_empty_change(error) else KitRule.KIT_SCHEMA
            yield finding_at(rule, doc, at, error.message)
    name = metadata(doc.manifest).get("name")
    if name != subject.name:
        message = f"metadata.name is '{name}', but the folder is '{subject.name}'"
        yield finding_at(KitRule.KIT_SCHEMA, doc, "metadata.name", message)


def _is_empty_change(error: Any) -> bool:
    path = list(error.absolute_path)
    in_change = path[:2] == ["spec", "changes"]
    empty = error.validator == "minItems" and path[-1:] == ["fields"]
    missing = error.validator == "required" and "'fields'" in error.message
    return in_change and (empty or missing)
