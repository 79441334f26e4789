"""What is wrong with one field of a kit: in its XRD, or in what kit.yaml says of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kubeschema.xrd import versions_of
from orderkit.core.kit.catalog_pickers import prefix_of
from orderkit.core.kit.form_shapes import Hints
from orderkit.core.kit.js_patterns import to_javascript
from orderkit.core.kit.kit_file import Direction, KitChange
from orderkit.core.kit.literals import quoted
from orderkit.core.kit.model import Kit
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
