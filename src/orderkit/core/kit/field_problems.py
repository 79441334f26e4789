"""
What is wrong with one field of a kit: in its XRD, or in what kit.yaml says of it.

`lease_problems` looks at the lease of a kit, and `view_problems` at what the kit reads of the
status.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from zoneinfo import available_timezones

from ground.errors import InvalidInputError
from ground.objects.kube_objects import dig
from kubeschema.cel.expressions import Subject
from kubeschema.xrd import versions_of
from orderkit.core.durations import duration_text, parse_duration
from orderkit.core.kit.form_rules import to_javascript
from orderkit.core.kit.form_values import prefix_of
from orderkit.core.kit.kit_file import Direction, How, KitChange, is_fixture
from orderkit.core.kit.kit_file_parts import Hints
from orderkit.core.kit.literals import quoted
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import Values
from orderkit.core.kit.xrd_fields import FieldShape, KitField, KitFields

Steps = tuple[str | int, ...]
_TYPES = ("string", "integer", "number", "boolean", "object", "array")


@dataclass(frozen=True, slots=True)
class KitProblem:
    """One thing that is wrong, where, and what to do about it."""

    file: Literal["kit", "xrd"]
    steps: Steps
    """Where it stands, from the top of the document."""
    value: object
    rule: str
    hint: str = ""


def xrd_problems(kit: Kit, fields: KitFields) -> Iterator[KitProblem]:
    """Yield what is wrong with the fields of a kit's XRD."""
    index = next(n for n, v in enumerate(versions_of(kit.xrd)) if v.get("referenceable"))
    root: Steps = ("spec", "versions", index, "schema", "openAPIV3Schema", "properties", "spec")
    secrets = {f.path for top in fields.top if top.needs_secret for f in top.secrets()}
    for field in fields.walk():
        for inner, steps in _with_items(field, (*root, *_schema_steps(field.path))):
            yield from _field_problems(inner, steps)
            if inner.path in secrets:
                yield _secret_problem(inner, steps)


def _schema_steps(path: str) -> Steps:
    return tuple(step for name in path.split(".") for step in ("properties", name))


def _with_items(field: KitField, steps: Steps) -> Iterator[tuple[KitField, Steps]]:
    """Yield a field, and what its entries are made of."""
    yield field, steps
    if field.item is not None:
        key = "items" if field.shape is FieldShape.LIST else "additionalProperties"
        for inner in field.item.walk():
            relative = inner.path.removeprefix(field.item.path).lstrip(".")
            below = _schema_steps(relative) if relative else ()
            yield from _with_items(inner, (*steps, key, *below))


def _field_problems(field: KitField, steps: Steps) -> Iterator[KitProblem]:
    type_ = field.schema.get("type")
    if type_ is not None and type_ not in _TYPES:
        yield KitProblem("xrd", (*steps, "type"), type_, "is not a type", nearest(type_, _TYPES))
    choices, default = field.schema.get("enum"), field.schema.get("default")
    if choices and default is not None and default not in choices:
        rule = f"is none of the values of its enum: {', '.join(map(str, choices))}"
        yield KitProblem("xrd", (*steps, "default"), default, rule, nearest(default, choices))
    pattern = field.schema.get("pattern")
    if isinstance(pattern, str) and field.hidden is None:
        yield from pattern_problems("xrd", (*steps, "pattern"), pattern)
    if field.unseen and field.required and not field.secret:
        hint = "give it a default, or a value of the platform in kit.yaml: hidden"
        yield KitProblem("xrd", (*steps, "x-ui-hidden"), field.path, "is required and hidden", hint)
    try:
        quoted(field.name)
    except ValueError:
        yield KitProblem("xrd", steps, field.name, "has a control character in its name")


def pattern_problems(
    file: Literal["kit", "xrd"], steps: Steps, pattern: str
) -> Iterator[KitProblem]:
    """Report a pattern that a form could not have as the API server reads it."""
    try:
        to_javascript(pattern)
    except ValueError as error:
        yield KitProblem(
            file, steps, pattern,
            f"is refused as a pattern: {error}",
            "the form reads it as JavaScript, the API server as RE2: write it with what both "
            "have, that is classes, groups and counts",
        )  # fmt: skip


