"""
The changes of a kit's orders for forms and links: their names, titles, fields and initial values.

The kit workshop makes Templates of them, and the service redirects to a form that is filled with
the values in Git.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ground.errors import InvalidInputError, UsageError
from ground.objects.values import ABSENT, value_at
from ground.shapes import changed
from ground.suggestions import did_you_mean
from orderkit.core.kit import form_values
from orderkit.core.kit.field_names import spelt_out
from orderkit.core.kit.form_values import settings_text, yaml_roots
from orderkit.core.kit.kit_file import Direction, KitChange
from orderkit.core.kit.kit_file_parts import FieldPath
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import SCALARS, FieldShape, KitField, fields_of, unfolded

END, ANY_CHANGE, LEASE = "end", "change", "lease"
"""Names of forms: the end, the only change of a kit that declares none, extending a lease."""
ORDER, BASE, REASON, CONFIRM = "order_id", "base_commit", "change_reason", "confirm"
"""Parameters of the forms beside the order's fields."""
ORDER_PICKED = "order_ref"
"""The parameter with the order as a person picks it from the catalog."""
COMPONENT = "component:default/"
"""What references of the catalog to orders begin with."""
LEAST = "at_least"
"""The parameter that shows below which number the change's field may not be set."""
TAKE = "take_"
"""Prefix of the parameters by which an end also removes a survivor."""
CURRENT = "current_"
"""Prefix of the hidden parameter with a field's present value."""
NOT_SET = "(not set)"


def template_name(kit: str, change: str) -> str:
    """Return the name of a change's Template; unique, because kit names have no dot."""
    return f"{kit}.{change}"


def changes_of(kit: Kit) -> tuple[KitChange, ...]:
    """Return the changes that have a form; without ``changes`` every field may change."""
    if kit.changes:
        return tuple(change for change in kit.changes if change.direction is not Direction.NEVER)
    shown = [field.path for field in shown_fields(kit, [f.path for f in fields_of(kit).top])]
    fields = tuple(dict.fromkeys((*shown, *(field.path for field in yaml_roots(kit)))))
    if not fields:
        return ()
    return (KitChange(ANY_CHANGE, fields, f"Change the {kit.title}"),)


def title_of(change: KitChange) -> str:
    """Return the title of a change, derived from its name if it has none."""
    if change.title in ("", spelt_out(change.name)):
        return f"Change {spelt_out(change.name).lower()}"
    return change.title


def change_named(kit: Kit, name: str) -> KitChange:
    """
    Return a change that has a form.

    Raises:
        InvalidInputError: The kit has no such change; the hint names the nearest.
    """
    changes = {change.name: change for change in changes_of(kit)}
    if name in changes:
        return changes[name]
    hint = did_you_mean(name, changes, f"changes: {', '.join(changes) or 'none'}")
    raise InvalidInputError("change", name, f"is not a change of kit {kit.name}", hint=hint)


def form_data(kit: Kit, change: KitChange, *, order: str, base: str, spec: Any) -> dict[str, Any]:
    """Return the initial values of a change's form for an order with this ``spec``."""
    form_fields = shown_fields(kit, change.fields)
    current = spec if isinstance(spec, dict) else {}
    stepping = {
        parameter_of(kit, f): value_at(current, tuple(f.path.split(".")))
        for f in form_fields
        if is_stepping(change, f)
    }
    return {
        ORDER: order,
        BASE: base,
        **_form_values(kit, form_fields, current, change.fields),
        **{f"{CURRENT}{name}": text_of(value) for name, value in stepping.items()},
    }


def order_data(kit: Kit, spec: Mapping[str, Any], *, order: str, team: str) -> dict[str, Any]:
    """Return the answers of the order form that lead to this ``spec``."""
    form_fields = tuple(field for field in fields_of(kit).form if field.asked or field.hidden)
    values = _form_values(kit, form_fields, spec)
    if not kit.name_from:
        values[kit.name_parameters[0]] = order.removeprefix(f"{kit.name}-")
    if not kit.team_from:
        values[kit.team_parameter] = team
    return values


