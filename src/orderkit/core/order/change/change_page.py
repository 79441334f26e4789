"""
The page of a change: the fields that a form of the portal or the console asks for.

A field shows what Git has now. Choice fields that may only grow or move step by step offer what the
kit's rules allow next.
"""

from __future__ import annotations

from typing import Any

from ground.errors import OrderkitError
from ground.objects.values import ABSENT
from orderkit.core.kit.change_forms import (
    CURRENT,
    LEAST,
    ORDER,
    REASON,
    is_stepping,
    parameter_of,
    shown_fields,
    text_of,
)
from orderkit.core.kit.form_fields import entry_schema, properties_of
from orderkit.core.kit.form_values import yaml_property, yaml_roots
from orderkit.core.kit.kit_file import KitChange
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField
from orderkit.core.order.change.change_rules import judge_rules
from orderkit.core.order.change.differences import FieldDifference

Schema = dict[str, Any]

HIDDEN = {"ui:widget": "hidden", "ui:backstage": {"review": {"show": False}}}
"""How a form keeps a value that nobody enters."""
LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def filled_in(kit: Kit, change: KitChange) -> Schema:
    """
    Return the fields of a change's form that the service filled in, as one page's JSON schema.

    Raises:
        FormError: A field's pattern cannot be expressed in JavaScript.
    """
    change_fields = shown_fields(kit, change.fields)
    stepping = [field for field in change_fields if is_stepping(change, field)]
    page = properties_of(kit, [field for field in change_fields if field not in stepping])
    page.pop("ui:order", None)
    roots = yaml_roots(kit, change.fields)
    if roots:
        page["properties"][YAML_PARAMETER] = yaml_property(kit, roots)
    page["required"] = [ORDER, *page.get("required", ())]
    page["properties"] = {
        ORDER: _order_schema(),
        **(
            {LEAST: {"title": change.at_least.title, "type": "string", "ui:readonly": True}}
            if change.at_least
            else {}
        ),
        **page["properties"],
        REASON: reason_schema(),
    }
    for field in stepping:
        name = parameter_of(kit, field)
        title = f"{field.hints.title or name} now"
        page["properties"][f"{CURRENT}{name}"] = {"title": title, "type": "string", **HIDDEN}
        page.setdefault("dependencies", {})[f"{CURRENT}{name}"] = _choices_by_current(
            kit, change, field
        )
    return page


def reason_schema() -> Schema:
    """Return the field that asks why."""
    return {
        "title": "Reason",
        "description": "Why; it is kept in Git.",
        "type": "string",
        "maxLength": 500,
    }


def _choices_by_current(kit: Kit, change: KitChange, field: KitField) -> Schema:
    """Return the choices for each current value, as the kit's rules allow them."""
    name = parameter_of(kit, field)
    choices = [choice for choice in field.schema["enum"] if choice is not None]
    schema = entry_schema(kit, field)
    labels = dict(zip(choices, schema.get("enumNames", ()), strict=False))
    branches = []
    for now in [*choices, ABSENT]:
        offered = [
            new_value for new_value in choices if _allowed(kit, change, field, now, new_value)
        ]
        field_schema = {**schema, "enum": offered}
        if labels:
            field_schema["enumNames"] = [labels[value] for value in offered]
        if now is ABSENT:
            field_schema.pop("default", None)
        present = {"enum": [text_of(now)]}
        branch: Schema = {"properties": {f"{CURRENT}{name}": present, name: field_schema}}
        if field.required:
            branch["required"] = [name]
        branches.append(branch)
    return {"oneOf": branches}


def _allowed(kit: Kit, change: KitChange, field: KitField, old: Any, new: Any) -> bool:
    if old == new:
        return True
    difference = FieldDifference(tuple(field.path.split(".")), old, new)
    try:
        judge_rules(kit, (difference,), change=change.name)
    except OrderkitError:
        return False
    return True


def _order_schema() -> Schema:
    return {
        "title": "Order",
        "type": "string",
        "pattern": LABEL,
        "errorMessage": {"pattern": "must be an order's id"},
        "ui:readonly": True,
    }
