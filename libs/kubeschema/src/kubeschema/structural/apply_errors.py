"""
What server-side apply refuses before any other rule: wrong types and undeclared fields.

In this case the server cannot build a typed object and answers ``failed to create typed patch
object (…): .spec.colour: expected string, got …``. Nulls pass, and so does a fraction where an
integer belongs: the schema's rules are checked later. Callers add the beginning of the sentence.
"""

from __future__ import annotations

from typing import Any

from jsonschema import ValidationError

from kubeschema.extensions import EMBEDDED, INT_OR_STRING
from kubeschema.pruning import Schema
from kubeschema.structural.api_messages import WRONG_TYPE, SchemaProblem, compact, go_value, path_of
from kubeschema.structural.validators import TypeValidator

_WORDS = {"object": "map", "array": "list", "integer": "numeric (int or float)"}
_WORDS["number"] = _WORDS["integer"]
_GO_TYPES = {str: "string", bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}


def type_problems(schema: Schema, value: Any) -> list[SchemaProblem]:
    """
    Return wrong types and undeclared fields of an applied object, sorted by path.

    `value` is a whole object: apiVersion, kind and metadata are left alone. The text of a
    problem is ``.spec.colour: expected string, got &value.valueUnstructured{Value:5}``.
    """
    errors = TypeValidator({"properties": {}, **schema, EMBEDDED: True}).iter_errors(value)
    return sorted({_problem_of(error) for error in errors})


def _problem_of(error: ValidationError) -> SchemaProblem:
    path = "." + path_of(error.absolute_path)
    if error.validator == "properties":
        return SchemaProblem(path, WRONG_TYPE, error.message)
    expected_type = "scalar" if error.validator == INT_OR_STRING else str(error.validator_value)
    return SchemaProblem(path, WRONG_TYPE, _expected(expected_type, error.instance))


def _expected(expected_type: str, value: Any) -> str:
    if expected_type == "string":
        return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if expected_type in {"integer", "number"}:
        go_type = _GO_TYPES.get(type(value), type(value).__name__)
        return f"expected {_WORDS[expected_type]}, got {go_type}"
    word = "any scalar" if expected_type == "scalar" else _WORDS.get(expected_type, expected_type)
    return f"expected {word}, got &{{{_plain(value)}}}"


def _go_syntax(value: Any) -> str:
    """Write a value as Go's ``%#v`` does."""
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_syntax(x) for x in value) + "}"
    if isinstance(value, dict):
        pairs = (f"{compact(k)}:{_go_syntax(v)}" for k, v in sorted(value.items()))
        return "map[string]interface {}{" + ", ".join(pairs) + "}"
    return "interface {}(nil)" if value is None else go_value(value)


def _plain(value: Any) -> str:
    """Write a value as Go's ``%v`` does."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[" + " ".join(_plain(x) for x in value) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{_plain(v)}" for k, v in sorted(value.items())) + "]"
    return "<nil>" if value is None else go_value(value)
