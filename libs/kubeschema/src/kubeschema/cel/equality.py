"""
Rules on sets and keyed lists, which Kubernetes compares regardless of order and CEL does not.

If a rule only compares such lists with each other, they are sorted first and the result is correct.
A rule that concatenates them, compares them with a literal list or uses positions is not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubeschema.cel.syntax_tree import ExpressionNode, element_type, message_name
from kubeschema.cel.type_shapes import CelType

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
    """Whether the rule needs sorted lists, or why it cannot be evaluated."""

    canonical: bool
    gap: str


def comparing(tree: ExpressionNode, shape: CelType) -> Comparing:
    """Return how to evaluate a rule over a type that contains unordered lists."""
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
    """Return whether the node is a list, an object that may contain one, or of unknown type."""
    return node.is_dynamic or element_type(node.type) is not None or _is_object(node)


def _is_object(node: ExpressionNode) -> bool:
    return message_name(node.type) is not None


def _joins(call: ExpressionNode, shape: CelType) -> bool:
    """Return whether a call concatenates lists, or compares elements that are lists or objects."""
    if call.name in _OF_ELEMENTS:
        inner = element_type(call.children[0].type)
        return inner is None or _holds_list(ExpressionNode("", "", inner, ()))
    if call.name == "_+_":
        lists = [child for child in call.children if element_type(child.type) is not None]
        dynamic = any(child.is_dynamic for child in call.children)
        return (dynamic or any(_is_given(child) for child in lists)) and shape.unordered()
    return call.name == "@in" and _holds_list(call.children[0])


def _is_given(node: ExpressionNode) -> bool:
    """
    Return whether the list comes from the object.

    ``map`` and ``filter`` accumulate lists too.
    """
    return node.kind == "select" or (node.kind == "ident" and not node.name.startswith("@"))


def _needs_order(call: ExpressionNode) -> bool:
    """Return whether the result of a call may depend on list order: positions, joining, sorting."""
    lists = [child for child in call.children if element_type(child.type) is not None]
    if call.name == "_[_]":
        return call.children[0] in lists or call.children[0].is_dynamic
    dynamic = any(child.is_dynamic for child in call.children)
    return call.name not in _HARMLESS and bool(lists or dynamic)


def _mixes(shape: CelType) -> bool:
    """Return whether the type has both ordered and unordered lists, which compare differently."""
    are_atomic = {shape_.list_type == "atomic" for shape_ in _lists(shape)}
    return len(are_atomic) > 1


def _lists(shape: CelType) -> Iterator[CelType]:
    if shape.kind == "list":
        yield shape
    inner = [child for _, child in shape.fields.values()]
    for child in (*inner, *([shape.items] if shape.items else ())):
        yield from _lists(child)
