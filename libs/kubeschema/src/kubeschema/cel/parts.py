"""
Which parts of its variables an expression can read.

The CEL library copies what it is given, for each evaluation, and a limit of cost counts all of it.
An object may be large where no expression looks, as the status of an Application with a thousand
resources is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubeschema.cel.syntax_tree import ExpressionNode

Parts = dict[str, "Parts | None"]
"""Variable or field -> which of its fields; None: all of it."""
_Path = tuple[str, ...]
_Scope = Mapping[str, list[_Path]]

_HANDED_ON = frozenset({"dyn", "or", "orValue", "value", "optional.of", "optional.ofNonZeroValue"})
"""Calls whose result is one of their operands, or a part of it when a field is selected."""


def parts_read(tree: ExpressionNode) -> Parts:
    """Return all parts of the variables that an expression can read."""
    reading = _Reading()
    reading.read(tree, {})
    return reading.parts


def only(values: Mapping[str, Any], parts: Parts) -> dict[str, Any]:
    """Return these parts of values; what is no map stays whole."""
    kept = {}
    for name, below in parts.items():
        if name in values:
            value = values[name]
            kept[name] = value if below is None or type(value) is not dict else only(value, below)
    return kept


class _Reading:
    """One pass over an expression."""

    def __init__(self) -> None:
        self.parts: Parts = {}

    def read(self, node: ExpressionNode, scope: _Scope) -> None:
        """Note that all of a node's value is read."""
        for path in self._paths(node, scope):
            self._note(path, None)

    def _paths(self, node: ExpressionNode, scope: _Scope) -> list[_Path]:
        """Return which parts a node's value may be; note what else it reads."""
        match node.kind, node.name, node.children:
            case "ident", name, _:
                return scope.get(name, [(name,)])
            case "select", name, (of,):
                return [(*path, name) for path in self._paths(of, scope)]
            case "call", "_?._", (of, field):
                return [(*path, field.name) for path in self._paths(of, scope)]
            case "call", "_?_:_", (condition, *chosen):
                self.read(condition, scope)
                return self._any_of(chosen, scope)
            case "call", name, operands if name in _HANDED_ON:
                return self._any_of(operands, scope)
        return self._fold(node, scope) if node.kind == "fold" else self._computed(node, scope)

    def _fold(self, node: ExpressionNode, scope: _Scope) -> list[_Path]:
        over, first, *inside = node.children
        if over.kind == "list" and not over.children:  # cel.bind
            return self._paths(inside[-1], {**scope, node.name: self._paths(first, scope)})
        self.read(over, scope)
        self.read(first, scope)
        own: _Scope = {each: [] for each in (node.name, *node.variables)}
        for child in inside:
            self.read(child, {**scope, **own})
        return []

    def _computed(self, node: ExpressionNode, scope: _Scope) -> list[_Path]:
        is_equality = node.kind == "call" and node.name in ("_==_", "_!=_")
        if is_equality and node.children[1].kind == "constant":
            for path in self._paths(node.children[0], scope):
                self._note(path, {})  # a map equals no constant, whatever is in it
        else:
            for child in node.children:
                self.read(child, scope)
        return []

    def _any_of(self, nodes: Iterable[ExpressionNode], scope: _Scope) -> list[_Path]:
        return [path for node in nodes for path in self._paths(node, scope)]

    def _note(self, path: _Path, what: Parts | None) -> None:
        *before, last = path
        parts = self.parts
        for name in before:
            below = parts.setdefault(name, {})
            if below is None:
                return
            parts = below
        parts[last] = what if what is None else parts.get(last, what)