PLAIN_TEXT_RULE = "would be a secret in plain text: orders are files in Git"


def _secret_problem(field: KitField, steps: Steps) -> KitProblem:
    """Report a secret without which no order can be placed."""
    path = field.path.replace("[]", "")
    hint = (
        f"let the XRD take a reference to a Secret, such as {field.name}SecretRef with name and "
        f"key; or, if it is not a secret, say so in kit.yaml: fields: {{{path}: {{secret: false}}}}"
        f" (kit import: --not-secret {path})"
    )
    return KitProblem("xrd", steps, field.path, PLAIN_TEXT_RULE, hint)


def picker_problems(kit: Kit, field: KitField, hints: Hints, steps: Steps) -> Iterator[KitProblem]:
    """A field that holds a name knows of which kind; an order's own name is not an entity's."""
    by_name = hints.picker is not None and hints.picker.value == "name"
    if by_name and not prefix_of(hints):
        yield KitProblem("kit", (*steps, "picker"), field.path,
                      "holds a name of more than one kind",
                      "let the filter name one kind: filter: {kind: Resource}")  # fmt: skip
    names_order = {*kit.name_from} - {kit.team_from} | {kit.xr_name}  # a team is an entity
    if by_name and field.path in names_order:
        yield KitProblem("kit", (*steps, "picker"), field.path, "names the order",
                      "leave the picker out: no entity of that name is there yet")  # fmt: skip
    if hints.refers and field.shape is not FieldShape.TEXT:
        rule = f"cannot refer to an object: it is not a text but {field.shape}"
        yield KitProblem("kit", (*steps, "refers"), field.path, rule)


def label_problems(field: KitField, hints: Hints, steps: Steps) -> Iterator[KitProblem]:
    """Report labels of values that the field does not allow."""
    choices = [str(choice) for choice in field.schema.get("enum") or ()]
    if field.item and not choices:
        choices = [str(choice) for choice in field.item.schema.get("enum") or ()]
    for value in map(str, hints.labels):
        if value not in choices:
            rule = (
                "is not a value of the field's enum" if choices else "labels a field without enum"
            )
            yield KitProblem("kit", (*steps, "labels", value), value, rule, nearest(value, choices))


def direction_problems(change: KitChange, field: KitField, steps: Steps) -> Iterator[KitProblem]:
    """Report a change that its field cannot follow."""
    if field.unseen:
        yield KitProblem("kit", steps, field.path, "is not shown in any form", "leave it out")
    if field.hidden and change.direction is not Direction.NEVER:
        rule = "is the platform's value: no order changes it"
        yield KitProblem("kit", steps, field.path, rule, "leave it out, or 'direction: never'")
    numeric = field.shape in (FieldShape.INTEGER, FieldShape.NUMBER) or bool(
        field.schema.get("enum")
    )
    if change.direction is Direction.GROW and not (
        numeric or field.shape in (FieldShape.LIST, FieldShape.MAP)
    ):
        yield KitProblem("kit", steps, field.path, f"cannot grow: it is {field.shape}",
                      "numbers, enums, lists and maps can")  # fmt: skip
    if change.direction is Direction.STEP and not (
        field.shape is FieldShape.INTEGER or field.schema.get("enum")
    ):
        yield KitProblem("kit", steps, field.path, f"has no steps: it is {field.shape}",
                      "whole numbers and enums have")  # fmt: skip


def nearest(value: object, choices: Iterable[object]) -> str:
    """Return a hint that names the nearest of the choices; empty if none is near."""
    if isinstance(value, bool) or value in ("True", "False"):
        return "YAML reads on, off, yes and no as true or false: put it in quotes"
    near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
    return f"did you mean '{near[0]}'?" if near else ""


_LEASE: Steps = ("spec", "lease")


