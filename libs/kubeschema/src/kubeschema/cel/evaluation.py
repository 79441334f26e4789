"""
Evaluate expressions within limits: the only place where the CEL library computes.

The library holds the interpreter while it computes, and nothing can stop it. So a program runs only
if ``expression_costs`` bounds its cost, first by the size of all values alone, which is cheap and
nearly always enough, then by the values themselves. All evaluations for one object together stop
after `SECONDS_MAX` of processor time, as Kubernetes' budget does. What is stopped is *costly*: it
counts against the object, change or write that it is about.

`parts_read` says which parts of its variables an expression can read, and `only` keeps these. The
CEL library copies what it is given, for each evaluation, and a limit of cost counts all of it. An
object may be large where no expression looks, as the status of an Application with a thousand
resources is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kubeschema.cel.cel_functions import MARK
from kubeschema.cel.expression_costs import (
    COST_MAX,
    extent_of,
    is_affordable,
    unknown_extent,
    weight_of,
)
from kubeschema.cel.syntax_tree import ExpressionNode, read_tree

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


SECONDS_MAX = 1.0
_SMALLEST, _LARGER, _USUAL_SIZE = 64.0, 2, 1_024
_ROUNDS = "Iteration budget exceeded"
_LACKING = re.compile(
    r"No overload found in reference resolve step for (\S+)"
    r"|No matching overloads found : ((?:\([^)]*\)\.)?[A-Za-z][^ ]*)"
)
_INTERNAL = re.compile("Non-CEL value type|Unexpected value type|out of range for '")
"""Errors of the library's Python side. They do not mean the expression is wrong."""


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """A value, an error that the server would report too, or the reason for not evaluating."""

    value: Any = None
    error: str = ""
    gap: str = ""
    is_costly: bool = False
    """A limit is the reason: it counts against what is judged."""


@dataclass(slots=True)
class Meter:
    """Processor time that evaluations for one object have taken."""

    spent_s: float = 0.0


@dataclass
class Activation:
    """The variables of expressions, as plain data, and the meter that they share."""

    variables: Mapping[str, Any]
    meter: Meter = field(default_factory=Meter)

    @cached_property
    def size(self) -> float:
        """Return a bound for the letters and entries of all variables."""
        return weight_of([*{id(value): value for value in self.variables.values()}.values()])

    def only(self, parts: Parts) -> Activation:
        """Return the same with these parts alone: the library copies all that it is given."""
        return Activation(only(self.variables, parts), self.meter)


class Program:
    """A compiled expression."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._affordable_size = 0.0
        """With values of this size in all, it costs little enough, whatever they are."""
        self._doubtful_size = float("inf")

    def serialize(self) -> bytes:
        """Return the checked expression for `read_tree`."""
        return bytes(self._compiled.serialize())

    def evaluate(self, activation: Activation) -> EvaluationOutcome:
        """Evaluate, unless that may cost too much. Never raises."""
        activation = activation.only(self._parts)
        if not self._is_affordable(activation):
            return _costly(f"it may cost more than {COST_MAX} units with these values")
        meter = activation.meter
        if meter.spent_s > SECONDS_MAX:
            return _costly(f"the expressions before it took {SECONDS_MAX} s")
        # To ask for the time costs as much as a small expression.
        is_metered = activation.size > _USUAL_SIZE or self._has_loop
        started_s = time.thread_time() if is_metered else 0.0
        try:
            result = self._compiled.eval(data=activation.variables)
        except (RuntimeError, MemoryError) as error:
            if _ROUNDS in str(error):
                return _costly("its loops take more than 10000 rounds")
            return EvaluationOutcome(gap=f"the CEL library: {error}")
        finally:
            if is_metered:
                meter.spent_s += time.thread_time() - started_s
        if result.type().name() in {"*error*", "ERROR"}:
            text = str(result.value())
            return EvaluationOutcome(gap=_gap_in(text), error=text)
        return EvaluationOutcome(result.value())

    def _is_affordable(self, activation: Activation) -> bool:
        size = activation.size
        if size <= self._affordable_size:
            return True
        rounded = _SMALLEST
        while rounded < size < float("inf"):
            rounded *= _LARGER
        variables = activation.variables
        if rounded < self._doubtful_size:
            unknown = dict.fromkeys(variables, unknown_extent(rounded))
            if is_affordable(self._tree, unknown):
                self._affordable_size = rounded
                return True
            self._doubtful_size = rounded
        known = {name: extent_of(value) for name, value in variables.items()}
        return is_affordable(self._tree, known)

    @cached_property
    def _has_loop(self) -> bool:
        return any(node.kind == "fold" for node in self._tree.walk())

    @cached_property
    def _parts(self) -> Parts:
        return parts_read(self._tree)

    @cached_property
    def _tree(self) -> ExpressionNode:
        return read_tree(self.serialize())


def _costly(why: str) -> EvaluationOutcome:
    return EvaluationOutcome(gap=f"it costs too much to evaluate: {why}", is_costly=True)


def _gap_in(text: str) -> str:
    """Return why an expression could not be evaluated; empty if the error is its own."""
    if MARK in text:
        return text.partition(MARK)[2]
    lacking = _LACKING.search(text)
    if lacking:
        name = lacking.group(1) or lacking.group(2)
        return f"uses what Orderkit's CEL library does not offer: {name}"
    return f"the CEL library: {text}" if _INTERNAL.search(text) else ""
