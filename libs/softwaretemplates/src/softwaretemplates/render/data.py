"""
Render JSON-like data: every string in it is a template; keys are not.

The rules are those of scaffolder steps since Backstage 1.56. A string that is exactly one ``${{
}}`` keeps the type of its value. A string that is exactly one block, such as ``{% if %}`` to ``{%
endif %}``, is read as JSON if its text is JSON. Any other string becomes text, and an empty text
becomes undefined. Undefined drops the key, and becomes null in a list. A failing expression is an
error here, while Backstage would pass on the raw source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from softwaretemplates.render.engine import compile_template
from softwaretemplates.render.javascript import (
    SAFE_INTEGER,
    UNDEFINED,
    Safe,
    Undefined,
    Value,
    normal,
)
from softwaretemplates.render.render_errors import LimitError, RenderError
from softwaretemplates.render.scopes import Encoded


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
        return source or UNDEFINED
    try:
        template = compile_template(source, capture=True)
        if template.sole_expression:
            return _detached(template.value(context))
        text = template.render(context)
        return _decoded(text) if template.sole_block else text or UNDEFINED
    except RenderError as error:
        raise error.named(name) from error


def _decoded(text: str) -> Value:
    """Return the value of a block: that of its JSON, else its text."""
    source = text.json if isinstance(text, Encoded) else text
    try:
        return _detached(
            json.loads(
                source,
                parse_int=_read_number,
                parse_float=_read_number,
                parse_constant=_refuse_constant,
                object_pairs_hook=_read_map,
            )
        )
    except ValueError:
        return str.__str__(text) or UNDEFINED
    except RecursionError as error:
        raise LimitError("a value is nested too deeply") from error


def _read_number(text: str) -> float:
    return normal(float(text))


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # Python reads NaN and Infinity, JSON does not have them


def _read_map(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    if any(key == "__proto__" for key, _ in pairs):
        raise RenderError("a map has the key `__proto__`, which Backstage refuses")
    return dict(pairs)


def _detached(value: Value) -> Value:
    """Copy a value, so that parameters and outputs cannot be changed through it."""
    if isinstance(value, list):
        return [None if isinstance(item, Undefined) else _detached(item) for item in value]
    if isinstance(value, dict):
        return {k: _detached(v) for k, v in value.items() if not isinstance(v, Undefined)}
    if isinstance(value, Safe):
        return str.__str__(value)
    return UNDEFINED if isinstance(value, Undefined) else _as_double(value)


def _as_double(value: Value) -> Value:
    """Round an integer to a double, JavaScript's only kind of number; JSON has no infinite one."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) <= SAFE_INTEGER:
        return value
    try:
        return int(float(value))
    except OverflowError:
        return None
