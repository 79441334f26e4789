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

from orderkit.core.kit.catalog_pickers import bare_spec
from orderkit.core.kit.model import FieldPath, Kit
from orderkit.core.objects.values import ABSENT, Steps, path_text, same, value_at
from orderkit.core.order.change.change_fields import FieldEdit
from orderkit.core.schema.validate.hints import schema_at

Schema = Mapping[str, Any]


def entered_edits(
    kit: Kit,
    values: Mapping[str, Any],
    *,
    seen: Any = ABSENT,
    form: Sequence[FieldPath] | None = None,
) -> tuple[FieldEdit, ...]:
    """
    Return the edits that values by form parameter mean; null takes a field away.

    Args:
        seen: The ``spec`` that the form showed; without it every value is an edit.
        form: The innermost fields that the form asks for; one without a value is taken away.
    """
    named = {parameter: name for name, parameter in kit.aliases.items()}
    spec = bare_spec(kit, {named.get(key, key): value for key, value in values.items()})
    edits = _edits(spec, kit.spec_schema, (), seen)
    if form is None:
        return tuple(edits)
    entered = [edit for edit in edits if seen is ABSENT or not _nothing(edit, kit, seen)]
    return (*entered, *_emptied(spec, seen, form))


def _edits(given: Mapping[str, Any], schema: Schema, at: Steps, seen: Any) -> Iterator[FieldEdit]:
    properties = schema.get("properties") or {}
    for name, value in given.items():
        steps, below = (*at, name), properties.get(name) or {}
        if isinstance(value, dict) and below.get("properties"):
            yield from _edits(value, below, steps, seen)
        elif value is None:
            if seen is ABSENT or value_at(seen, steps) is not ABSENT:
                yield FieldEdit(path_text(steps), "unset")
        elif seen is ABSENT or not same(value, value_at(seen, steps)):
            yield FieldEdit(path_text(steps), "set", value)


def _nothing(edit: FieldEdit, kit: Kit, seen: Any) -> bool:
    """Say whether a form sends this where the order has nothing and nobody entered anything."""
    if edit.op != "set" or value_at(seen, tuple(edit.path.split("."))) is not ABSENT:
        return False
    default = schema_at(kit.spec_schema, edit.path).get("default", ABSENT)
    return edit.value in ([], {}) or same(edit.value, default)


def _emptied(spec: Mapping[str, Any], seen: Any, form: Sequence[FieldPath]) -> Iterator[FieldEdit]:
    for path in form:
        steps = tuple(path.split("."))
        if value_at(seen, steps) is not ABSENT and value_at(spec, steps) is ABSENT:
            yield FieldEdit(path_text(steps), "unset")
