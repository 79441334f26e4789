"""
Rules about kit.yaml and hand-written forms: both must agree with the XRD.

Called by ``core.check``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.check.kit_under_check import Doc, KitUnderCheck, finding_at, misshapen, read_docs
from orderkit.core.check.rule_codes import KitRule
from orderkit.core.check.xrd_paths import leaves_of
from orderkit.core.errors import OrderkitError
from orderkit.core.kit.consistency import KitProblem, problems
from orderkit.core.kit.generated_mark import is_generated
from orderkit.core.kit.kit_reader import kit_of
from orderkit.core.kit.kit_schema import KIT_SCHEMA
from orderkit.core.kit.model import NAME_PARAMETER, TEAM_PARAMETER, Direction, Kit
from orderkit.core.objects.kube_objects import dig, metadata
from orderkit.core.schema.structural.api_messages import path_of
from orderkit.core.schema.validate.located_findings import Located
from orderkit.core.schema.xrd import xr_kind
from orderkit.core.suggestions import did_you_mean

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
        wrong = list(problems(kit_of(subject.name, spec, definition.manifest), spec))
    except OrderkitError:
        return  # no CRD, or no referenceable version: reported by the rules about the XRD
    for problem in wrong:
        message = f"{problem.value!r} {problem.rule}"
        doc_at_fault = definition if problem.file == "xrd" or doc is None else doc
        yield finding_at(
            _rule_of(problem), doc_at_fault, path_of(problem.steps), message, hint=problem.hint
        )


def _rule_of(problem: KitProblem) -> KitRule:
    if problem.file == "xrd":
        return KitRule.XRD_FORM
    if problem.steps[1:2] == ("changes",) and "fields" in problem.steps:
        direction = problem.rule.startswith(("cannot grow", "has no steps"))
        return KitRule.CHANGE_DIRECTION if direction else KitRule.CHANGE_FIELDS
    if problem.rule == "is no field of the XRD":
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


def check_visible(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    """Warn about long forms, and about fields that nothing offers."""
    for path, schema in (kit.spec_schema.get("properties") or {}).items():
        if dig(schema, "x-ui-hidden"):
            continue
        if not (_is_hidden(kit, path) or _is_asked(subject, kit, path) or _may_change(kit, path)):
            at = f"spec.fields.{path}" if path in kit.fields else "spec"
            message = f"{path}: no form asks for it, and no change has it"
            yield subject.in_kit(KitRule.FIELD_UNREACHABLE, at, message)
    leaves = leaves_of(kit.spec_schema)
    visible = [path for path in leaves if not _is_hidden(kit, path) and not _is_later(kit, path)]
    if len(visible) > VISIBLE_MAX:
        message = f"the form shows {len(visible)} fields: {', '.join(visible)}"
        yield subject.in_kit(KitRule.MANY_FIELDS, "spec", message)


def _is_asked(subject: KitUnderCheck, kit: Kit, path: str) -> bool:
    """Say whether the form of the order asks for a top-level field."""
    form = subject.pack.files.get(PurePosixPath("templates", subject.name, "template.yaml"))
    if form is None or is_generated(form):
        return not _is_later(kit, path)
    docs, _ = read_docs(PurePosixPath("template.yaml"), form)
    asked = {
        parameter
        for doc in docs[:1]
        for parameter, _ in _parameters(dig(doc.manifest, "spec", "parameters", default=None))
    }
    return not docs or kit.parameter(path) in asked


def _may_change(kit: Kit, path: str) -> bool:
    """Say whether a change offers a top-level field, or one inside it."""
    return not kit.changes or any(
        field.partition(".")[0] == path
        for change in kit.changes
        if change.direction is not Direction.NEVER
        for field in change.fields
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
    fields = kit.spec_schema.get("properties") or {}
    xrd_parameters = {kit.parameter(name) for name in fields}
    platform_parameters = {NAME_PARAMETER, TEAM_PARAMETER}
    for parameter, field_path in form_parameters.items():
        if parameter not in xrd_parameters | platform_parameters:
            hint = did_you_mean(parameter, sorted(xrd_parameters))
            message = f"the form asks for '{parameter}', which the XRD does not have"
            yield finding_at(KitRule.FORM_FIELD_UNKNOWN, doc, field_path, message, hint=hint)
    for name in kit.spec_schema.get("required") or ():
        inner = fields.get(name) or {}
        if kit.parameter(name) in form_parameters or _is_hidden(kit, name) or "default" in inner:
            continue
        message = f"the XRD requires {name}, but the form has no parameter '{kit.parameter(name)}'"
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

    errors = jsonschema.Draft202012Validator(KIT_SCHEMA).iter_errors(doc.manifest)
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


def _is_later(kit: Kit, path: str) -> bool:
    hints = kit.fields.get(path.partition(".")[0])
    return hints is not None and hints.ask == "later"


def _is_hidden(kit: Kit, path: str) -> bool:
    return any(path == hidden or path.startswith(f"{hidden}.") for hidden in kit.hidden)