def form_paths(kit: Kit, change: KitChange) -> tuple[FieldPath, ...]:
    """Return the innermost fields that the form of a change asks for."""
    return tuple(
        field.path
        for top in shown_fields(kit, change.fields)
        for field in top.walk()
        if not field.fields
    )


def is_stepping(change: KitChange, field: KitField) -> bool:
    """
    Say whether the allowed choices depend on the present one: a choice with a direction.

    Args:
        field: One of `shown_fields`.
    """
    bound = change.direction in (Direction.GROW, Direction.STEP)
    plain = field.shape in SCALARS and field.hints.when is None
    return bound and plain and bool(field.schema.get("enum"))


def shown_fields(kit: Kit, paths: Sequence[FieldPath]) -> tuple[KitField, ...]:
    """Return the fields of a change's form, reduced to the parts that it covers."""
    kept = (_form_field(kit, field, paths) for field in fields_of(kit).top)
    return _unconditional(unfolded([field for field in kept if field is not None], kit.unfold))


def text_of(value: Any) -> str:
    """Return a present value as text for the form's hidden parameter."""
    if value is ABSENT:
        return NOT_SET
    return str(value).lower() if isinstance(value, bool) else str(value)


def by_form_names(
    kit: Kit | None, fields: Collection[str], assignments: Mapping[str, str]
) -> dict[str, str]:
    """
    Return assignments by the names of the form's fields.

    ``storage``, ``parameters.storage`` and ``spec.parameters.storage`` are the same field.

    Raises:
        UsageError: A field is given twice, by different names.
    """
    named: dict[str, str] = {}
    for text, value in assignments.items():
        name = text
        if kit is not None and text not in fields:
            parameter = kit.parameter(kit.full_path(text.removeprefix("spec.")))
            is_known = parameter in fields or parameter.partition(".")[0] in fields
            name = parameter if is_known else text
        if name in named:
            raise UsageError(
                f"{name} is given twice: '{named[name]}' and '{value}'", hint=f"{name}=VALUE, once"
            )
        named[name] = value
    return named


def parameter_of(kit: Kit, field: KitField) -> str:
    """Return the form parameter of a field; nested fields keep their name."""
    return kit.aliases.get(field.path, field.name)


def _form_values(
    kit: Kit,
    fields: Sequence[KitField],
    spec: Mapping[str, Any],
    paths: Sequence[FieldPath] | None = None,
) -> dict[str, Any]:
    """Return a form's values for an order with this ``spec``."""
    group = spec.get(kit.unfold)
    inner = tuple(field for field in fields if field.path.startswith(f"{kit.unfold}."))
    values = _values(kit, [field for field in fields if field not in inner], spec)
    if kit.unfold and isinstance(group, dict):
        values |= _values(kit, inner, group)
    text = settings_text(kit, spec, yaml_roots(kit, paths))
    return {**values, **({YAML_PARAMETER: text} if text else {})}


def _values(kit: Kit, fields: Sequence[KitField], current: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    for field in fields:
        if field.name not in current or not (field.visible or field.hidden):
            continue
        value = current[field.name]
        if field.shape is FieldShape.OBJECT and isinstance(value, dict):
            value = _values(kit, field.fields, value)
        values[parameter_of(kit, field)] = form_values.as_reference(field.hints, value)
    return values


def _form_field(kit: Kit, field: KitField, paths: Sequence[FieldPath]) -> KitField | None:
    if not field.visible or field.path in {*kit.name_from, kit.team_from, kit.xr_name}:
        return None
    covered = any(field.path == path or field.path.startswith(f"{path}.") for path in paths)
    if field.shape is not FieldShape.OBJECT:
        return field if covered else None
    inner = tuple(
        f for f in (_form_field(kit, nested, paths) for nested in field.fields) if f is not None
    )
    if not inner and not (covered and not field.fields):
        return None
    return replace(field, fields=_unconditional(inner))


def _unconditional(fields: tuple[KitField, ...]) -> tuple[KitField, ...]:
    """Make fields unconditional whose condition refers to a field outside of the form."""
    paths = {field.path for field in fields}
    return tuple(
        field
        if field.hints.when is None or field.hints.when.field in paths
        else replace(field, hints=changed(field.hints, shown_if={}))
        for field in fields
    )
