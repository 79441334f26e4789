"""
Check whether a schema is structural: what the API server requires of ``openAPIV3Schema``.

Checked: a type on every level, what may stand at the root and in ``metadata``, what logical
junctors may not contain, forbidden keywords, list and map types, patterns, map keys, defaults and
enums. Stricter than the server in one respect: an enum value of another type is refused. CEL rules
are checked in ``cel``.

`topology_faults` checks ``x-kubernetes-list-type`` and related keywords, one level at a time;
`check_schema` walks the schema. All paths and messages are the server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubeschema.pruning import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    PRESERVE,
    Schema,
    prune,
)
from kubeschema.re2_patterns import PatternError, compile_pattern
from kubeschema.structural.api_messages import compact, problems
from kubeschema.structural.validators import StructuralValidator

__all__ = ["check_schema"]


MAP_TYPE = "x-kubernetes-map-type"
Fault = tuple[str, str]
"""Path below the level, and message."""

_LIST_TYPES, _MAP_TYPES = ("atomic", "set", "map"), ("atomic", "granular")


def topology_faults(schema: Schema) -> Iterator[Fault]:
    """Yield what the server would refuse at this level."""
    if schema.get(PRESERVE) is False:
        yield f".{PRESERVE}", "Invalid value: false: must be true or undefined"
    yield from _stated_kind(schema, MAP_TYPE, "object", _MAP_TYPES)
    yield from _stated_kind(schema, LIST_TYPE, "array", _LIST_TYPES)
    if isinstance(schema.get("items"), list):
        yield ".items", "Forbidden: items must be a schema object and not an array"
        return
    items = schema.get("items") or {}
    if schema.get(LIST_TYPE) == "set":
        yield from _set(items)
    if schema.get(LIST_TYPE) in {"set", "map"} and items.get("nullable"):
        message = f"Forbidden: cannot be nullable when {LIST_TYPE} is {schema[LIST_TYPE]}"
        yield ".items.nullable", message
    yield from _keys(schema, items)


def _stated_kind(
    schema: Schema, keyword: str, kind: str, allowed_values: tuple[str, ...]
) -> Iterator[Fault]:
    if keyword not in schema:
        return
    message = f"must be {kind} if {keyword} is specified"
    if not schema.get("type"):
        yield ".type", f"Required value: {message}"
    elif schema["type"] != kind:
        yield ".type", f"Invalid value: {compact(schema['type'])}: {message}"
    if schema[keyword] not in allowed_values:
        allowed_text = ", ".join(f'"{name}"' for name in allowed_values)
        value = compact(schema[keyword])
        yield f".{keyword}", f"Unsupported value: {value}: supported values: {allowed_text}"


def _set(items: Schema) -> Iterator[Fault]:
    """Check the items of a set: they are compared as a whole, so they must be atomic."""
    message = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        yield f".items.{LIST_TYPE}", f"Invalid value: {compact(items[LIST_TYPE])}: {message}"
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield f".items.{MAP_TYPE}", f"Invalid value: {compact(items.get(LIST_TYPE))}: {message}"


def _keys(schema: Schema, items: Schema) -> Iterator[Fault]:
    keys: list[Any] = schema.get(LIST_MAP_KEYS) or []
    kind = schema.get(LIST_TYPE)
    if keys and kind != "map":
        message = f"must be map if {LIST_MAP_KEYS} is non-empty"
        lead = "Required value" if kind is None else f"Invalid value: {compact(kind)}"
        yield f".{LIST_TYPE}", f"{lead}: {message}"
    if kind != "map":
        return
    if not keys:
        yield f".{LIST_MAP_KEYS}", f"Required value: must not be empty if {LIST_TYPE} is map"
    if "items" not in schema:
        yield ".items", f"Required value: must have a schema if {LIST_TYPE} is map"
    elif items.get("type") != "object":
        message = f"must be object if parent array's {LIST_TYPE} is map"
        yield ".items.type", f"Invalid value: {compact(items.get('type') or '')}: {message}"
    else:
        yield from _named_keys(keys, items)


def _named_keys(keys: list[Any], items: Schema) -> Iterator[Fault]:
    declared = items.get("properties") or {}
    for index, key in enumerate(keys):
        keys_text = f"Invalid value: {compact(keys)}"
        if key not in declared:
            yield f".{LIST_MAP_KEYS}", f"{keys_text}: entries must all be names of item properties"
        elif declared[key].get("type") in {"array", "object"}:
            message = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield f".items.properties[{key}].type", f'Invalid value: "object": {message}'
        elif declared[key].get("nullable"):
            message = f"this property is in {LIST_MAP_KEYS}, so it cannot be nullable"
            yield f".items.properties[{key}].nullable", f"Forbidden: {message}"
        if key in keys[:index]:
            yield f".{LIST_MAP_KEYS}", f"{keys_text}: must not contain duplicate entries"


TYPES = ("string", "number", "integer", "boolean", "object", "array")
FORBIDDEN = ("$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
ONLY_OUTSIDE = (
    *("type", "default", "title", "description", "nullable", "additionalProperties"),
    "x-kubernetes-validations",
)
"""Keywords that shape a value and so are forbidden below allOf, anyOf, oneOf or not."""

ROOT, FIELD, ITEM = "at the root", "for specified object fields", "for specified array items"
INT_OR_STRING_ANY = [{"type": "integer"}, {"type": "string"}]


def check_schema(schema: object, *, at: str = "") -> list[str]:
    """
    Return why the server would refuse the schema, sorted; empty if it is structural.

    Args:
        at: Path of the schema in its CRD; prefix of every line.
    """
    if not isinstance(schema, dict):
        return [_line(at, "Required value: schemas are required")]
    faults = [*_keywords(schema, at), *_level(schema, at, ROOT)]
    if not faults:
        faults = [*_values(schema, at, root=True)]
    return sorted(faults)


def _line(path: str, text: str) -> str:
    return f"{path.removeprefix('.') or '<nil>'}: {text}"


def _keywords(schema: Schema, path: str) -> Iterator[str]:
    """Check that the argument of every keyword can be read, at any level."""
    for name in FORBIDDEN:
        if name in schema:
            yield _line(f"{path}.{name}", f"Forbidden: {name} is not supported")
    if schema.get("type", "object") not in TYPES:
        types = ", ".join(f'"{name}"' for name in sorted(TYPES))
        yield _line(
            f"{path}.type",
            f"Unsupported value: {compact(schema['type'])}: supported values: {types}",
        )
    if schema.get("properties") and schema.get("additionalProperties", True) is not True:
        yield _line(
            f"{path}.additionalProperties",
            "Forbidden: additionalProperties and properties are mutual exclusive",
        )
    if schema.get("uniqueItems"):
        yield _line(
            f"{path}.uniqueItems",
            "Forbidden: uniqueItems cannot be set to true since the runtime complexity "
            "becomes quadratic",
        )
    yield from _pattern(schema, path)
    yield from (_line(f"{path}{step}", fault) for step, fault in topology_faults(schema))
    for child_path, child in _subschemas(schema, path):
        if isinstance(child, dict):
            yield from _keywords(child, child_path)
        else:
            yield _line(child_path, f"Invalid value: {compact(child)}: must be a schema")


def _pattern(schema: Schema, path: str) -> Iterator[str]:
    if "pattern" not in schema:
        return
    try:
        compile_pattern(schema["pattern"])
    except (PatternError, TypeError) as error:
        message = f"must be a valid regular expression, but isn't: {error}"
        yield _line(f"{path}.pattern", f"Invalid value: {compact(schema['pattern'])}: {message}")


def _children(schema: Schema, path: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the schemas of fields and items: path, schema and level."""
    for name, child in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", child, FIELD
    if "items" in schema and not isinstance(schema["items"], list):
        yield f"{path}.items", schema["items"], ITEM
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield f"{path}.additionalProperties", schema["additionalProperties"], FIELD


