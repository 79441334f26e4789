"""
One field of a form: a JSON Schema property with the form's own keys.

The property refuses what the API server refuses. Rules that it cannot express are in its help text.
The API server's dialect marks an exclusive bound by a boolean, the form's by a number. An optional
list or map is omitted when it is empty, so its minimum size applies only if it has entries.

A field that the platform fills in is hidden: it has a placeholder that publishing replaces, and the
pattern of its value.

Fields that are shown only for certain answers are ``dependencies.oneOf`` of a form. Each question
gets one branch per set of answers that show the same fields, so that exactly one branch matches any
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubeschema.pruning import PRESERVE
from orderkit.core.kit import form_rules, form_values
from orderkit.core.kit.change_forms import parameter_of
from orderkit.core.kit.field_names import label_of
from orderkit.core.kit.form_values import SAFE_MAX
from orderkit.core.kit.kit_file import Direction
from orderkit.core.kit.kit_file_parts import FieldPath, Hidden, When
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import ABSENT, SCALARS, FieldShape, KitField

Schema = dict[str, Any]

NOT_BAKED = "is not set, because this pack was not published to a platform"
_HIDDEN_UI = {"ui:widget": "hidden", "ui:backstage": {"review": {"show": False}}}
_INT32_MAX = 2**31 - 1
_MACHINE_MAXIMA = (_INT32_MAX, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, SAFE_MAX)
_MACHINE_FORMATS = frozenset({"int32", "int64", "float", "double"})


def hidden_schema(field: KitField, hidden: Hidden) -> Schema:
    """
    Return the form property of a field with a value of the platform.

    Raises:
        ValueError: Its pattern has no equivalent in JavaScript.
    """
    return baked_parameter(
        field.hints.title or label_of(field.name), hidden, guard_pattern(hidden, field)
    )


def guard_pattern(hidden: Hidden, field: KitField) -> str:
    """
    Return the JavaScript pattern that a hidden field's value must match.

    Raises:
        ValueError: The pattern has no equivalent in JavaScript.
    """
    return form_rules.to_javascript(guard_of(hidden, field))


def guard_of(hidden: Hidden, field: KitField) -> str:
    """Return the pattern of a platform value: kit.yaml's, or the XRD's; empty: there is none."""
    choices = field.schema.get("enum")
    if field.shape is FieldShape.TEXT and choices:
        choices = f"^({'|'.join(re.escape(choice) for choice in choices if choice is not None)})$"
    by_shape = {
        FieldShape.INTEGER: "^(0|-?[1-9][0-9]*)$",
        FieldShape.NUMBER: r"^(0|-?[1-9][0-9]*)(\.[0-9]+)?$",
        FieldShape.BOOLEAN: "^(true|false)$",
        FieldShape.TEXT: choices or "",
    }
    return hidden.pattern or str(field.schema.get("pattern") or by_shape.get(field.shape, ""))


def baked_parameter(title: str, hidden: Hidden, pattern: str) -> Schema:
    """Return the form parameter of a platform value."""
    return {
        "title": title,
        "type": "string",
        "default": hidden.sentinel,
        "pattern": pattern,
        "errorMessage": {"pattern": NOT_BAKED},
        **_HIDDEN_UI,
    }


def conditions(
    schemas: Mapping[str, Schema], dependent: Mapping[str, tuple[str, When]]
) -> dict[str, Schema]:
    """
    Return ``dependencies``.

    Args:
        schemas: Every field side by side, by its name in the form.
        dependent: Field -> the question it depends on, and the answers that show it.
    """
    questions = dict.fromkeys(question for question, _ in dependent.values())
    return {question: _of_question(question, schemas, dependent) for question in questions}


def _of_question(
    question: str, schemas: Mapping[str, Schema], dependent: Mapping[str, tuple[str, When]]
) -> Schema:
    shown_for = {
        name: when.values
        for name, (asked_question, when) in dependent.items()
        if asked_question == question
    }
    branches: dict[tuple[str, ...], list[Any]] = {}
    known_answers = list(dict.fromkeys(_answers(schemas[question], shown_for)))
    for answer in known_answers:
        visible = tuple(name for name, values in shown_for.items() if _is_one_of(answer, values))
        branches.setdefault(visible, []).append(answer)
    alternatives = [
        {
            "properties": {
                question: {"enum": answers},
                **{name: schemas[name] for name in fields_shown},
            }
        }
        for fields_shown, answers in branches.items()
    ]
    if not _has_finite_answers(schemas[question]):
        alternatives.append({"properties": {question: {"not": {"enum": known_answers}}}})
    return {"oneOf": alternatives}


def _answers(schema: Schema, shown_for: Mapping[str, tuple[Any, ...]]) -> list[Any]:
    """Return all answers, or only those that show a field if there are infinitely many."""
    if "enum" in schema:
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [True, False]
    return [value for values in shown_for.values() for value in values]


def _has_finite_answers(schema: Schema) -> bool:
    return "enum" in schema or schema.get("type") == "boolean"


def _is_one_of(answer: object, values: tuple[object, ...]) -> bool:
    return any(isinstance(answer, bool) == isinstance(v, bool) and answer == v for v in values)


LABEL_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_TYPES = {
    FieldShape.TEXT: "string",
    FieldShape.INTEGER: "integer",
    FieldShape.NUMBER: "number",
    FieldShape.BOOLEAN: "boolean",
    FieldShape.LIST: "array",
}
_FORMATS = frozenset({"date", "date-time", "email", "hostname", "ipv4", "uri", "uuid"})
"""Formats that the form, the portal's backend and the API server all know."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""HTML tags. The portal renders help as Markdown, in which they would disappear."""
_SILENT_FORMATS = frozenset({"int32", "int64", "float", "double", "password"})


