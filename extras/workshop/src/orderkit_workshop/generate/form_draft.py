"""
Draft the form of an imported XRD: what kit.yaml should say so that people can fill it in.

Written once, into kit.yaml, where the author sees and edits it: what a form is called and where it
puts a value must not change with a release of Orderkit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest
from ground.shapes import changed
from kubeschema.extensions import PRESERVE
from orderkit.core.kit.form_shapes import FieldPath
from orderkit.core.kit.literals import RESERVED, YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import FieldShape, KitField, fields_of

GROUP = "parameters"
"""The group that many XRDs wrap around all their fields."""
FORM_MAX = 60
"""Values that a form asks for one by one. Of a larger one, as many stay as `KEPT` says."""
KEPT = 40


def form_draft(xrd: Manifest) -> dict[str, Any]:
    """Return ``unfold`` and ``yamlFields`` of kit.yaml, as far as the XRD needs them."""
    kit = Kit(name="draft", xrd=xrd)
    try:
        top = fields_of(kit).top
    except OrderkitError:
        return {}  # Crossplane cannot use the XRD: whoever reads the kit is told
    unfold = GROUP if _can_unfold(top) else ""
    fields = fields_of(changed(kit, unfold=unfold)).form
    asked = [field for field in fields if field.asked]
    paths = [path for field in asked for path in _advanced_inside(field)]
    if sum(field.weight for field in asked) > FORM_MAX:
        kept = _kept(asked, {*paths})
        paths = [path for field in asked for path in _rest(field, kept)]
    draft: dict[str, Any] = {"unfold": unfold} if unfold else {}
    return {**draft, "yamlFields": paths} if paths else draft


def _can_unfold(top: Sequence[KitField]) -> bool:
    group = next((field for field in top if field.path == GROUP), None)
    if group is None or group.shape is not FieldShape.OBJECT or group.schema.get(PRESERVE):
        return False
    if not group.required and any(field.required for field in group.fields):
        return False
    others = [f for f in top if f is not group]
    if any(f.shape is FieldShape.OBJECT and f.visible and not f.advanced for f in others):
        return False
    taken = {field.name for field in others} | {*RESERVED, YAML_PARAMETER}
    return group.visible and taken.isdisjoint(field.name for field in group.fields)


def _advanced_inside(field: KitField) -> Iterator[FieldPath]:
    """Yield the outermost advanced fields inside a group."""
    for inner in field.fields:
        if inner.visible and inner.advanced and not inner.required:
            yield inner.path
        elif inner.visible:
            yield from _advanced_inside(inner)


def _kept(asked: Sequence[KitField], never: set[FieldPath]) -> set[FieldPath]:
    """
    Return the fields that stay: what is required, then the outermost, as many as fit.

    A group stays as a whole or not at all, unless it is required or larger than any form.
    """
    kept: set[FieldPath] = set()
    budget = KEPT
    waiting = deque(asked)
    while waiting:
        field = waiting.popleft()
        is_group = field.shape is FieldShape.OBJECT and bool(field.fields)
        is_opened = is_group and (field.required or field.weight > KEPT)
        is_left_out = field.advanced or field.path in never or field.weight > budget
        if is_left_out and not field.required and not is_opened:
            continue
        kept.add(field.path)
        if is_opened:
            waiting.extend(inner for inner in field.fields if inner.visible)
        else:
            kept.update(inner.path for inner in field.walk() if inner.path not in never)
            budget -= field.weight
    return kept


def _rest(field: KitField, kept: set[FieldPath]) -> list[FieldPath]:
    """Return the outermost parts of a field that are not kept."""
    if field.path not in kept:
        return [field.path]
    inner = [f for f in field.fields if f.visible]
    rest = [path for nested in inner for path in _rest(nested, kept)]
    if inner and not field.required and all(nested.path not in kept for nested in inner):
        return [field.path]
    return rest