def _junctors(schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    for name in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(name) or ()):
            yield f"{path}.{name}[{index}]", child
    if "not" in schema:
        yield f"{path}.not", schema["not"]


def _subschemas(schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    for child_path, child, _ in _children(schema, path):
        yield child_path, child
    yield from _junctors(schema, path)


def _level(schema: Schema, path: str, level: str) -> Iterator[str]:
    yield from _own_type(schema, path, level)
    yield from _map_keys(schema, path)
    if level == ROOT:
        yield from _root(schema, path)
        for child_path, child in _junctors(schema, path):
            yield from _undeclared(child, child_path, schema, path)
    for child_path, child, child_level in _children(schema, path):
        if not (level == ROOT and child_path == f"{path}.properties[metadata]"):
            yield from _level(child, child_path, child_level)
    any_of = schema.get("anyOf")
    for junctor_path, child in _junctors(schema, path):
        pattern_of_int_or_string = (
            any_of == INT_OR_STRING_ANY and ".anyOf[" in junctor_path[len(path) :]
        )
        if not (schema.get(INT_OR_STRING) and pattern_of_int_or_string):
            yield from _nested(child, junctor_path)


def _own_type(schema: Schema, path: str, level: str) -> Iterator[str]:
    kind = schema.get("type")
    if schema.get(EMBEDDED) and kind != "object":
        yield _line(
            f"{path}.type",
            "Required value: must be object if x-kubernetes-embedded-resource is true",
        )
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield _line(f"{path}.type", f"Required value: must not be empty {level}")
    if kind and schema.get(INT_OR_STRING):
        yield _line(
            f"{path}.type",
            f"Invalid value: {compact(kind)}: must be empty if x-kubernetes-int-or-string is true",
        )
    if kind == "array" and "items" not in schema:
        yield _line(f"{path}.items", "Required value: must be specified")
    if schema.get(INT_OR_STRING) and schema.get(PRESERVE):
        yield _line(
            f"{path}.{PRESERVE}",
            f"Invalid value: true: must be false if {INT_OR_STRING} is true",
        )
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not schema.get("properties"):
        yield _line(
            f"{path}.properties",
            "Required value: must not be empty if x-kubernetes-embedded-resource is true "
            "without x-kubernetes-preserve-unknown-fields",
        )


def _root(schema: Schema, path: str) -> Iterator[str]:
    if schema.get("type") not in {None, "object"}:
        yield _line(
            f"{path}.type",
            f"Invalid value: {compact(schema['type'])}: must be object at the root",
        )
    if "additionalProperties" in schema:
        yield _line(f"{path}.additionalProperties", "Forbidden: must not be used at the root")
    metadata = (schema.get("properties") or {}).get("metadata")
    if isinstance(metadata, dict):
        extra = set(metadata) - {"type", "properties", "description"}
        restricted = set(metadata.get("properties") or ()) - {"name", "generateName"}
        if extra or restricted:
            yield _line(
                f"{path}.properties[metadata]",
                "Forbidden: must not specify anything other than name and generateName, but "
                "metadata is implicitly specified",
            )


def _nested(schema: Schema, path: str) -> Iterator[str]:
    """Check a schema below a junctor, which may only judge values."""
    for name in ONLY_OUTSIDE:
        if name in schema:
            yield _line(f"{path}.{name}", "Forbidden: must be empty to be structural")
    for child_path, child in _subschemas(schema, path):
        yield from _nested(child, child_path)


def _undeclared(schema: Schema, path: str, outer: Schema, outer_path: str) -> Iterator[str]:
    """Find fields that the root's junctors judge but the root does not declare (not deeper)."""
    declared = outer.get("properties") or {}
    for name, child in (schema.get("properties") or {}).items():
        inner_path, outer_child_path = (
            f"{path}.properties[{name}]",
            f"{outer_path}.properties[{name}]",
        )
        if name in declared:
            yield from _undeclared(child, inner_path, declared[name], outer_child_path)
        else:
            yield _line(
                outer_child_path,
                f"Required value: because it is defined in {inner_path.lstrip('.')}",
            )
    if "items" in schema and "items" in outer:
        yield from _undeclared(
            schema["items"], f"{path}.items", outer["items"], f"{outer_path}.items"
        )
    for child_path, child in _junctors(schema, path):
        yield from _undeclared(child, child_path, outer, outer_path)


def _map_keys(schema: Schema, path: str) -> Iterator[str]:
    """Check that every key of a keyed list always has a value: required, or with a default."""
    items = schema.get("items") or {}
    if isinstance(items, list):
        return
    required, declared = items.get("required") or (), items.get("properties") or {}
    for key in schema.get(LIST_MAP_KEYS) or ():
        if key in declared and key not in required and "default" not in declared[key]:
            yield _line(
                f"{path}.items.properties[{key}].default",
                "Required value: this property is in x-kubernetes-list-map-keys, so it must have "
                "a default or be a required property",
            )


def _values(schema: Schema, path: str, *, root: bool = False) -> Iterator[str]:
    """Check that defaults and enums are values the schema itself accepts."""
    if schema.get("default") is not None:
        if root:
            yield _line(f"{path}.default", "Forbidden: must not be set at the root")
        yield from _default(schema, f"{path}.default")
    bare = {k: v for k, v in schema.items() if k in {"type", INT_OR_STRING, "nullable", "items"}}
    for index, choice in enumerate(schema.get("enum") or ()):
        if not StructuralValidator(bare).is_valid(choice):
            yield _line(
                f"{path}.enum[{index}]",
                f"Invalid value: {compact(choice)}: must be of type {schema.get('type')}",
            )
    for child_path, child, _ in _children(schema, path):
        yield from _values(child, child_path)


def _default(schema: Schema, path: str) -> Iterator[str]:
    for problem in problems(schema, schema["default"]):
        field_path = f"{path}.{problem.path}" if problem.path else path
        yield _line(field_path, problem.message)
    wrapped = {"type": "object", "properties": {"default": schema}}
    _, unknown = prune(wrapped, {"default": schema["default"]})
    if unknown:
        yield _line(
            path,
            f"Invalid value: {compact(schema['default'])}: must not have unknown fields",
        )
