"""
Report what is wrong with a value in the API server's words.

``spec.size: Unsupported value: "huge": supported values: "small", "medium", "large"``. Lines of the
server that help nobody are left out: ``<nil>: … some validation rules were not checked…`` (schemas
with CEL rules), and ``must validate all the schemas (allOf)`` and ``Checked value must be of type
integer`` beside the actual fault. For a failed ``anyOf`` or ``oneOf``, the faults of the nearest
alternative are reported as well, as the server does.

`type_problems` finds what server-side apply refuses before any other rule: wrong types and
undeclared fields. The server then cannot build a typed object and answers ``failed to create typed
patch object (…): .spec.colour: expected string, got …``. Nulls pass, and so does a fraction where
an integer belongs: the schema's rules are checked later. Callers add the beginning of the sentence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from jsonschema import ValidationError

from kubeschema.pruning import EMBEDDED, INT_OR_STRING, LIST_TYPE, Schema
from kubeschema.structural.validators import (
    FORMATS,
    StructuralValidator,
    TypeValidator,
    type_name,
    validator_of,
)

__all__ = ["path_of", "problems"]


INVALID, REQUIRED, UNSUPPORTED = "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported"
TOO_LONG, TOO_MANY, DUPLICATE = "FieldValueTooLong", "FieldValueTooMany", "FieldValueDuplicate"
WRONG_TYPE = "FieldValueTypeInvalid"
"""Causes of a Status, as the API server spells them."""

PLAIN_POWERS = (-4, 6)
"""Powers of ten that Go writes without an exponent."""


@dataclass(frozen=True, slots=True, order=True)
class SchemaProblem:
    """One fault: the path, the rule (a cause of a Status), and the server's message."""

    path: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '<nil>'}: {self.message}"


def problems(schema: Schema, value: Any) -> list[SchemaProblem]:
    """
    Return everything that is wrong with a value, sorted by path; empty if it is valid.

    Unknown fields are not faults here; `prune` finds them.

    Raises:
        PatternError: The schema has a pattern that cannot be evaluated (`check_schema` reports it).
    """
    errors = validator_of(schema).iter_errors(value)
    return sorted({problem for error in errors for problem in _problems_of(error)})


