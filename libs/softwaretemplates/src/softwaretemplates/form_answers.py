"""
What the portal's form makes of the answers: defaults are filled in, hidden pages are taken out.

The form (react-jsonschema-form) repeats until nothing changes: properties with ``default`` or
``const``, the first of several constants, empty lists, and the same inside ``allOf``,
``if``/``then``/``else``, ``dependencies`` and the matching ``oneOf`` or ``anyOf``. The table in
``tests/test_template_defaults.py`` was observed on @rjsf/utils 5.24.13. Not followed: ``$ref``
outside the page's own ``definitions``.

A page with ``when`` is shown if its condition holds, as since Backstage 1.57. Conditions are judged
in the pages' order, each on the values without those of the pages that are hidden so far. A value
stays if a page that is shown names it too. Backstage shows a page whose condition fails; here that
is an error. No I/O.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from ground.errors import InvalidInputError

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


WHEN = "when"
_LISTS = ("allOf", "oneOf", "anyOf")
_HALF_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(slots=True)
class _Members:
    """The members of a value that a schema names."""

    all: bool = False
    inner: dict[str, _Members] = field(default_factory=dict)

    def add(self, other: _Members) -> None:
        """Name what another schema names, too."""
        self.all = self.all or other.all
        for key, members in other.inner.items():
            self.inner.setdefault(key, _Members()).add(members)


class _UnreadableError(Exception):
    """A reference of a schema leads nowhere, or back to itself."""


def check_condition(page: Schema, path: str) -> None:
    """
    Refuse a condition that Backstage would not judge as its author means it.

    Raises:
        RenderError: It is malformed. Backstage would always show the page.
        InvalidInputError: It is not one expression, or uses a filter that forms do not have.
    """
    condition = _source(page)
    if not condition:
        return
    from softwaretemplates import render  # lazy: heavy

    try:
        template = render.compile_template(condition, capture=True)
        foreign = render.used_backstage_filters(condition)
    except render.RenderError as error:
        if type(error) is render.RenderError:
            error.hint = f"{error.hint} (Backstage would always show the page)".strip()
        raise error.named(path) from error
    if foreign:
        rule = f"uses the filter '{foreign[0]}', which the conditions of pages do not have"
    elif not template.sole_expression:
        rule = "is not one expression"
    else:
        return
    hint = "compare the answers of earlier pages: ${{ parameters.cloud === 'aws' }}"
    raise InvalidInputError(path, page[WHEN], rule, hint=hint)


def shown_pages(
    pages: Sequence[Schema], values: Mapping[str, Any]
) -> tuple[list[bool], dict[str, Any]]:
    """
    Return for each page whether it is shown, and the values without those of hidden pages.

    Raises:
        RenderError: A condition fails on these values.
    """
    shown: list[bool] = []
    kept = dict(values)
    for at, page in enumerate(pages):
        shown.append(_is_shown(page, kept, f"spec.parameters[{at}].{WHEN}"))
        if not all(shown):
            kept = _without_hidden(values, pages, shown)
    return shown, kept


def _source(page: Schema) -> str:
    """Return the template of a page's condition; "" if it has none."""
    condition = page.get(WHEN)
    if not isinstance(condition, str) or not condition.strip():
        return ""
    condition = condition.strip()
    return condition if condition.startswith("${{") else f"${{{{ {condition} }}}}"


def _is_shown(page: Schema, values: Mapping[str, Any], path: str) -> bool:
    condition = _source(page)
    if not condition:
        return page.get(WHEN) is not False
    from softwaretemplates import render  # lazy: heavy

    try:
        answer = render.compile_template(condition, capture=True).value({"parameters": values})
    except render.RenderError as error:
        raise error.named(path) from error
    return len(answer) > 0 if isinstance(answer, list | str) else render.truthy(answer)


def _without_hidden(
    values: Mapping[str, Any], pages: Sequence[Schema], shown: Sequence[bool]
) -> dict[str, Any]:
    hidden, visible = _Members(), _Members()
    for page, is_shown in zip(pages, shown, strict=False):
        try:
            members = _named(page, values, page, is_open=is_shown)
        except _UnreadableError:
            members = _Members(all=is_shown)
        (visible if is_shown else hidden).add(members)
    kept: dict[str, Any] = _kept(values, hidden, visible)
    return kept


def _named(schema: Any, value: Any, root: Schema, *, is_open: bool | None = None) -> _Members:
    """
    Return the members of `value` that a schema names.

    Args:
        is_open: Of a whole page: whether its ``additionalProperties`` count.
    """
    if not isinstance(schema, dict) or value is _ABSENT:
        return _Members(all=True)
    named = _Members()
    for part in _parts(schema, root, ()):
        extra = part.get("additionalProperties")
        if is_open is not False and (extra is True or isinstance(extra, dict)):
            named.all = True
        properties = part.get("properties")
        for key, inner in properties.items() if isinstance(properties, dict) else ():
            member = value.get(key, _ABSENT) if isinstance(value, dict) else _ABSENT
            named.inner.setdefault(key, _Members()).add(_named(inner, member, root))
        for at, item in enumerate(value) if isinstance(value, list) and "items" in part else ():
            items = part["items"]
            if isinstance(items, list):
                items = items[at] if at < len(items) else part.get("additionalItems")
            named.inner.setdefault(str(at), _Members()).add(_named(items, item, root))
    if is_open is None and not named.inner:
        named.all = True
    return named


def _parts(schema: Schema, root: Schema, above: tuple[int, ...]) -> Iterator[Schema]:
    """Yield a schema and those that apply beside it: its reference, branches and dependencies."""
    if id(schema) in above:
        raise _UnreadableError
    yield schema
    above = (*above, id(schema))
    beside: list[Any] = [schema.get("then"), schema.get("else")]
    if isinstance(schema.get("$ref"), str):
        beside.append(_target(schema["$ref"], root))
    for key in _LISTS:
        beside += schema[key] if isinstance(schema.get(key), list) else ()
    dependencies = schema.get("dependencies")
    beside += dependencies.values() if isinstance(dependencies, dict) else ()
    for other in beside:
        if isinstance(other, dict):
            yield from _parts(other, root, above)


def _target(reference: str, root: Schema) -> Schema:
    """Return what a reference names inside its page."""
    if not reference.startswith("#") or _HALF_ESCAPED.search(reference):
        raise _UnreadableError
    try:
        pointer = unquote(reference[1:], errors="strict")
    except UnicodeDecodeError as error:
        raise _UnreadableError from error
    if pointer and not pointer.startswith("/"):
        raise _UnreadableError
    target: Any = root
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list):
            target = {str(at): item for at, item in enumerate(target)}
        target = target.get(key) if isinstance(target, dict) else None
    if not isinstance(target, dict):
        raise _UnreadableError
    return target


def _kept(value: Any, hidden: _Members | None, visible: _Members | None) -> Any:
    if hidden is None or (visible is not None and visible.all):
        return value
    if visible is None:
        return _ABSENT
    if isinstance(value, list):
        anything = _Members(all=True)
        return [
            _kept(item, _member(hidden, str(at)), visible.inner.get(str(at), anything))
            for at, item in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        return value
    kept = {k: _kept(v, _member(hidden, k), visible.inner.get(k)) for k, v in value.items()}
    return {key: item for key, item in kept.items() if item is not _ABSENT}


def _member(members: _Members, key: str) -> _Members | None:
    return _Members(all=True) if members.all else members.inner.get(key)