def lease_problems(kit: Kit, fields: KitFields, spec: Mapping[str, Any]) -> Iterator[KitProblem]:
    """
    Yield what is wrong.

    Args:
        fields: The fields of the kit's XRD.
        spec: ``spec`` of kit.yaml as it was written.
    """
    written = spec.get("lease")
    if not written:
        return
    if not any(written.get(key) for key in ("default", "maximum", "field")):
        yield KitProblem("kit", _LEASE, None, "does not say how long an order lives",
                      "give it a default, a maximum or a field")  # fmt: skip
        return
    try:
        yield from _lengths(kit, written)
    except InvalidInputError as error:
        yield KitProblem("kit", _LEASE, error.value, error.rule, error.hint)
        return
    yield from _field(kit, fields)
    yield from _pause(kit, fields)
    yield from _nightly(kit, fields)


def _lengths(kit: Kit, written: Mapping[str, Any]) -> Iterator[KitProblem]:
    lease = kit.lease
    maximum = _duration(lease.maximum)
    if maximum:
        for steps, text in ((("default",), lease.default), (("extend", "by"), lease.extend.by)):
            length = _duration(text)
            if length and length > maximum:
                yield KitProblem("kit", (*_LEASE, *steps), text,
                              f"is longer than the maximum, {lease.maximum}")  # fmt: skip
    default = _duration(lease.default)
    warnings = [(text, parse_duration(text, field="warn")) for text in lease.warn]
    if not default:
        return
    for at, (text, length) in enumerate(warnings):
        if length >= default and "warn" in written:
            yield KitProblem("kit", (*_LEASE, "warn", at), text,
                          f"is not shorter than the lease, {lease.default}",
                          "warn later, or let orders live longer")  # fmt: skip
    if "warn" not in written and all(length >= default for _, length in warnings):
        yield KitProblem("kit", (*_LEASE, "default"), lease.default,
                      f"is not longer than the last warning, {lease.warn[-1]} before the end",
                      "declare shorter warnings: warn: [10m]")  # fmt: skip


def _field(kit: Kit, fields: KitFields) -> Iterator[KitProblem]:
    lease, steps = kit.lease, (*_LEASE, "field")
    if not lease.term_field:
        return
    field = fields.find(lease.term_field)
    if field is None:
        hint = nearest(lease.term_field, fields.paths)
        yield KitProblem("kit", steps, lease.term_field, "is not a field of the XRD", hint)
        return
    if field.shape is not FieldShape.TEXT or not field.visible:
        rule = f"cannot say how long: it is {field.shape}" if field.visible else "is not shown"
        yield KitProblem("kit", steps, lease.term_field, rule, "name a text such as 8h")
        return
    if not lease.default and not field.always:
        yield KitProblem("kit", steps, lease.term_field, "may be left out",
                      "give the lease a default, or make the field required")  # fmt: skip
    maximum = _duration(lease.maximum)
    shortest = min((parse_duration(text, field="warn") for text in lease.warn), default=None)
    for choice in field.schema.get("enum") or ():
        try:
            length = parse_duration(choice, field=lease.term_field)
        except InvalidInputError as error:
            yield KitProblem("kit", steps, choice, f"of its enum {error.rule}", error.hint)
            continue
        if maximum and length > maximum:
            rule = f"of its enum is longer than the maximum, {lease.maximum}"
            yield KitProblem("kit", steps, choice, rule)
        elif shortest is not None and length <= shortest:
            rule = f"of its enum is not longer than the last warning, {duration_text(shortest)}"
            yield KitProblem("kit", steps, choice, rule, "declare a shorter warning")


def _pause(kit: Kit, fields: KitFields) -> Iterator[KitProblem]:
    lease = kit.lease
    if lease.then == "pause" and not lease.pause:
        yield KitProblem("kit", (*_LEASE, "then"), "pause", "needs the values that pause an order",
                      "for example pause: {paused: true}")  # fmt: skip
    if lease.then != "pause" and lease.pause:
        yield KitProblem("kit", (*_LEASE, "pause"), None, "is for then: pause", "leave it out")
        return
    yield from _values(kit, fields, (*_LEASE, "pause"), lease.pause)


