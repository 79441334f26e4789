"""
Sets of field paths, in the very form ``managedFields`` stores them (FieldsV1).

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


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths that are in either set."""
    out = dict(left)
    for step, node in right.items():
        out[step] = _join(left[step], node) if step in left else node
    return out


def _join(left: FieldSet, right: FieldSet) -> FieldSet:
    if left == right:
        return left
    out = union(left, right)
    if is_member(left) or is_member(right):
        out[SELF] = {}
    return out if len(out) > 1 or SELF not in out else {}


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths of `left` that are not in `right`, path by path."""
    out: FieldSet = {}
    for step, node in left.items():
        if step == SELF:
            continue
        rest = _subtract(node, right[step]) if step in right else node
        if rest is not None:
            out[step] = rest
    return out


def _subtract(left: FieldSet, right: FieldSet) -> FieldSet | None:
    children = difference(left, right)
    stays = is_member(left) and not is_member(right)
    if not children:
        return {} if stays else None
    return {SELF: {}, **children} if stays else children


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths that are in both sets."""
    out: FieldSet = {}
    for step, node in left.items():
        if step == SELF or step not in right:
            continue
        both = _meet(node, right[step])
        if both is not None:
            out[step] = both
    return out


def _meet(left: FieldSet, right: FieldSet) -> FieldSet | None:
    children = intersection(left, right)
    stays = is_member(left) and is_member(right)
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
    tag, _, rest = step.partition(":")
    if tag == "f":
        return f".{rest}"
    if tag == "v":
        return f"[={rest}]"
    keys = json.loads(rest)
    return "[" + ",".join(f"{key}={json.dumps(keys[key])}" for key in sorted(keys)) + "]"
