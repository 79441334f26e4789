"""
Rules over sets and keyed lists: Kubernetes compares them regardless of order, CEL does not.

A rule that only compares such lists with each other is given them in a fixed order and is right.
One that concatenates them, compares them with a list of its own or asks for positions is not
evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orderkit.core.schema.cel.syntax_tree import ExpressionNode, element_type, message_name
from orderkit.core.schema.cel.type_shapes import CelType

_EQUALITY = frozenset({"_==_", "_!=_"})
_HARMLESS = _EQUALITY | frozenset(
    {
        *("_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "size", "_<_", "_<=_", "_>_"),
        *("_>=_", "@in", "startsWith", "endsWith", "contains", "matches", "_-_", "_*_", "_/_"),
        *("_%_", "-_", "hasValue", "value", "orValue", "_?._", "string", "int", "double"),
    }
)
_OF_ELEMENTS = frozenset(
    {"distinct", "lastIndexOf", "sets.contains", "sets.equivalent", "sets.intersects"}
)


@dataclass(frozen=True, slots=True)
class Comparing:
    """Whether the rule wants its lists in a fixed order, or why it cannot be evaluated."""

    canonical: bool
    gap: str


def comparing(tree: ExpressionNode, shape: CelType) -> Comparing:
    """Return how a rule over a shape with unordered lists is to be evaluated."""
    calls = [node for node in tree.walk() if node.kind == "call"]
    compared = [call for call in calls if call.name in _EQUALITY and _any_collection(call)]
    if any(_joins(call, shape) for call in calls):
        return Comparing(canonical=False, gap="concatenates or searches lists without order")
    if not compared:
        return Comparing(canonical=False, gap="")
    ordered = any(_needs_order(call) for call in calls)
    has_computed_side = any(
        child.kind not in {"select", "ident"} for call in compared for child in call.children
    )
    if ordered or has_computed_side or _mixes(shape):
        return Comparing(canonical=False, gap="compares a list without order with another list")
    return Comparing(canonical=True, gap="")


def _any_collection(call: ExpressionNode) -> bool:
    return any(_holds_list(child) for child in call.children)


def _holds_list(node: ExpressionNode) -> bool:
    """A list, an object that may hold one, or something whose type is not known."""
    return node.is_dynamic or element_type(node.type) is not None or _is_object(node)


def _is_object(node: ExpressionNode) -> bool:
    return message_name(node.type) is not None


def _joins(call: ExpressionNode, shape: CelType) -> bool:
    """Say whether a call joins lists to one, or compares elements that are lists or objects."""
    if call.name in _OF_ELEMENTS:
        inner = element_type(call.children[0].type)
        return inner is None or _holds_list(ExpressionNode("", "", inner, ()))
    if call.name == "_+_":
        lists = [child for child in call.children if element_type(child.type) is not None]
        dynamic = any(child.is_dynamic for child in call.children)
        return (dynamic or any(_is_given(child) for child in lists)) and shape.unordered()
    return call.name == "@in" and _holds_list(call.children[0])


def _is_given(node: ExpressionNode) -> bool:
    """The accumulator of ``map`` and ``filter`` is a list too, but none of the object's."""
    return node.kind == "select" or (node.kind == "ident" and not node.name.startswith("@"))


def _needs_order(call: ExpressionNode) -> bool:
    """Say whether a call may tell lists of another order apart: positions, joining, sorting."""
    lists = [child for child in call.children if element_type(child.type) is not None]
    if call.name == "_[_]":
        return call.children[0] in lists or call.children[0].is_dynamic
    dynamic = any(child.is_dynamic for child in call.children)
    return call.name not in _HARMLESS and bool(lists or dynamic)


def _mixes(shape: CelType) -> bool:
    """Say whether there are lists with order beside those without: they compare differently."""
    are_atomic = {shape_.list_type == "atomic" for shape_ in _lists(shape)}
    return len(are_atomic) > 1


def _lists(shape: CelType) -> Iterator[CelType]:
    if shape.kind == "list":
        yield shape
    inner = [child for _, child in shape.fields.values()]
    for child in (*inner, *([shape.items] if shape.items else ())):
        yield from _lists(child)