def _nightly(kit: Kit, fields: KitFields) -> Iterator[KitProblem]:
    nightly, steps = kit.lease.nightly, (*_LEASE, "nightly")
    if nightly is None:
        return
    if nightly.zone not in available_timezones():
        hint = "for example Europe/Berlin or UTC"
        yield KitProblem("kit", (*steps, "zone"), nightly.zone, "is not a time zone", hint)
    yield from _values(kit, fields, (*steps, "set"), nightly.values)
    for path in nightly.unless:
        if fields.find(path) is None:
            hint = nearest(path, fields.paths)
            yield KitProblem(
                "kit", (*steps, "unless", path), path, "is not a field of the XRD", hint
            )


def _values(
    kit: Kit, fields: KitFields, parent_steps: Steps, values: Values
) -> Iterator[KitProblem]:
    """Yield what is wrong with values that a sweep sets by itself."""
    for path, value in values.items():
        steps: Steps = (*parent_steps, path)
        field = fields.find(path)
        if field is None:
            hint = nearest(path, fields.paths)
            yield KitProblem("kit", steps, path, "is not a field of the XRD", hint)
            continue
        choices = field.schema.get("enum")
        if field.shape is FieldShape.BOOLEAN:
            choices = (True, False)
        if choices and value not in choices:
            rule = f"is not a value of '{path}'"
            yield KitProblem("kit", steps, value, rule, nearest(value, choices))
        if not any(path in change.fields and change.how is How.DIRECT for change in kit.changes):
            yield KitProblem("kit", steps, path, "is in no change that is committed directly",
                          "declare one in changes: nobody is there to review it")  # fmt: skip


def _duration(text: str) -> timedelta | None:
    return parse_duration(text, field="lease") if text else None


PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NUMBERS = ("integer", "number")


def view_problems(kit: Kit, spec: Mapping[str, Any]) -> Iterator[KitProblem]:
    """
    Yield what is wrong, in the order of the file.

    Args:
        spec: ``spec`` of kit.yaml as it was written.
    """
    outputs = list(spec.get("outputs") or ())
    facts = list(spec.get("facts") or ())
    subject = Subject.of_object(kit.spec_schema, kit.status_schema)
    for at, entry in enumerate(outputs):
        yield from _output(kit, subject, entry, ("spec", "outputs", at))
    for at, entry in enumerate(facts):
        if not is_fixture(entry):
            yield from _fact(kit, entry, ("spec", "facts", at))
    for key, entries in (("outputs", outputs), ("facts", facts)):
        yield from _names(key, entries)
    for at, entry in enumerate(spec.get("attention") or ()):
        yield from _attention(kit, subject, entry, ("spec", "attention", at))
    for at, entry in enumerate(spec.get("changes") or ()):
        if "atLeast" in entry:
            yield from _at_least(kit, entry, ("spec", "changes", at))


