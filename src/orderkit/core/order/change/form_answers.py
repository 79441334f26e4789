"""
Turn the answers of a form into edits: only what differs from the values that the form showed.

A form sends all its fields, touched or not: empty lists and maps for fields that nobody filled in,
and nothing for fields that were cleared. So an untouched field is not an edit (somebody else may
have changed it in the meantime without a conflict), an empty value of an absent field is not an
edit, and a missing field is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ground.objects.values import ABSENT, Steps, path_text, same, value_at
from kubeschema.field_paths import schema_at
from orderkit.core.kit.catalog_pickers import names_alone
from orderkit.core.kit.form_shapes import FieldPath
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField
from orderkit.core.kit.yaml_settings import read_settings
from orderkit.core.order.change.change_fields import FieldEdit
from orderkit.core.order.change.differences import differences

Schema = Mapping[str, Any]


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
