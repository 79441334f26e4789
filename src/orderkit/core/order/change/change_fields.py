"""
Resolve the fields that a person names or fills in, and apply edits to a spec.

A field is named by its path below ``spec`` in the XRD, or by its form parameter. Typed values are
parsed by the field's type: a text field keeps its text as it is.

`entered_edits` turns the answers of a form into edits: only what differs from the values that the
form showed. A form sends all its fields, touched or not: empty lists and maps for fields that
nobody filled in, and nothing for fields that were cleared. So an untouched field is not an edit
(somebody else may have changed it in the meantime without a conflict), an empty value of an absent
field is not an edit, and a missing field is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ground.errors import InvalidInputError, OrderkitError, raise_problems
from ground.objects.kube_objects import dig
from ground.objects.values import ABSENT, Step, Steps, path_text, same, value_at, with_value
from ground.suggestions import did_you_mean
from kubeschema.field_paths import schema_at, steps_of
from orderkit.core.kit.form_values import name_alone, names_alone, read_settings
from orderkit.core.kit.kit_file_parts import FieldPath
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField
from orderkit.core.order.change.differences import differences
from yamlfiles import assignments

Op = Literal["set", "add", "remove", "unset"]
Schema = Mapping[str, Any]

_NUMBERS = ("integer", "number")
_KNOWN_DEPTH = 6
_EXAMPLES = {
    "integer": "for example 3",
    "number": "for example 3 or 0.5",
    "boolean": "true or false",
    "array": "for example [a, b]; += and -= add and remove one element",
    "object": "for example {a: 1}; name the field below it to change only that",
}


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """
    One operation on one field.

    `add` and `remove` take an element of a list, or a number to add or subtract.
    """

    path: str
    """Below ``spec``: ``stage``, ``storage.sizeGb``; or the name of the form parameter."""
    op: Op
    value: Any = None
    typed: bool = False
    """The value is text that a person typed, to be parsed by the field's type."""


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A resolved edit: the path, its schema, and a value of the right type."""

    steps: Steps
    op: Op
    value: Any
    schema: Schema

    @property
    def path(self) -> str:
        return path_text(self.steps)

    @property
    def is_sum(self) -> bool:
        """Say whether it adds to a number: applied twice it gives another result."""
        return self.op in ("add", "remove") and self.schema.get("type") in _NUMBERS

    @property
    def is_element(self) -> bool:
        """Say whether it concerns one element of a list, independent of the other elements."""
        return self.op in ("add", "remove") and not self.is_sum

    def result(self, old: Any) -> Any:
        """
        Return the new value of the field, given its present value `old`.

        Raises:
            InvalidInputError: The operation does not work on such a value.
        """
        if self.op == "set":
            return self.value
        if self.op == "unset":
            return ABSENT
        if self.is_sum:
            return self._sum(self.schema.get("default", 0) if old is ABSENT else old)
        elements = [] if old is ABSENT or old is None else old
        if not isinstance(elements, list):
            raise InvalidInputError(
                self.path, old, f"is neither a list nor a number: cannot {self.op}", hint="use ="
            )
        return self._elements(old, elements)

    def _elements(self, old: Any, elements: list[Any]) -> Any:
        is_there = any(same(entry, self.value) for entry in elements)
        if is_there is (self.op == "add"):
            return old
        if self.op == "add":
            return [*elements, self.value]
        return [entry for entry in elements if not same(entry, self.value)]

    def _sum(self, old: Any) -> Any:
        if not _is_number(old):
            raise InvalidInputError(self.path, old, "is not a number", hint="set it with =")
        return old + self.value if self.op == "add" else old - self.value


def resolve(kit: Kit, edit: FieldEdit) -> EditTarget:
    """
    Find the field and parse the value.

    Raises:
        InvalidInputError: The field does not exist (the hint names the nearest), or the value has
            another type.
    """
    steps, schema = _locate(kit, edit)
    of_value = schema
    if edit.op in ("add", "remove") and schema.get("type") == "array":
        of_value = schema.get("items") or {}
    typed = edit.typed and edit.op != "unset"
    shown_name = path_text(steps).removeprefix(f"{kit.unfold}." if kit.unfold else "")
    value = _typed(shown_name, edit.value, of_value) if typed else edit.value
    value = name_alone(kit, path_text(steps), value)
    target = EditTarget(steps, edit.op, None if edit.op == "unset" else value, schema)
    if target.is_sum and not _is_number(value):
        raise InvalidInputError(edit.path, edit.value, "is not a number", hint="for example +=5")
    return target


def apply(spec: Any, targets: Sequence[EditTarget]) -> Any:
    """
    Return a copy of a spec with all edits applied in order.

    Raises:
        InvalidInputError: An edit does not fit the present value.
    """
    problems: list[OrderkitError] = []
    for target in targets:
        try:
            spec = with_value(spec, target.steps, target.result(value_at(spec, target.steps)))
        except KeyError:
            rule = "cannot be set: its parent is not a map or a list entry"
            problems.append(InvalidInputError(target.path, target.value, rule))
        except InvalidInputError as problem:
            problems.append(problem)
    raise_problems(problems)
    return spec


def _locate(kit: Kit, edit: FieldEdit) -> tuple[Steps, Schema]:
    texts = steps_of(kit.full_path(edit.path))
    schema: Schema = kit.spec_schema
    properties = schema.get("properties") or {}
    if texts and texts[0] == "spec" and "spec" not in properties:
        texts = texts[1:]
    by_parameter = {parameter: name for name, parameter in kit.aliases.items()}
    if texts and texts[0] not in properties:
        texts = [by_parameter.get(texts[0], texts[0]), *texts[1:]]
    unfolded = dig(properties, kit.unfold, "properties", default={}) if kit.unfold else {}
    if texts and texts[0] in unfolded and texts[0] not in properties:
        texts = [kit.unfold, *texts]  # as in the form
    elif texts[1:] and texts[0] == kit.unfold and texts[1] not in unfolded:
        texts = [texts[0], by_parameter.get(texts[1], texts[1]), *texts[2:]]
    steps: list[Step] = []
    for text in texts:
        step, below = _enter(schema, text)
        if below is None:
            raise _unknown(kit, edit)
        steps.append(step)
        schema = below
    if not steps:
        raise _unknown(kit, edit)
    return tuple(steps), schema


def _enter(schema: Schema, text: str) -> tuple[Step, Schema | None]:
    """Return the step and the schema below it; None if the schema has no such field."""
    text = text.strip("\"'")
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if text in properties:
        return text, properties[text]
    if isinstance(schema.get("items"), Mapping):
        return (int(text), schema["items"]) if text.isdigit() else (text, None)
    if isinstance(extra, Mapping):
        return text, extra
    if extra is True or schema.get("x-kubernetes-preserve-unknown-fields"):
        return text, {}
    return (text, {}) if not schema else (text, None)


def _unknown(kit: Kit, edit: FieldEdit) -> InvalidInputError:
    group = f"{kit.unfold}." if kit.unfold else ""
    paths = (path.removeprefix(group) for path in known_paths(kit.spec_schema))
    known_names = [path for path in paths if path != kit.unfold]
    shown_names = (kit.aliases.get(path, path) for path in known_names)
    hint = did_you_mean(
        edit.path.removeprefix("spec.").removeprefix(group),
        [*known_names, *kit.aliases.values()],
        f"use one of: {', '.join(shown_names)}",
    )
    unset = edit.op == "unset"
    value, done = (f"{edit.path}-", "removed") if unset else (edit.value, "set")
    rule = f"cannot be {done}: kit {kit.name} has no such field"
    return InvalidInputError(edit.path, value, rule, hint=hint)


def known_paths(schema: Schema, depth: int = _KNOWN_DEPTH) -> Iterator[str]:
    """Yield the path of every declared field, parents first."""
    for name, below in (schema.get("properties") or {}).items():
        yield name
        if depth > 1:
            yield from (f"{name}.{path}" for path in known_paths(below, depth - 1))


def _typed(path: str, text: str, schema: Schema) -> Any:
    """Parse a text by the field's type: text stays text, other types are read as YAML."""
    type_ = schema.get("type")
    if type_ == "string":
        return text
    value = assignments.parse_value(text, edit_text=f"{path}={text}")
    if not _fits(value, type_):
        raise InvalidInputError(
            path, value, f"is not of type {type_}", hint=_EXAMPLES.get(type_ or "", "")
        )
    return value


