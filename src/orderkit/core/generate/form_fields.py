"""
How one field looks in a form: a property of JSON Schema with the form's own keys.

What the API server refuses the property refuses too; what it cannot, its help tells. Called by
``core.generate.form_pages`` for orders, and for forms of changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orderkit.core.kit import catalog_pickers, js_patterns
from orderkit.core.kit.change_forms import parameter_of
from orderkit.core.kit.conditional_fields import conditions
from orderkit.core.kit.form_limits import numbers, sizes
from orderkit.core.kit.hidden_fields import hidden_schema, titled
from orderkit.core.kit.model import Direction, FieldPath, Kit
from orderkit.core.kit.xrd_fields import ABSENT, SCALARS, Field, Shape
from orderkit.core.schema.structural.pruning import PRESERVE

Schema = dict[str, Any]

LABEL_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_TYPES = {
    Shape.TEXT: "string",
    Shape.INTEGER: "integer",
    Shape.NUMBER: "number",
    Shape.BOOLEAN: "boolean",
    Shape.LIST: "array",
}
_FORMATS = frozenset({"date", "date-time", "email", "hostname", "ipv4", "uri", "uuid"})
"""Formats that the form, the portal's backend and the API server know."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""What would vanish: the portal shows help as Markdown, in which it is a tag of HTML."""
_SILENT_FORMATS = frozenset({"int32", "int64", "float", "double", "password"})


class FormError(ValueError):
    """A field of the XRD cannot be shown in a form; `keyword` of its schema is why."""

    def __init__(self, path: FieldPath, keyword: str, value: object, reason: str) -> None:
        super().__init__(f"{path}.{keyword}: {reason}")
        self.path, self.keyword, self.value, self.reason = path, keyword, value, reason


def entry_schema(kit: Kit, field: Field) -> Schema:
    """
    Return how one visible field looks in a form, its help included; for forms of changes too.

    Raises:
        FormError: A pattern cannot be said in JavaScript.
    """
    return _Property(kit, field).schema()


def properties_of(kit: Kit, shown: Sequence[Field]) -> Schema:
    """
    Return ``properties``, ``required``, ``dependencies`` and ``ui:order`` of fields side by side.

    Raises:
        FormError: A pattern cannot be said in JavaScript.
    """
    own = {parameter_of(kit, field): field for field in shown if field.visible or field.hidden}
    schemas = {
        name: hidden_schema(field, field.hidden) if field.hidden else _Property(kit, field).schema()
        for name, field in own.items()
    }
    asked = [name for name, field in own.items() if field.required or field.hidden]
    conditional = {name: f.hints.when for name, f in own.items() if f.hints.when and not f.hidden}
    found: Schema = {}
    if asked:
        found["required"] = asked
    found["properties"] = {n: s for n, s in schemas.items() if n not in conditional}
    if conditional:
        by_path = {field.path: name for name, field in own.items()}
        dependent = {name: (by_path[when.field], when) for name, when in conditional.items()}
        found["dependencies"] = conditions(schemas, dependent)
        found["ui:order"] = [*schemas, "*"]
    return found


def _entered(kit: Kit, field: Field) -> Schema:
    """Return a schema that holds if something is entered in the field."""
    name = parameter_of(kit, field)
    found: Schema = {"required": [name]}
    match field.shape:
        case Shape.LIST:
            found["properties"] = {name: {"minItems": 1}}
        case Shape.OBJECT if not field.schema.get(PRESERVE):
            inner = [_entered(kit, one) for one in field.fields if one.visible]
            found["properties"] = {name: {"anyOf": inner} if inner else {"minProperties": 1}}
        case Shape.MAP | Shape.FREE | Shape.OBJECT:
            found["properties"] = {name: {"minProperties": 1}}
    return found


