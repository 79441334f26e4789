"""
Fill in the defaults that the portal's form fills in, including those that depend on answers.

The form (react-jsonschema-form) repeats until nothing changes: properties with ``default`` or
``const``, the first of several constants, empty lists, and the same inside ``allOf``,
``if``/``then``/``else``, ``dependencies`` and the matching ``oneOf`` or ``anyOf``. The table in
``tests/test_template_defaults.py`` was observed on @rjsf/utils 5.24.13. Not followed: ``$ref``
outside the page's own ``definitions``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = dict[str, Any]
IsValid = Callable[[Schema, Any], bool]

_ROUNDS_MAX = 20
_DEPTH_MAX = 32
_ABSENT: Any = object()
_BRANCHES = ("allOf", "if", "then", "else", "dependencies", "oneOf", "anyOf", "$ref")


def fill(page: Schema, values: Mapping[str, Any], is_valid: IsValid) -> dict[str, Any]:
    """
    Return `values` with the defaults that the form adds on this page. Passed values always win.

    Args:
        is_valid: Returns whether a schema accepts a value; decides between branches.
    """
    form = _Form(page, is_valid)
    current = copy.deepcopy(dict(values))
    for _ in range(_ROUNDS_MAX):
        filled = form.object(page, current, 0)
        if filled == current:
            break
        current = filled
    return current


class _Form:
    """One page. `root` holds its definitions."""

    def __init__(self, root: Schema, is_valid: IsValid) -> None:
        self._root, self._is_valid = root, is_valid

    def object(self, schema: Schema, data: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return the data of an object with its defaults: properties in order, then the rest."""
        if depth > _DEPTH_MAX:
            return dict(data)
        resolved = self._resolve(schema, data, depth)
        outer = resolved.get("default")
        outer = outer if isinstance(outer, dict) else {}
        data_with_defaults: dict[str, Any] = {}
        for name, property_ in resolved["properties"].items():
            required = name in resolved["required"]
            value = self._value(property_, data.get(name, _ABSENT), depth + 1, required=required)
            if value is _ABSENT and name in outer:
                value = copy.deepcopy(outer[name])
            if value is not _ABSENT:
                data_with_defaults[name] = value
        extra = resolved.get("additionalProperties")
        for name, value in data.items():
            if name in data_with_defaults:
                continue
            if isinstance(extra, dict) and isinstance(value, dict):
                data_with_defaults[name] = self.object(extra, value, depth + 1)
            else:
                data_with_defaults[name] = value
        return data_with_defaults

    def _value(self, schema: Any, answer: Any, depth: int, *, required: bool) -> Any:
        schema = self._resolve_branch(schema, answer, depth)
        if answer is None or not schema:
            return answer
        value = answer
        if value is _ABSENT:
            value = copy.deepcopy(schema.get("const", schema.get("default")))
            value = _ABSENT if value is None else value
        type_ = schema.get("type", "object" if "properties" in schema else None)
        if type_ == "object" and (value is _ABSENT or isinstance(value, dict)):
            # Defaults of the properties take precedence over a default of the whole object.
            data = value if answer is not _ABSENT else {}
            filled = self.object(schema, data, depth)
            return filled if filled or required or answer is not _ABSENT else _ABSENT
        if type_ == "array" and (value is _ABSENT or isinstance(value, list)):
            return self._list(schema, value, depth)
        return value

    def _list(self, schema: Schema, value: Any, depth: int) -> list[Any]:
        items = schema.get("items")
        if not isinstance(items, dict):
            return [] if value is _ABSENT else list(value)
        if value is _ABSENT:
            empty = self._value(items, _ABSENT, depth + 1, required=True)
            first = None if empty is _ABSENT else empty
            return [copy.deepcopy(first) for _ in range(min(schema.get("minItems", 0), 100))]
        return [
            self.object(items, item, depth + 1) if isinstance(item, dict) else item
            for item in value
        ]

    def _resolve_branch(self, schema: Any, answer: Any, depth: int) -> Schema:
        """Follow ``$ref``, and select one branch of a property that is not an object."""
        resolved = self._resolve_ref(schema)
        for key in ("oneOf", "anyOf"):
            branches = resolved.get(key)
            is_object = resolved.get("type") == "object" or "properties" in resolved
            if branches and answer is _ABSENT and not is_object and "default" not in resolved:
                first = (
                    self._resolve_branch(branches[0], answer, depth + 1)
                    if depth < _DEPTH_MAX
                    else {}
                )
                resolved = {**resolved, **first, "type": resolved.get("type", first.get("type"))}
        return resolved

    def _resolve_ref(self, schema: Any) -> Schema:
        for _ in range(_DEPTH_MAX):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            target: Any = self._root
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target.get(step, {}) if isinstance(target, dict) else {}
            siblings = {k: v for k, v in schema.items() if k != "$ref"}
            schema = {**(target if isinstance(target, dict) else {}), **siblings}
        resolved: Schema = schema if isinstance(schema, dict) else {}
        return resolved

    def _resolve(self, schema: Schema, data: Mapping[str, Any], depth: int) -> Schema:
        """Merge every branch that applies to `data` into one plain schema."""
        schema = self._resolve_ref(schema)
        merged: Schema = {k: v for k, v in schema.items() if k not in _BRANCHES}
        merged["properties"] = dict(schema.get("properties") or {})
        merged["required"] = list(schema.get("required") or ())
        if depth > _DEPTH_MAX:
            return merged
        for branch in self._holding(schema, data):
            inner = self._resolve(branch, data, depth + 1)
            merged["required"] += inner["required"]
            for name, property_ in inner["properties"].items():
                merged["properties"][name] = {**merged["properties"].get(name, {}), **property_}
        return merged

    def _holding(self, schema: Schema, data: Mapping[str, Any]) -> Iterator[Schema]:
        yield from schema.get("allOf") or ()
        if "if" in schema:
            yield schema.get("then" if self._is_valid(schema["if"], data) else "else") or {}
        for key, dependency in (schema.get("dependencies") or {}).items():
            if data.get(key) is None:
                continue
            if isinstance(dependency, list):
                yield {"required": dependency}
            else:
                yield from self._dependent(key, self._resolve_ref(dependency), data)
        for kind in ("oneOf", "anyOf"):
            if schema.get(kind):
                yield self._matching(schema[kind], data)

    def _dependent(self, key: str, schema: Schema, data: Mapping[str, Any]) -> Iterator[Schema]:
        """
        Yield the schemas that an answered question adds.

        Of ``oneOf``, only the matching branch.
        """
        yield {name: value for name, value in schema.items() if name != "oneOf"}
        matching = [
            branch
            for branch in map(self._resolve_ref, schema.get("oneOf") or ())
            if key in (branch.get("properties") or {})
            and self._is_valid(branch["properties"][key], data[key])
        ]
        if len(matching) == 1:
            (branch,) = matching
            properties = {n: s for n, s in branch["properties"].items() if n != key}
            yield {**branch, "properties": properties}

    def _matching(self, branches: list[Any], data: Mapping[str, Any]) -> Schema:
        """Return the first branch that matches and constrains a value; if none does, the first."""
        resolved = [self._resolve_ref(branch) for branch in branches]
        for branch in resolved:
            if set(branch.get("properties") or {}) & set(data) and self._is_valid(branch, data):
                return branch
        return resolved[0]
