"""
What somebody entered into a form, as edits: only what differs from what the form showed.

A form sends every field it has, touched or not, empty lists and maps for what nobody filled in, and
nothing for what was emptied. So an untouched field is no edit (somebody else may have changed it
meanwhile, which is no conflict then), what is empty and was not there is none, and a field of the
form that is missing is taken away. Called by ``flows.change.form_entry``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orderkit.core.kit.catalog_pickers import names_alone
from orderkit.core.kit.model import FieldPath, Kit
from orderkit.core.objects.values import ABSENT, Steps, path_text, same, value_at
from orderkit.core.order.change.change_fields import FieldEdit
from orderkit.core.schema.validate.hints import schema_at

Schema = Mapping[str, Any]


def entered_edits(
    kit: Kit,
    values: Mapping[str, Any],
    *,
    shown_spec: Any = ABSENT,
    form: Sequence[FieldPath] | None = None,
) -> tuple[FieldEdit, ...]:
    """
    Return the edits that values by form parameter mean; null takes a field away.

    Args:
        shown_spec: The ``spec`` that the form showed; without it every value is an edit.
        form: The innermost fields that the form asks for; one without a value is taken away.
    """
    by_parameter = {parameter: name for name, parameter in kit.aliases.items()}
    spec = names_alone(kit, {by_parameter.get(key, key): value for key, value in values.items()})
    edits = _edits(spec, kit.spec_schema, (), shown_spec)
    if form is None:
        return tuple(edits)
    form_edits = [
        edit for edit in edits if shown_spec is ABSENT or not _is_untouched(edit, kit, shown_spec)
    ]
    return (*form_edits, *_emptied_fields(spec, shown_spec, form))


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
    """Say whether a form sends this where the order has nothing and nobody entered anything."""
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