def path_of(steps: Iterable[str | int]) -> str:
    """Write a path as the server does: ``spec.ports[0].name``."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def _problems_of(error: ValidationError) -> Iterator[SchemaProblem]:
    path, rule, argument = path_of(error.absolute_path), str(error.validator), _argument(error)
    if rule in {"anyOf", "oneOf", "not"}:
        yield from _junctor(error, path, rule)
    elif rule == "required":
        for name in argument:
            if name not in _value(error):
                missing = path_of([*error.absolute_path, name])
                yield SchemaProblem(missing, REQUIRED, "Required value")
    elif rule == EMBEDDED:
        yield SchemaProblem(path, REQUIRED, error.message)
    elif rule == "additionalProperties":
        for name in _undeclared(error):
            message = f"Invalid value: {quote(name)}: {path}.{name} in body is a forbidden property"
            yield SchemaProblem(path, INVALID, message)
    elif rule in {"type", INT_OR_STRING}:
        yield _wrong_type(error, path)
    else:
        yield _broken_rule(error, path, rule)


def _undeclared(error: ValidationError) -> set[str]:
    schema: Any = error.schema
    return set(_value(error)) - set(schema.get("properties") or ())


def _argument(error: ValidationError) -> Any:
    return error.validator_value


def _value(error: ValidationError) -> Any:
    return error.instance


def _junctor(error: ValidationError, path: str, rule: str) -> Iterator[SchemaProblem]:
    sentence = {
        "anyOf": "must validate at least one schema (anyOf)",
        "oneOf": "must validate one and only one schema (oneOf). ",
        "not": "must not validate the schema (not)",
    }[rule]
    if rule == "oneOf":
        valid = sum(StructuralValidator(x).is_valid(error.instance) for x in _argument(error))
        sentence += f"Found {valid} valid alternatives" if valid else "Found none valid"
    yield SchemaProblem("", INVALID, f'Invalid value: "": {quote(path)} {sentence}')
    for inner in _nearest(error.context or ()):
        yield from _problems_of(inner)


def _nearest(context: Iterable[ValidationError]) -> list[ValidationError]:
    """Return the errors of the alternative that has the fewest."""
    branches: dict[object, list[ValidationError]] = {}
    for error in context:
        branches.setdefault(error.schema_path[0], []).append(error)
    return min(branches.values(), key=len, default=[])


def _wrong_type(error: ValidationError, path: str) -> SchemaProblem:
    expected_type = "integer,string" if error.validator == INT_OR_STRING else _argument(error)
    actual_type = type_name(error.instance)
    format_name = str(error.schema.get("format", "")) if isinstance(error.schema, dict) else ""
    if _has_format(expected_type, format_name) and actual_type != "array":
        # The server prints Go's type of the value here, and nothing for objects and booleans.
        go_types = {"integer": "int64", "number": "float64"}
        expected_type, actual_type = format_name, go_types.get(actual_type, "")
    text = f'{path} in body must be of type {expected_type}: "{actual_type}"'
    return SchemaProblem(path, WRONG_TYPE, f'Invalid value: "{actual_type}": {text}')


def _has_format(type_: str, name: str) -> bool:
    if type_ == "integer":
        return name in {"int32", "int64"}
    return type_ == "string" and name.replace("-", "") in FORMATS


def _broken_rule(error: ValidationError, path: str, rule: str) -> SchemaProblem:
    value, limit = _value(error), _argument(error)
    if rule == "enum":
        choices = ", ".join(quote(x if isinstance(x, str) else compact(x)) for x in limit)
        message = f"Unsupported value: {go_value(value)}: supported values: {choices}"
        return SchemaProblem(path, UNSUPPORTED, message)
    if rule == "maxLength":
        message = f"Too long: may not be more than {_count(limit, 'byte')}"
        return SchemaProblem(path, TOO_LONG, message)
    if rule in {"maxItems", "maxProperties"}:
        message = f"Too many: {len(value)}: must have at most {_count(limit, 'item')}"
        return SchemaProblem(path, TOO_MANY, message)
    if rule == LIST_TYPE:
        return SchemaProblem(path, DUPLICATE, f"Duplicate value: {go_value(value)}")
    if rule == "format":
        return _wrong_format(path, value, limit)
    offending = len(value) if rule in {"minItems", "minProperties"} else value
    sentence = _SENTENCES[rule](limit, error)
    return SchemaProblem(
        path, INVALID, f"Invalid value: {go_value(offending)}: {path} in body {sentence}"
    )


def _wrong_format(path: str, value: Any, name: str) -> SchemaProblem:
    if isinstance(value, str):
        message = f"Invalid value: {quote(value)}: {path} in body must be of type {name}"
        return SchemaProblem(path, WRONG_TYPE, f"{message}: {quote(value)}")
    message = f"Checked value must be of type integer with format {name} in {path}"
    return SchemaProblem("", INVALID, f'Invalid value: "": {message}')


def _count(limit: int, unit: str) -> str:
    return f"{limit} {unit}" if limit == 1 else f"{limit} {unit}s"


def _bound(word: str, exclusive: str) -> Callable[[Any, ValidationError], str]:
    def sentence(limit: Any, error: ValidationError) -> str:
        strict = isinstance(error.schema, dict) and error.schema.get(exclusive)
        bound_text = str(int(limit)) if isinstance(error.instance, int) else go_number(float(limit))
        return f"should be {word} than {'' if strict else 'or equal to '}{bound_text}"

    return sentence


_SENTENCES: dict[str, Callable[[Any, ValidationError], str]] = {
    "pattern": lambda limit, _: f"should match '{limit}'",
    "minLength": lambda limit, _: f"should be at least {limit} chars long",
    "minItems": lambda limit, _: f"should have at least {limit} items",
    "minProperties": lambda limit, _: f"should have at least {limit} properties",
    "uniqueItems": lambda *_: "shouldn't contain duplicates",
    "multipleOf": lambda limit, _: f"should be a multiple of {go_number(float(limit))}",
    "maximum": _bound("less", "exclusiveMaximum"),
    "minimum": _bound("greater", "exclusiveMinimum"),
}


def go_value(value: Any) -> str:
    """Write a value as the server's messages do."""
    return go_number(value) if isinstance(value, float) else compact(value)


def go_number(value: float) -> str:
    """Write a floating point number as Go's ``%v`` does: ``5``, ``0.5``, ``1e+06``."""
    number = Decimal(repr(value)).normalize()
    power = number.adjusted()
    if PLAIN_POWERS[0] <= power < PLAIN_POWERS[1]:
        return f"{number:f}"
    return f"{number.scaleb(-power):f}e{power:+03d}"


def quote(text: str) -> str:
    """Write a text in Go's double quotes."""
    return json.dumps(text, ensure_ascii=False)


def compact(value: Any) -> str:
    """Write JSON as the server does: no spaces, keys sorted."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


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