class FormError(ValueError):
    """A field of the XRD cannot be shown in a form because of `keyword` in its schema."""

    def __init__(self, path: FieldPath, keyword: str, value: object, reason: str) -> None:
        super().__init__(f"{path}.{keyword}: {reason}")
        self.path, self.keyword, self.value, self.reason = path, keyword, value, reason


def entry_schema(kit: Kit, field: KitField) -> Schema:
    """
    Return the property of one visible field, including its help; also for forms of changes.

    Raises:
        FormError: A pattern cannot be expressed in JavaScript.
    """
    return _Property(kit, field).schema()


def properties_of(kit: Kit, fields: Sequence[KitField]) -> Schema:
    """
    Return ``properties``, ``required``, ``dependencies`` and ``ui:order`` of sibling fields.

    Raises:
        FormError: A pattern cannot be expressed in JavaScript.
    """
    by_name = {parameter_of(kit, field): field for field in fields if field.visible or field.hidden}
    schemas = {
        name: hidden_schema(field, field.hidden) if field.hidden else _Property(kit, field).schema()
        for name, field in by_name.items()
    }
    required = [name for name, field in by_name.items() if field.required or field.hidden]
    conditional = {
        name: f.hints.when for name, f in by_name.items() if f.hints.when and not f.hidden
    }
    keys: Schema = {}
    if required:
        keys["required"] = required
    keys["properties"] = {n: s for n, s in schemas.items() if n not in conditional}
    if conditional:
        by_path = {field.path: name for name, field in by_name.items()}
        dependent = {name: (by_path[when.field], when) for name, when in conditional.items()}
        keys["dependencies"] = conditions(schemas, dependent)
        keys["ui:order"] = [*schemas, "*"]
    return keys


def _entered_condition(kit: Kit, field: KitField) -> Schema:
    """Return a schema that is valid if the field has a value."""
    name = parameter_of(kit, field)
    condition: Schema = {"required": [name]}
    match field.shape:
        case FieldShape.LIST:
            condition["properties"] = {name: {"minItems": 1}}
        case FieldShape.OBJECT if not field.schema.get(PRESERVE):
            inner = [_entered_condition(kit, nested) for nested in field.fields if nested.visible]
            condition["properties"] = {name: {"anyOf": inner} if inner else {"minProperties": 1}}
        case FieldShape.MAP | FieldShape.FREE | FieldShape.OBJECT:
            condition["properties"] = {name: {"minProperties": 1}}
    return condition