@dataclass(frozen=True, slots=True)
class _Property:
    """Projects one field."""

    kit: Kit
    field: Field

    def schema(self) -> Schema:
        """Return title, help and everything else."""
        field, hints = self.field, self.field.hints
        found: Schema = {}
        if field.name:
            found["title"] = hints.title or titled(field.name)
        told = " ".join(self._told())
        if told:
            found["description"] = _TAG.sub(r"\\<", told)
        found |= self.value()
        if self._is_said_twice():
            found["ui:options"] = {"label": False}
        if hints.placeholder:
            found["ui:placeholder"] = hints.placeholder
        if hints.autofocus:
            found["ui:autofocus"] = True
        if hints.picker:
            owner = hints.picker.kind == "owner"
            found["ui:field"] = "OwnerPicker" if owner else "EntityPicker"
            if hints.picker.filter:
                found["ui:options"] = {"catalogFilter": [dict(f) for f in hints.picker.filter]}
        if hints.widget:
            found["ui:widget"] = hints.widget
        return found

    def _is_said_twice(self) -> bool:
        """Say whether a group's heading is the title of the one field in it."""
        shown = [each for each in self.field.fields if each.visible]
        titles = {each.hints.title or titled(each.name) for each in shown}
        own = self.field.hints.title or titled(self.field.name)
        return bool(self.field.name) and len(shown) == 1 and titles == {own}

    def value(self) -> Schema:
        """Return what a value must be, and with which one the form begins."""
        field = self.field
        match field.shape:
            case Shape.INT_OR_STRING:
                found = self._int_or_string()
            case Shape.OBJECT:
                found = {"type": "object", **self._group()}
                if field.schema.get(PRESERVE):
                    found["additionalProperties"] = True
                return found
            case Shape.LIST | Shape.MAP:
                found = self._many()
            case Shape.FREE:
                found = {"type": "object", "additionalProperties": True}
            case _:
                found = self._scalar()
        if field.default is not ABSENT and field.present:
            found = (
                {"type": found.pop("type"), "default": field.default, **found}
                if ("type" in found)
                else {"default": field.default, **found}
            )
        return found

    def _group(self) -> Schema:
        """In a group that may be left out, fields are required only once something is entered."""
        found = properties_of(self.kit, self.field.fields)
        asked = found.get("required")
        if not asked or not self.field.may_be_empty:
            return found
        del found["required"]
        entered = [_entered(self.kit, field) for field in self.field.fields if field.visible]
        return {**found, "if": {"anyOf": entered}, "then": {"required": asked}}

    def _scalar(self) -> Schema:
        field = self.field
        found: Schema = {"type": _TYPES[field.shape]}
        errors: dict[str, str] = {}
        choices = field.schema.get("enum")
        limits = {limit.keyword: limit.value for limit in field.limits}
        errors |= {limit.keyword: limit.message for limit in field.limits if limit.message}
        if choices or "enum" in limits:
            found |= self._choice(list(limits.pop("enum", choices) or ()))
        elif field.shape is Shape.TEXT:
            found |= self._text(errors)
        elif field.shape in (Shape.INTEGER, Shape.NUMBER):
            found |= numbers(field.schema)
        elif field.shape is Shape.BOOLEAN and field.required:
            found["ui:widget"] = "radio"  # a box that was never touched would send nothing
        found |= limits
        if errors:
            found["errorMessage"] = errors
        return found

    def _choice(self, choices: list[Any]) -> Schema:
        offered = [choice for choice in choices if choice is not None]
        found: Schema = {"enum": offered}
        labels = self.field.hints.labels
        if labels:
            found["enumNames"] = [labels.get(str(choice), str(choice)) for choice in offered]
        return found

    def _text(self, errors: dict[str, str]) -> Schema:
        field = self.field
        found: Schema = {
            k: field.schema[k] for k in ("minLength", "maxLength") if k in field.schema
        }
        pattern = field.schema.get("pattern")
        prefix = catalog_pickers.prefix_of(field.hints)
        if prefix and "maxLength" in found:
            found["maxLength"] += len(prefix)
        if isinstance(pattern, str):
            written = self._javascript(pattern)
            widened = catalog_pickers.pattern_with(prefix, written) if prefix else written
            if widened is None:
                return found
            found["pattern"] = widened
            errors["pattern"] = field.hints.error or js_patterns.told(pattern)
        elif field.path in self.kit.name_from:
            found["pattern"] = LABEL_PATTERN
            errors["pattern"] = field.hints.error or js_patterns.told(LABEL_PATTERN)
        if field.schema.get("format") in _FORMATS:
            found["format"] = field.schema["format"]
        if field.schema.get("format") == "password":
            found["ui:widget"] = "password"
        return found

    def _int_or_string(self) -> Schema:
        """Let a person say which it is: ``80`` and ``"80"`` are not the same."""
        text: Schema = {"title": "Text", "type": "string"}
        number: Schema = {"title": "Whole number", "type": "integer"}
        pattern = self.field.schema.get("pattern")
        if isinstance(pattern, str):
            text["pattern"] = self._javascript(pattern)
        choices = self.field.schema.get("enum")
        if choices:
            return self._choice(choices)
        return {"anyOf": [{**number, **numbers(self.field.schema)}, text]}

    def _many(self) -> Schema:
        field, item = self.field, self.field.item
        if item is None:
            raise RuntimeError("a list or a map has entries")
        inner = _Property(self.kit, item).schema()
        limits = {limit.keyword: limit.value for limit in field.limits}
        if field.shape is Shape.MAP:
            return {
                "type": "object",
                "additionalProperties": inner,
                **sizes(field, "Properties", limits),
            }
        found = {"type": "array", "items": inner, **sizes(field, "Items", limits)}
        if field.schema.get("x-kubernetes-list-type") == "set" and item.shape in SCALARS:
            found["uniqueItems"] = True
            if "enum" in inner:
                found["ui:widget"] = "checkboxes"
        return found

    def _javascript(self, pattern: str) -> str:
        try:
            return js_patterns.to_javascript(pattern)
        except ValueError as error:
            raise FormError(self.field.path, "pattern", pattern, str(error)) from error

    def _told(self) -> Iterator[str]:
        """Yield the sentences of the help."""
        field = self.field
        text = field.hints.help or str(field.schema.get("description") or "")
        if text.strip():
            yield " ".join(text.split())
        format_ = field.schema.get("format")
        if format_ and format_ not in _FORMATS | _SILENT_FORMATS:
            yield f"Format: {format_}."
        if field.default is not ABSENT and not field.present and field.shape in SCALARS:
            yield f"Default: {_written(field.default)}."
        yield from field.sentences
        yield from self._directions()
        if field.shape is Shape.FREE:
            yield "Any keys; what is entered here is text."
        keys = field.schema.get("x-kubernetes-list-map-keys")
        if keys:
            yield f"No two entries have the same {' and '.join(keys)}."

    def _directions(self) -> Iterator[str]:
        path = self.field.path
        if not self.kit.changes or "[]" in path or self.field.fields:
            return
        found = {c.direction for c in self.kit.changes if _covers(c.fields, path)}
        if not found or found == {Direction.NEVER}:
            yield "It cannot be changed later."
        elif found == {Direction.GROW}:
            yield "Later it can only grow."
        elif found == {Direction.STEP}:
            yield "Later it changes by one step at a time."


def _covers(paths: Sequence[FieldPath], path: FieldPath) -> bool:
    return any(path == known or path.startswith(f"{known}.") for known in paths)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
