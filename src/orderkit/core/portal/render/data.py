"""
Render JSON-like data: every string in it is a template; keys are not.

The rules are those of scaffolder steps in Backstage >= 4.1: a string that is exactly one ``${{ }}``
keeps the type of its value; undefined drops the key, and becomes null in a list; any other string
becomes text. A failing expression is an error here, while Backstage would pass on the raw source.
Called by the interpreter of steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from orderkit.core.portal.render.engine import compile_template
from orderkit.core.portal.render.javascript import SAFE_INTEGER, UNDEFINED, Undefined, Value
from orderkit.core.portal.render.render_errors import RenderError


def render_data(value: Value, context: Mapping[str, Value], *, name: str) -> Value:
    """
    Return `value` with every string in it rendered; undefined strings are dropped.

    Args:
        name: The place of the value, for messages: ``steps.fetch.input``.

    Raises:
        RenderError: A template in it is malformed, refused or fails; the message has its path.
    """
    if isinstance(value, str):
        return _render_text(value, context, name=name)
    if isinstance(value, list):
        items = [render_data(v, context, name=f"{name}[{at}]") for at, v in enumerate(value)]
        return [None if isinstance(item, Undefined) else item for item in items]
    if isinstance(value, dict):
        rendered = {k: render_data(v, context, name=f"{name}.{k}") for k, v in value.items()}
        return {k: v for k, v in rendered.items() if not isinstance(v, Undefined)}
    return _as_double(value)


def _render_text(source: str, context: Mapping[str, Value], *, name: str) -> Value:
    if "${{" not in source and "{%" not in source and "{#" not in source and "#}" not in source:
        return source
    try:
        template = compile_template(source, capture=True)
        if template.sole_expression:
            return _detached(template.value(context))
        return template.render(context)
    except RenderError as error:
        raise error.named(name) from error


def _detached(value: Value) -> Value:
    """Copy a value, so that parameters and outputs cannot be changed through it."""
    if isinstance(value, list):
        return [None if isinstance(item, Undefined) else _detached(item) for item in value]
    if isinstance(value, dict):
        return {k: _detached(v) for k, v in value.items() if not isinstance(v, Undefined)}
    return UNDEFINED if isinstance(value, Undefined) else _as_double(value)


def _as_double(value: Value) -> Value:
    """Round an integer to a double, JavaScript's only kind of number."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) <= SAFE_INTEGER:
        return value
    try:
        return int(float(value))
    except OverflowError:
        return math.inf if value > 0 else -math.inf
