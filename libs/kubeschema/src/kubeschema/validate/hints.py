"""
The rule behind a finding and how to fix it, read from the schema at its path.

The server's message says what is wrong. This adds the nearest known field, the author's description
of the field, or an allowed value.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ground.errors import shorten

__all__ = ["nearest", "shown"]

_KEYWORDS = (
    *("enum", "pattern", "format", "minimum", "maximum", "multipleOf", "minLength", "maxLength"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "type"),
)
_VALUE_MAX = 120


def shown(value: Any) -> str:
    """Write a value as JSON, shortened; empty if there is no value."""
    if value is None:
        return ""
    return shorten(json.dumps(value, ensure_ascii=False, sort_keys=True), limit=_VALUE_MAX)


def rule_of(schema: Mapping[str, Any], message: str) -> str:
    """Return the keyword that a structural message refers to, with its argument."""
    for keyword in _KEYWORDS:
        if keyword in schema and _is_about(keyword, schema[keyword], message):
            return f"{keyword} {json.dumps(schema[keyword], ensure_ascii=False)}"
    return ""


def _is_about(keyword: str, argument: Any, message: str) -> bool:
    phrases = {
        "enum": "supported values",
        "pattern": "should match",
        "format": f"must be of type {argument}",
        "minimum": "should be greater",
        "maximum": "should be less",
        "multipleOf": "multiple of",
        "minLength": "chars long",
        "maxLength": "Too long",
        "minItems": "should have at least",
        "maxItems": "Too many",
        "minProperties": "should have at least",
        "maxProperties": "Too many",
        "type": f"must be of type {argument}",
    }
    return phrases[keyword] in message


def nearest(name: str, names: Mapping[str, Any]) -> str:
    """Return a hint for a misspelt name."""
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"fields here: {', '.join(names)}" if names else "no field is declared here"


def rule_hint(fields: Sequence[tuple[str, Any, Any]], *, is_step: bool) -> str:
    """
    Return what to do about a broken rule.

    Args:
        fields: Paths, new and old values of what it is about; the first is the finding's.
        is_step: The rule compares with the object before the change.
    """
    names = {path: path.removeprefix("spec.") for path, _, _ in fields}
    if not is_step:
        others = [f"{names[path]} {shown(new) or '(not set)'}" for path, new, _ in fields[1:]]
        return f"the rule also reads {', '.join(others)}" if others else ""
    if len(fields) == 1:
        old = shown(fields[0][2])
        return f"put back {old}" if old else ""
    back = (f"{names[path]} {shown(old) or '(not set)'}" for path, _, old in fields)
    return f"put back {', '.join(back)}"


def advice_for(schema: Mapping[str, Any], rule: str, value: Any = None) -> str:
    """Return a hint for a field whose value is wrong or missing."""
    description = shorten(str(schema.get("description") or ""), limit=160)
    return "; ".join(filter(None, (_remedy(schema, rule, value), description)))


def _remedy(schema: Mapping[str, Any], rule: str, value: Any) -> str:
    keyword, _, argument = rule.partition(" ")
    if keyword == "enum":
        choices = ", ".join(json.dumps(entry, ensure_ascii=False) for entry in schema["enum"])
        return f"use one of {choices}"
    if keyword == "required":
        return "add the field"
    if keyword == "type":
        type_ = str(schema.get("type"))
        if type_ == "string" and isinstance(value, bool | int | float):
            return f'quote it: "{json.dumps(value)}"'
        return f"write {_EXAMPLES.get(type_, type_)}"
    return f"keep to {keyword} {shorten(argument)}" if keyword in _KEYWORDS else ""


_EXAMPLES = {
    "string": "a text",
    "integer": "a whole number, without quotes",
    "number": "a number, without quotes",
    "boolean": "true or false, without quotes",
    "array": "a list: one line '- …' for each entry",
    "object": "a map of fields",
}
