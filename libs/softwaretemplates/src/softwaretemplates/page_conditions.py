"""
Decide which pages of a form are shown, and remove the values of the hidden ones.

A page with ``when`` is shown if its condition holds, as since Backstage 1.57. Conditions are judged
in the pages' order, each on the values without those of the pages that are hidden so far. A value
stays if a page that is shown names it too. Backstage shows a page whose condition fails; here that
is an error. No I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from ground.errors import InvalidInputError

Schema = dict[str, Any]
WHEN = "when"
_ABSENT: Any = object()
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