@dataclass(frozen=True, slots=True)
class _Property:
    """Builds the property of one field."""

    kit: Kit
    field: KitField

    def schema(self) -> Schema:
        """Return title, help and all other keys."""
        field, hints = self.field, self.field.hints
        schema: Schema = {}
        if field.name:
            schema["title"] = hints.title or label_of(field.name)
        help_text = " ".join(dict.fromkeys(self._help_sentences()))
        if help_text:
            schema["description"] = _TAG.sub(r"\\<", help_text)
        schema |= self.value()
        if self._is_said_twice():
            schema["ui:options"] = {"label": False}
        if hints.placeholder:
            schema["ui:placeholder"] = hints.placeholder
        if hints.autofocus:
            schema["ui:autofocus"] = True
        if hints.picker:
            owner = hints.picker.kind == "owner"
            schema["ui:field"] = "OwnerPicker" if owner else "EntityPicker"
            if hints.picker.filters:
                schema["ui:options"] = {"catalogFilter": [dict(f) for f in hints.picker.filters]}
        if hints.widget:
            schema["ui:widget"] = hints.widget
        return schema

    def _is_said_twice(self) -> bool:
        """Return whether a group's heading repeats the title of its only field."""
        visible = [nested for nested in self.field.fields if nested.visible]
        titles = {nested.hints.title or label_of(nested.name) for nested in visible}
        own_title = self.field.hints.title or label_of(self.field.name)
        return bool(self.field.name) and len(visible) == 1 and titles == {own_title}

    def value(self) -> Schema:
        """Return the constraints on a value and the form's initial value."""
        field = self.field
        match field.shape:
            case FieldShape.INT_OR_STRING:
                schema = self._int_or_string()
            case FieldShape.OBJECT:
                schema = {"type": "object", **self._group()}
                if field.schema.get(PRESERVE):
                    schema["additionalProperties"] = True
                return schema
            case FieldShape.LIST | FieldShape.MAP:
                schema = self._many()
            case FieldShape.FREE:
                schema = {"type": "object", "additionalProperties": True}
            case _:
                schema = self._scalar()
        if field.default is not ABSENT and field.present:
            schema = (
                {"type": schema.pop("type"), "default": field.default, **schema}
                if ("type" in schema)
                else {"default": field.default, **schema}
            )
        return schema

    def _group(self) -> Schema:
        """Make fields of an optional group required only once the group has a value."""
        group = properties_of(self.kit, self.field.fields)
        required = group.get("required")
        if not required or not self.field.may_be_empty:
            return group
        del group["required"]
        entered_conditions = [
            _entered_condition(self.kit, field) for field in self.field.fields if field.visible
        ]
        return {**group, "if": {"anyOf": entered_conditions}, "then": {"required": required}}

    def _scalar(self) -> Schema:
        field = self.field
        schema: Schema = {"type": _TYPES[field.shape]}
        errors: dict[str, str] = {}
        choices = field.schema.get("enum")
        limits = {limit.keyword: limit.value for limit in field.limits}
        errors |= {limit.keyword: limit.message for limit in field.limits if limit.message}
        if choices or "enum" in limits:
            schema |= self._choice(list(limits.pop("enum", choices) or ()))
        elif field.shape is FieldShape.TEXT:
            schema |= self._text(errors)
        elif field.shape in (FieldShape.INTEGER, FieldShape.NUMBER):
            schema |= _numbers(field.schema)
            errors = {**_machine_errors(schema | limits), **errors}
        elif field.shape is FieldShape.BOOLEAN and field.required:
            schema["ui:widget"] = "radio"  # a checkbox that was never touched would send nothing
        schema |= limits
        if errors:
            schema["errorMessage"] = errors
        return schema

    def _choice(self, choices: list[Any]) -> Schema:
        offered = [choice for choice in choices if choice is not None]
        schema: Schema = {"enum": offered}
        labels = {str(value): text for value, text in self.field.hints.labels.items()}
        if labels:
            schema["enumNames"] = [labels.get(str(choice), str(choice)) for choice in offered]
        return schema

    def _text(self, errors: dict[str, str]) -> Schema:
        field = self.field
        schema: Schema = {
            k: field.schema[k] for k in ("minLength", "maxLength") if k in field.schema
        }
        pattern = field.schema.get("pattern")
        prefix = form_values.prefix_of(field.hints)
        if prefix and "maxLength" in schema:
            schema["maxLength"] += len(prefix)
        if isinstance(pattern, str):
            js_pattern = self._javascript(pattern)
            widened = form_values.pattern_with(prefix, js_pattern) if prefix else js_pattern
            if widened is None:
                return schema
            schema["pattern"] = widened
            errors["pattern"] = field.hints.error or form_rules.described(pattern)
        elif field.path in self.kit.name_from:
            schema["pattern"] = LABEL_PATTERN
            errors["pattern"] = field.hints.error or form_rules.described(LABEL_PATTERN)
        if field.schema.get("format") in _FORMATS:
            schema["format"] = field.schema["format"]
        if field.schema.get("format") == "password":
            schema["ui:widget"] = "password"
        return schema

    def _int_or_string(self) -> Schema:
        """Let people choose the type: ``80`` and ``"80"`` are not the same."""
        text: Schema = {"title": "Text", "type": "string"}
        number: Schema = {"title": "Whole number", "type": "integer"}
        pattern = self.field.schema.get("pattern")
        if isinstance(pattern, str):
            text["pattern"] = self._javascript(pattern)
        choices = self.field.schema.get("enum")
        if choices:
            return self._choice(choices)
        return {"anyOf": [{**number, **_numbers(self.field.schema)}, text]}

    def _many(self) -> Schema:
        field, item = self.field, self.field.item
        if item is None:
            raise AssertionError("a list or a map has entries")
        inner = _Property(self.kit, item).schema()
        limits = {limit.keyword: limit.value for limit in field.limits}
        if field.shape is FieldShape.MAP:
            return {
                "type": "object",
                "additionalProperties": inner,
                **_sizes(field, "Properties", limits),
            }
        schema = {"type": "array", "items": inner, **_sizes(field, "Items", limits)}
        if field.schema.get("x-kubernetes-list-type") == "set" and item.shape in SCALARS:
            schema["uniqueItems"] = True
            if "enum" in inner:
                schema["ui:widget"] = "checkboxes"
        return schema

    def _javascript(self, pattern: str) -> str:
        try:
            return form_rules.to_javascript(pattern)
        except ValueError as error:
            raise FormError(self.field.path, "pattern", pattern, str(error)) from error

    def _help_sentences(self) -> Iterator[str]:
        """Yield the sentences of the help."""
        field = self.field
        text = field.hints.help or str(field.schema.get("description") or "")
        if text.strip():
            yield " ".join(text.split())
        format_ = field.schema.get("format")
        if format_ and format_ not in _FORMATS | _SILENT_FORMATS:
            yield f"Format: {format_}."
        if field.default is not ABSENT and not field.present and field.shape in SCALARS:
            yield f"Default: {_value_text(field.default)}."
        yield from field.sentences
        yield from self._directions()
        if field.shape is FieldShape.FREE:
            yield "Any keys; what is entered here is text."
        keys = field.schema.get("x-kubernetes-list-map-keys")
        if keys:
            yield f"No two entries have the same {' and '.join(keys)}."

    def _directions(self) -> Iterator[str]:
        path = self.field.path
        if not self.kit.changes or "[]" in path or self.field.fields:
            return
        directions = {c.direction for c in self.kit.changes if _covers(c.fields, path)}
        if not directions or directions == {Direction.NEVER}:
            yield "It cannot be changed later."
        elif directions == {Direction.GROW}:
            yield "Later it can only grow."
        elif directions == {Direction.STEP}:
            yield "Later it changes by one step at a time."


