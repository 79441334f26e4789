"""
Rules about kit.yaml and about form parts that are written by hand: they agree with the XRD.

Called by ``core.check``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.check.rules import Rule
from orderkit.core.check.subject import Doc, Subject, found, misshapen, read_docs
from orderkit.core.check.xrd_paths import leaves_of
from orderkit.core.errors import OrderkitError
from orderkit.core.kit.consistency import Problem, problems
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


def check_kit_yaml(subject: Subject) -> Iterator[Located]:
    """Judge kit.yaml by its schema, and both sources by each other."""
    docs, broken = subject.kit_docs
    yield from broken
    wrong = [entry for doc in docs[:1] for entry in _schema(subject, doc)]
    yield from wrong
    definition = subject.definition
    if not wrong and not broken and definition and not misshapen(definition.manifest):
        yield from _consistency(subject, definition)


def _consistency(subject: Subject, definition: Doc) -> Iterator[Located]:
    doc = subject.kit_doc
    spec = dig(doc.manifest, "spec", default=None) or {} if doc else {}
    try:
        xr_kind(definition.manifest)
        wrong = list(problems(kit_of(subject.name, spec, definition.manifest), spec))
    except OrderkitError:
        return  # no CRD, or no referenceable version: told by the rules about the XRD
    for problem in wrong:
        told = f"{problem.value!r} {problem.rule}"
        place = definition if problem.file == "xrd" or doc is None else doc
        yield found(_rule_of(problem), place, path_of(problem.steps), told, hint=problem.hint)


def _rule_of(problem: Problem) -> Rule:
    if problem.file == "xrd":
        return Rule.XRD_FORM
    if problem.steps[1:2] == ("changes",) and "fields" in problem.steps:
        direction = problem.rule.startswith(("cannot grow", "has no steps"))
        return Rule.CHANGE_DIRECTION if direction else Rule.CHANGE_FIELDS
    if problem.rule == "is no field of the XRD":
        return Rule.KIT_FIELD
    return Rule.KIT_CONSISTENCY


def check_changes(subject: Subject, kit: Kit) -> Iterator[Located]:
    """Judge which fields the kit's changes may touch."""
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
            where = f"spec.changes[{index}].fields[{number}]"
            if path in naming:
                told = f"change '{change.name}' may touch {path}, which names the order or its team"
                yield subject.in_kit(Rule.CHANGE_NAMES, where, told)
            if path in never:
                told = f"{path} never changes, and is in change '{change.name}'"
                yield subject.in_kit(Rule.CHANGE_CONFLICT, where, told)


def check_visible(subject: Subject, kit: Kit) -> Iterator[Located]:
    """Warn of long forms."""
    leaves = leaves_of(kit.spec_schema)
    shown = [path for path in leaves if not _is_hidden(kit, path) and not _is_later(kit, path)]
    if len(shown) > VISIBLE_MAX:
        told = f"the form shows {len(shown)} fields: {', '.join(shown)}"
        yield subject.in_kit(Rule.MANY_FIELDS, "spec", told)


def check_hand_written_form(subject: Subject, kit: Kit) -> Iterator[Located]:
    """Compare a template.yaml that was written by hand with the XRD."""
    path = PurePosixPath("templates", subject.name, "template.yaml")
    data = subject.pack.files.get(path)
    if data is None or is_generated(data):
        return
    docs, broken = read_docs(path, data)
    yield from broken
    for doc in docs[:1]:
        yield from _compared(doc, kit)


def _compared(doc: Doc, kit: Kit) -> Iterator[Located]:
    asked = dict(_parameters(dig(doc.manifest, "spec", "parameters", default=None)))
    fields = kit.spec_schema.get("properties") or {}
    known = {kit.parameter(name) for name in fields}
    own = {NAME_PARAMETER, TEAM_PARAMETER}
    for parameter, where in asked.items():
        if parameter not in known | own:
            hint = did_you_mean(parameter, sorted(known))
            told = f"the form asks for '{parameter}', and the XRD has no such field"
            yield found(Rule.FORM_FIELD_UNKNOWN, doc, where, told, hint=hint)
    for name in kit.spec_schema.get("required") or ():
        inner = fields.get(name) or {}
        if kit.parameter(name) in asked or _is_hidden(kit, name) or "default" in inner:
            continue
        told = f"the XRD requires {name}, and the form has no parameter '{kit.parameter(name)}'"
        yield found(Rule.FORM_FIELD_MISSING, doc, "spec.parameters", told)


def _parameters(node: Any, at: str = "spec.parameters") -> Iterator[tuple[str, str]]:
    """Yield what the form asks for at the top and where it stands, conditional fields too."""
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


def _schema(subject: Subject, doc: Doc) -> Iterator[Located]:
    import jsonschema

    errors = jsonschema.Draft202012Validator(KIT_SCHEMA).iter_errors(doc.manifest)
    for error in sorted(errors, key=lambda e: list(map(str, e.absolute_path))):
        at = path_of(error.absolute_path)
        if error.validator == "additionalProperties":
            known = list(error.schema.get("properties", ()))
            for key in sorted(set(error.instance) - set(known)):
                hint = did_you_mean(str(key), known, f"known: {', '.join(known)}")
                where = f"{at}.{key}" if at else str(key)
                yield found(Rule.KIT_SCHEMA, doc, where, f"'{key}' is no known key", hint=hint)
        else:
            rule = Rule.CHANGE_FIELDS if _is_empty_change(error) else Rule.KIT_SCHEMA
            yield found(rule, doc, at, error.message)
    name = metadata(doc.manifest).get("name")
    if name != subject.name:
        told = f"metadata.name is '{name}', and the folder is '{subject.name}'"
        yield found(Rule.KIT_SCHEMA, doc, "metadata.name", told)


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
