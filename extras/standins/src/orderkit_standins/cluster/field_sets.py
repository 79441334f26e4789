"""
Sets of field paths, in the form that ``managedFields`` stores (FieldsV1).

A set is a nested dict: ``{"f:spec": {"f:stage": {}}}``. A node is a member if it is empty or
holds ``"."``. Steps are ``f:<name>``, ``k:<keys as JSON>`` (list-map item) and ``v:<JSON>``
(set item). Nothing here changes its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FieldSet = dict[str, Any]
"""The root is never a member, so an empty root is the empty set."""

SELF = "."


def is_member(node: FieldSet) -> bool:
    """Say whether a node below the root is itself in the set."""
    return not node or SELF in node


def union(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths that are in either set."""
    joined = dict(first)
    for step, node in second.items():
        joined[step] = _join(first[step], node) if step in first else node
    return joined


def _join(first: FieldSet, second: FieldSet) -> FieldSet:
    if first == second:
        return first
    joined = union(first, second)
    if is_member(first) or is_member(second):
        joined[SELF] = {}
    return joined if len(joined) > 1 or SELF not in joined else {}


def difference(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths of `first` that are not in `second`, path by path."""
    remaining: FieldSet = {}
    for step, node in first.items():
        if step == SELF:
            continue
        subtracted = _subtract(node, second[step]) if step in second else node
        if subtracted is not None:
            remaining[step] = subtracted
    return remaining


def _subtract(first: FieldSet, second: FieldSet) -> FieldSet | None:
    children = difference(first, second)
    stays = is_member(first) and not is_member(second)
    if not children:
        return {} if stays else None
    return {SELF: {}, **children} if stays else children


def intersection(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths that are in both sets."""
    shared: FieldSet = {}
    for step, node in first.items():
        if step == SELF or step not in second:
            continue
        shared_node = _meet(node, second[step])
        if shared_node is not None:
            shared[step] = shared_node
    return shared


def _meet(first: FieldSet, second: FieldSet) -> FieldSet | None:
    children = intersection(first, second)
    stays = is_member(first) and is_member(second)
    if not children:
        return {} if stays else None
    return {SELF: {}, **children} if stays else children


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the members as the API server prints them: ``.status.conditions[type="Ready"]``."""
    for step in sorted(fields):
        if step == SELF:
            continue
        path = prefix + _printed(step)
        if is_member(fields[step]):
            yield path
        yield from paths(fields[step], path)


def _printed(step: str) -> str:
    tag, _, content = step.partition(":")
    if tag == "f":
        return f".{content}"
    if tag == "v":
        return f"[={content}]"
    keys = json.loads(content)
    return "[" + ",".join(f"{key}={json.dumps(keys[key])}" for key in sorted(keys)) + "]"