def _covers(paths: Sequence[FieldPath], path: FieldPath) -> bool:
    return any(path == covered or path.startswith(f"{covered}.") for covered in paths)


def _value_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_machine_bound(keyword: str, value: object) -> bool:
    """Return whether a keyword says how computers keep a number, which tells a person nothing."""
    if keyword == "format":
        return value in _MACHINE_FORMATS
    is_number = isinstance(value, int | float) and keyword in ("minimum", "maximum")
    return is_number and any(value in (limit, -limit, -limit - 1) for limit in _MACHINE_MAXIMA)


def _machine_errors(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return messages for bounds of a form's property that are no author's."""
    words = {"minimum": "is too small", "maximum": "is too large"}
    return {key: text for key, text in words.items() if is_machine_bound(key, schema.get(key))}


def _numbers(schema: Mapping[str, Any]) -> Schema:
    """Return the bounds of a number; integers stay in the range that JavaScript keeps exactly."""
    bounds: Schema = {}
    is_integer = schema.get("type") == "integer"
    largest = _INT32_MAX if schema.get("format") == "int32" else SAFE_MAX
    for side, limit in (("minimum", -largest - (largest == _INT32_MAX)), ("maximum", largest)):
        bound, exclusive = schema.get(side), f"exclusive{side.capitalize()}"
        if bound is None:
            if is_integer:
                bounds[side] = limit
        elif is_integer and abs(bound) > largest:
            bounds[side] = limit
        elif schema.get(exclusive) is True:
            bounds[exclusive] = bound
        else:
            bounds[side] = bound
    if "multipleOf" in schema:
        bounds["multipleOf"] = schema["multipleOf"]
    return bounds


def _sizes(field: KitField, suffix: str, limits: Mapping[str, int]) -> Schema:
    """Return minimum and maximum size; `suffix` is ``Items`` or ``Properties``."""
    smallest, largest = (
        _least(field, limits),
        limits.get(f"max{suffix}", field.schema.get(f"max{suffix}")),
    )
    bounds: Schema = {} if largest is None else {f"max{suffix}": largest}
    if smallest > 1 and field.may_be_empty:
        wrong = {f"min{suffix}": 1, f"max{suffix}": smallest - 1}
        message = f"must have at least {smallest} entries, or none"
        return {**bounds, "not": wrong, "errorMessage": {"not": message}}
    if smallest > 0 and not field.may_be_empty:
        bounds[f"min{suffix}"] = smallest
    return bounds


def _least(field: KitField, limits: Mapping[str, int]) -> int:
    own_limits = {limit.keyword: limit.value for limit in field.limits}
    minimums = [
        value
        for key in ("minItems", "minProperties")
        for value in (limits.get(key), own_limits.get(key), field.schema.get(key))
        if value is not None
    ]
    return max(minimums, default=0)