def _fits(value: Any, type_: str | None) -> bool:
    """Say whether a value has the schema's type; without a type every value does."""
    kinds = {"array": list, "object": dict, "boolean": bool}
    if type_ in _NUMBERS:
        return _is_number(value) and (type_ == "number" or value == int(value))
    return type_ not in kinds or isinstance(value, kinds[type_])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def entered_edits(
    kit: Kit,
    values: Mapping[str, Any],
    *,
    shown_spec: Any = ABSENT,
    form: Sequence[FieldPath] | None = None,
    roots: Sequence[KitField] = (),
) -> tuple[FieldEdit, ...]:
    """
    Return the edits for values by form parameter; null removes a field.

    Args:
        shown_spec: The ``spec`` that the form showed; without it every value is an edit.
        form: The innermost fields of the form; a field without a value is removed.
        roots: The fields that may be entered as YAML. If that text is among the values, it has all
            of them: one that it does not set is removed.

    Raises:
        InvalidInputError: The text sets something else, or a value that the XRD refuses.
    """
    own_values = dict(values)
    text = own_values.pop(YAML_PARAMETER, None) if roots else None
    spec = names_alone(kit, kit.by_field(own_values))
    edits = [*_edits(spec, kit.spec_schema, (), shown_spec)]
    yaml_edits = () if text is None else _yaml_edits(kit, text, shown_spec, roots)
    if form is None:
        return (*edits, *yaml_edits)
    form_edits = [
        edit for edit in edits if shown_spec is ABSENT or not _is_untouched(edit, kit, shown_spec)
    ]
    return (*form_edits, *_emptied_fields(spec, shown_spec, form), *yaml_edits)


