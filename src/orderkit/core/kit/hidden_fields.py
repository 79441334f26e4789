"""Fields that the platform fills in: a placeholder that publishing replaces, and its pattern."""

from __future__ import annotations

import re
from typing import Any

from orderkit.core.kit import js_patterns
from orderkit.core.kit.field_titles import label_of
from orderkit.core.kit.form_shapes import Hidden
from orderkit.core.kit.xrd_fields import FieldShape, KitField

Schema = dict[str, Any]

NOT_BAKED = "is not set, because this pack was not published to a platform"
_HIDDEN_UI = {"ui:widget": "hidden", "ui:backstage": {"review": {"show": False}}}


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
    return js_patterns.to_javascript(guard_of(hidden, field))


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