def _names(key: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[KitProblem]:
    names: set[str] = set()
    for at, entry in enumerate(entries):
        name = entry.get("name")
        if name in names:
            yield KitProblem("kit", ("spec", key, at, "name"), name, f"is the name of two {key}")
        names.update([name] if name else [])


def _output(
    kit: Kit, subject: Subject, entry: Mapping[str, Any], steps: Steps
) -> Iterator[KitProblem]:
    secret = entry.get("secret")
    if isinstance(secret, Mapping):
        for key in ("name", "namespace"):
            yield from _placeholders(subject, str(secret.get(key, "")), (*steps, "secret", key))
        return
    schema = yield from _shown(kit, entry["path"], (*steps, "path"))
    if entry.get("link") and schema is not None and schema.get("type", "string") != "string":
        rule = f"cannot be a link: it is a {schema['type']} in the XRD's status, not a string"
        yield KitProblem("kit", (*steps, "link"), entry["path"], rule, "leave 'link' out")
    if entry.get("link") and secret:
        yield KitProblem("kit", (*steps, "link"), entry["path"], "cannot be a link and a secret",
                      "leave one of the two out")  # fmt: skip


def _fact(kit: Kit, entry: Mapping[str, Any], steps: Steps) -> Iterator[KitProblem]:
    schema = yield from _shown(kit, entry["path"], (*steps, "path"))
    type_ = (schema or {}).get("type", "number")
    if "format" in entry and type_ not in _NUMBERS:
        rule = f"is for numbers: '{entry['path']}' is a {type_} in the XRD's status"
        yield KitProblem("kit", (*steps, "format"), entry["format"], rule, "leave it out")
    if entry.get("spend") and not entry.get("unit"):
        rule = "is money, and 'unit' does not say in which currency"
        yield KitProblem("kit", (*steps, "spend"), True, rule, "add for example 'unit: USD'")  # noqa: FBT003 - the value


def _at_least(kit: Kit, entry: Mapping[str, Any], steps: Steps) -> Iterator[KitProblem]:
    path = entry["atLeast"]["path"]
    schema = yield from _shown(kit, path, (*steps, "atLeast", "path"))
    if schema is not None and schema.get("type") not in _NUMBERS:
        rule = f"is a {schema.get('type', 'value')} in the XRD's status, not a number"
        yield KitProblem("kit", (*steps, "atLeast", "path"), path, rule, "name a number")
    types = [(field_at(kit.spec_schema, field) or {}).get("type") for field in entry["fields"]]
    if len(types) != 1 or types[0] not in _NUMBERS:
        rule = "belongs to a change of exactly one field, a number"
        hint = "make a change of that field alone"
        yield KitProblem("kit", (*steps, "atLeast"), entry["fields"], rule, hint)


def _shown(
    kit: Kit, path: str, steps: Steps
) -> Generator[KitProblem, None, Mapping[str, Any] | None]:
    """Yield why a field of the status cannot be shown; return its schema."""
    schema = status_field(kit, path)
    if schema is None:
        rule = "is not a field of the XRD's status"
        yield KitProblem("kit", steps, path, rule, nearest(path, _paths(kit.status_schema)))
    elif schema.get("type") in ("object", "array"):
        rule = f"cannot be shown: it is an {schema['type']} in the XRD's status"
        yield KitProblem("kit", steps, path, rule, "name a text, number or yes-or-no in it")
    return schema


def _attention(
    kit: Kit, subject: Subject, entry: Mapping[str, Any], steps: Steps
) -> Iterator[KitProblem]:
    fault = subject.fault(entry["when"])
    if fault:
        hint = "write a CEL condition over spec, status and metadata: status.paused"
        yield KitProblem("kit", (*steps, "when"), entry["when"], f"is refused: {fault}", hint)
    yield from _placeholders(subject, entry["sentence"], (*steps, "sentence"))
    name = entry.get("change")
    names = [change.name for change in kit.changes if change.direction != "never"]
    if name is not None and name not in names:
        hint = nearest(name, names) or f"changes: {', '.join(names) or 'none'}"
        yield KitProblem("kit", (*steps, "change"), name, "is not a change of this kit", hint)


def _placeholders(subject: Subject, text: str, steps: Steps) -> Iterator[KitProblem]:
    for match in PLACEHOLDER.finditer(text):
        if field_at(subject.schema, match[1]) is None:
            known = [
                f"{name}.{path}"
                for name, schema in subject.schema["properties"].items()
                for path in _paths(schema)
            ]
            hint = nearest(match[1], known) or "name a field: {spec.size}, {status.url}"
            rule = "is not a field of spec, status or metadata"
            yield KitProblem("kit", steps, match[1], rule, hint)


def status_field(kit: Kit, path: str) -> Mapping[str, Any] | None:
    """Return the schema of a field below ``status``; None if the XRD has none there."""
    return field_at(kit.status_schema, path)


def field_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """Return the schema of a property, by its dotted path; None if there is none."""
    steps = [step for name in path.split(".") for step in ("properties", name)]
    field: Mapping[str, Any] | None = dig(schema, *steps)
    return field


def _paths(schema: Mapping[str, Any], above: str = "") -> Iterable[str]:
    for name, child in (schema.get("properties") or {}).items():
        yield f"{above}{name}"
        yield from _paths(child, f"{above}{name}.")