def _yaml_edits(
    kit: Kit, text: object, shown_spec: Any, roots: Sequence[KitField]
) -> tuple[FieldEdit, ...]:
    settings = read_settings(kit, text, roots)
    edits: list[FieldEdit] = []
    for field in roots:
        steps = tuple(field.path.split("."))
        old, new_value = value_at(shown_spec, steps), value_at(settings, steps)
        for difference in differences(old, new_value, maps_whole=True):
            path = path_text((*steps, *difference.steps))
            new = difference.new
            edits.append(FieldEdit(path, "unset") if new is ABSENT else FieldEdit(path, "set", new))
    return tuple(edits)


def _edits(
    values: Mapping[str, Any], schema: Schema, at: Steps, shown_spec: Any
) -> Iterator[FieldEdit]:
    properties = schema.get("properties") or {}
    for name, value in values.items():
        steps, below = (*at, name), properties.get(name) or {}
        if isinstance(value, dict) and below.get("properties"):
            yield from _edits(value, below, steps, shown_spec)
        elif value is None:
            if shown_spec is ABSENT or value_at(shown_spec, steps) is not ABSENT:
                yield FieldEdit(path_text(steps), "unset")
        elif shown_spec is ABSENT or not same(value, value_at(shown_spec, steps)):
            yield FieldEdit(path_text(steps), "set", value)


def _is_untouched(edit: FieldEdit, kit: Kit, shown_spec: Any) -> bool:
    """Say whether the form sends this value for an absent field that nobody touched."""
    if edit.op != "set" or value_at(shown_spec, tuple(edit.path.split("."))) is not ABSENT:
        return False
    default = schema_at(kit.spec_schema, edit.path).get("default", ABSENT)
    return edit.value in ([], {}) or same(edit.value, default)


def _emptied_fields(
    spec: Mapping[str, Any], shown_spec: Any, form: Sequence[FieldPath]
) -> Iterator[FieldEdit]:
    for path in form:
        steps = tuple(path.split("."))
        if value_at(shown_spec, steps) is not ABSENT and value_at(spec, steps) is ABSENT:
            yield FieldEdit(path_text(steps), "unset")
