"""
Bound the cost of an expression before it is evaluated, from the sizes of its values.

The CEL library counts the rounds of loops, 10,000 an evaluation, but neither what a round costs nor
memory, and nothing can stop it while it computes. So an expression is evaluated only if its bound
is within `COST_MAX`. A unit is one of Kubernetes' (a step, an entry that is compared, ten letters
that are read), with more where the library needs more: at most 0.2 microseconds and 100 bytes.

An `Extent` is the upper bound of the values that a part of an expression can have. A bound of
something in the data refers to the values themselves, so that it is exact; the bound of something
computed has figures only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground.regular_expressions import program_size
from kubeschema.cel.cel_declarations import evaluated_names
from kubeschema.cel.syntax_tree import ExpressionNode


@dataclass(frozen=True, slots=True)
class Extent:
    """No value of this part is longer, and none weighs more."""

    letters: float = 0
    """If it is a text."""
    entries: float = 0
    """If it is a list or a map."""
    number: float = math.inf
    """If it is an integer, without its sign."""
    computed_weight: float = 1
    inner: Extent | None = None
    """An entry of something computed; None: not known."""
    values: tuple[Any, ...] = ()
    """All values that it can have, if they come from the data."""

    @property
    def weight(self) -> float:
        """Letters and entries at any depth."""
        return max((weight_of(value) for value in self.values), default=self.computed_weight)

    @property
    def entry(self) -> Extent:
        """Return what bounds each entry of a list, and each value of a map."""
        if self.values:
            return extent_of(*_entries(self.values))
        return self.inner or unknown_extent(self.weight)

    @property
    def loop_entry(self) -> Extent:
        """Return what bounds that over which a loop with one variable runs: keys of a map."""
        if not any(isinstance(value, dict) for value in self.values):
            return self.entry
        keys = (key for value in self.values if isinstance(value, dict) for key in value)
        return extent_of(*keys, *_entries([v for v in self.values if isinstance(v, list)]))

    def field(self, name: str) -> Extent:
        """Return what bounds a field."""
        if not self.values:
            return self.entry
        objects = (value for value in self.values if isinstance(value, dict))
        return extent_of(*(fields[name] for fields in objects if name in fields))

    def __or__(self, other: Extent) -> Extent:
        """Return what bounds both."""
        if self is other:
            return self
        if self.values and other.values:
            return extent_of(*{id(v): v for v in (*self.values, *other.values)}.values())
        inners = [
            each.entry if each.values else each.inner for each in (self, other) if each.entries
        ]
        known_inners = [inner for inner in inners if inner is not None]
        inner = known_inners[0] if known_inners else None
        if len(known_inners) > 1:
            inner = known_inners[0] | known_inners[1]
        return Extent(
            max(self.letters, other.letters),
            max(self.entries, other.entries),
            max(self.number, other.number),
            max(self.weight, other.weight),
            inner if len(known_inners) == len(inners) else None,
        )


def extent_of(*values: Any) -> Extent:
    """Return the bound of values from the data."""
    letters = entries = number = 0
    for value in values:
        if isinstance(value, (str, bytes)):
            letters = max(letters, len(value))
        elif isinstance(value, (list, dict)):
            entries = max(entries, len(value))
        elif isinstance(value, int):
            number = max(number, abs(value))
    return Extent(letters, entries, number, values=values)


def unknown_extent(weight: float) -> Extent:
    """Return the bound of what has at most this weight and may have any form."""
    return Extent(weight, weight, math.inf, weight)


def weight_of(value: Any) -> float:
    """Return a bound for letters and entries; infinite for what is nested too deeply."""
    try:
        return len(repr(value))
    except (RecursionError, ValueError):  # ValueError: an integer of thousands of digits
        return math.inf


def _entries(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value


COST_MAX = 1_000_000
"""What Kubernetes allows one evaluation (``PerCallLimit``)."""
_ROUNDS_MAX = 10_000
"""The library's own limit on the rounds of all loops together."""
_PATTERN_MAX_LETTERS, _PATTERNS_MAX, _WRONG_PATTERN = 2_000, 8, 400_000
_LIST, _MAP, _PYTHON = 10, 30, 100
"""To make a list or a map costs this much in Kubernetes; so much does a call of Python."""

Cost = tuple[float, Extent]
Scope = Mapping[str, Extent]


class CostlyError(Exception):
    """The expression may cost more than is allowed."""


def is_affordable(tree: ExpressionNode, variables: Scope) -> bool:
    """Return whether an expression costs at most `COST_MAX` with any values within bounds."""
    try:
        _Bounding().extent(tree, variables, 1)
    except (CostlyError, RecursionError):
        return False
    return True


class _Bounding:
    """One pass over an expression."""

    def __init__(self) -> None:
        self._cost = 0.0

    def extent(self, node: ExpressionNode, scope: Scope, times: float) -> Extent:
        """
        Return what bounds a part, and add what it costs.

        Args:
            times: How often it is evaluated at most.

        Raises:
            CostlyError: All parts so far cost more than is allowed.
        """
        if node.kind == "fold":
            return self._fold(node, scope, times)
        operands = [self.extent(child, scope, times) for child in node.children]
        cost, extent = _cost_of(node, operands, scope)
        self._charge(cost, times)
        return extent

    def _charge(self, cost: float, times: float) -> None:
        self._cost += cost * times
        if not self._cost <= COST_MAX:
            raise CostlyError

    def _fold(self, node: ExpressionNode, scope: Scope, times: float) -> Extent:
        over, initial, condition, step, result = node.children
        looped, first = self.extent(over, scope, times), self.extent(initial, scope, times)
        rounds = min(looped.entries, _ROUNDS_MAX)
        if not rounds:  # cel.bind loops over nothing
            return self.extent(result, {**scope, node.name: first}, times)
        key, *entry = node.variables
        variables = {key: looped.entry | looped.loop_entry if entry else looped.loop_entry}
        variables |= dict.fromkeys(entry, looped.entry)
        inside = {**scope, node.name: first, **variables}
        all_rounds = min(times * rounds, max(times, _ROUNDS_MAX))
        self.extent(condition, inside, all_rounds)
        added = self.extent(step, inside, all_rounds)
        # The library copies the list that a map or filter collects, in each round.
        self._charge(added.entries * rounds / 8, all_rounds)
        collected = Extent(
            first.letters + added.letters,
            first.entries + added.entries * rounds,
            first.number + added.number * rounds,
            first.weight + added.weight * rounds,
            added.entry if added.entries else None,
        )
        return self.extent(result, {**scope, node.name: collected}, times)


def _cost_of(node: ExpressionNode, operands: Sequence[Extent], scope: Scope) -> Cost:
    if node.kind == "constant":
        return 0, extent_of(node.name or node.number)
    if node.kind == "ident":
        return 1, scope.get(node.name, _SCALAR)
    if node.kind == "select":
        return 1, operands[0].field(node.name)
    if node.kind == "call":
        if node.name == "_?._":
            return 1, operands[0].field(node.children[1].name)
        return _CALLS.get(node.name, _call_python if node.name in _OURS else _call)(operands)
    weight = 2 + sum(operand.weight + 2 for operand in operands)
    inner = functools.reduce(Extent.__or__, operands) if operands else None
    cost = _LIST if node.kind == "list" else _MAP
    return cost + len(operands), Extent(0, len(operands), 0, weight, inner)


_SCALAR = Extent()


def _comparison(first: Extent, second: Extent) -> float:
    """Return what it costs to compare two values."""
    if min(first.entries, second.entries):
        return min(first.weight, second.weight) / 2
    return min(first.letters, second.letters) / 10


def _compare(operands: Sequence[Extent]) -> Cost:
    cost = _comparison(*operands[:2]) if len(operands) > 1 else 0
    return 1 + cost, _SCALAR


def _count(operands: Sequence[Extent]) -> Cost:
    return 1 + operands[0].letters / 100, Extent(
        number=max(operands[0].letters, operands[0].entries)
    )


def _choose(operands: Sequence[Extent]) -> Cost:
    chosen = operands[1:] if len(operands) > 2 else operands  # noqa: PLR2004 - a condition first
    return 1, functools.reduce(Extent.__or__, chosen) if chosen else _SCALAR


def _entry(operands: Sequence[Extent]) -> Cost:
    return 1 + operands[-1].letters / 10, operands[0].entry


def _join_values(operands: Sequence[Extent]) -> Cost:
    """Return the cost of ``+``."""
    first, second = operands
    letters, entries = first.letters + second.letters, first.entries + second.entries
    cost = 1 + letters / 10 + entries / 2
    pairs = len(first.values) * len(second.values)
    if 0 < pairs <= _PATTERNS_MAX and all(
        isinstance(value, str) for value in (*first.values, *second.values)
    ):
        return cost, extent_of(*(a + b for a in first.values for b in second.values))
    both = first | second
    weight = first.weight + second.weight
    return cost, Extent(letters, entries, first.number + second.number, weight, both.inner)


def _multiply(operands: Sequence[Extent]) -> Cost:
    return 1, Extent(number=operands[0].number * operands[1].number)


def _subtract(operands: Sequence[Extent]) -> Cost:
    return 1, Extent(number=sum(operand.number for operand in operands))


def _find_entry(operands: Sequence[Extent]) -> Cost:
    """Return the cost of ``in``."""
    needle, collection = operands
    compared = max(1, _comparison(needle, collection.loop_entry))
    only_maps = collection.values and all(isinstance(value, dict) for value in collection.values)
    return 1 + compared * (1 if only_maps else collection.entries), _SCALAR


def _find_text(operands: Sequence[Extent]) -> Cost:
    """Return the cost of ``contains`` and ``indexOf``, of texts and of lists."""
    where, what = operands[:2]
    letters = where.letters * what.letters / 100 + (where.letters + what.letters) / 10
    entries = where.entries * max(1, _comparison(where.entry, what)) if where.entries else 0
    return 1 + letters + (_PYTHON + where.weight / 2 + entries if entries else 0), Extent(
        number=max(where.letters, where.entries)
    )


def _replace(operands: Sequence[Extent]) -> Cost:
    text, what, by = operands[:3]
    letters = text.letters + (text.letters + 1) * by.letters
    return 1 + letters / 2 + text.letters * what.letters / 5_000, Extent(
        letters, computed_weight=letters + 2
    )


def _split(operands: Sequence[Extent]) -> Cost:
    text, by = operands[:2]
    part = Extent(text.letters, computed_weight=text.letters + 2)
    extent = Extent(0, text.letters + 1, 0, 5 * text.letters + 5, part)
    return 1 + text.letters / 2 + text.letters * by.letters / 5_000, extent


def _join_texts(operands: Sequence[Extent]) -> Cost:
    texts = operands[0]
    letters = texts.weight + texts.entries * sum(operand.letters for operand in operands[1:])
    return 1 + letters / 2, Extent(letters, computed_weight=letters + 2)


def _format(operands: Sequence[Extent]) -> Cost:
    letters = 100 * operands[0].letters + 64 * operands[1].weight
    return 1 + letters / 10, Extent(letters, computed_weight=letters + 2)


def _match(operands: Sequence[Extent]) -> Cost:
    text, pattern = operands[:2]
    size, cost = _pattern_cost(pattern)
    return 1 + cost + size * (text.letters + 1) / 15, _SCALAR


def _find_matches(operands: Sequence[Extent]) -> Cost:
    text = operands[0]
    part = Extent(text.letters, computed_weight=text.letters + 2)
    extent = Extent(text.letters, text.letters + 1, 0, 5 * text.letters + 5, part)
    return _PYTHON + _match(operands)[0] + 50 * text.letters, extent


def _pattern_cost(pattern: Extent) -> tuple[float, float]:
    """Return the steps of a pattern's program, and what it costs to compile it."""
    patterns = {value for value in pattern.values if isinstance(value, str)}
    if not patterns or len(patterns) > _PATTERNS_MAX or pattern.letters > _PATTERN_MAX_LETTERS:
        return 1_000 * pattern.letters, 3_000 * pattern.letters
    size = max(map(program_size, patterns))
    letters = pattern.letters
    cost = 20 + 8 * size + letters + letters**2 / 250 if size < math.inf else _WRONG_PATTERN
    return size if size < math.inf else 0, cost


def _range(operands: Sequence[Extent]) -> Cost:
    number = operands[0].number
    return _LIST + number, Extent(0, number, 0, 20 * number, Extent(number=number))


def _compare_all(operands: Sequence[Extent]) -> Cost:
    """Return the cost of functions that may compare each entry with each other one."""
    first, second = operands[0], operands[-1]
    compared = max(1, _comparison(first.entry, second.entry))
    return 1 + first.entries * second.entries * compared, first


def _distinct(operands: Sequence[Extent]) -> Cost:
    entries, entry = operands[0].entries, operands[0].entry
    compared = entries * _comparison(entry, entry) / 2 if entry.entries else 1 + entry.letters / 10
    return 1 + entries * compared, operands[0]


def _rearrange(operands: Sequence[Extent]) -> Cost:
    changed = operands[0]
    return 1 + changed.entries + changed.weight / 2, Extent(
        changed.letters, changed.entries, 0, changed.weight, changed.entry
    )


def _call(operands: Sequence[Extent]) -> Cost:
    """Return the cost of another function of the library: it reads its values once or twice."""
    read = sum(operand.weight for operand in operands)
    return 1 + read / 2, unknown_extent(64 + 2 * read)


def _call_python(operands: Sequence[Extent]) -> Cost:
    cost, extent = _call(operands)
    return _PYTHON + cost, extent


_OURS = evaluated_names()
_CALLS: Mapping[str, Callable[[Sequence[Extent]], Cost]] = {
    **dict.fromkeys(("_&&_", "_||_", "!_", "@not_strictly_false", "hasValue", "type"), _compare),
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compare),
    **dict.fromkeys(("startsWith", "endsWith"), _compare),
    **dict.fromkeys(("_?_:_", "or", "orValue", "value", "dyn", "optional.none"), _choose),
    **dict.fromkeys(("optional.of", "optional.ofNonZeroValue"), _choose),
    **dict.fromkeys(("_[_]", "_[?_]", "first", "last"), _entry),
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), _find_text),
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _compare_all),
    **dict.fromkeys(("find", "findAll"), _find_matches),
    **dict.fromkeys(("slice", "reverse", "sort"), _rearrange),
    **dict.fromkeys(("_-_", "-_", "_/_", "_%_"), _subtract),
    "_+_": _join_values,
    "_*_": _multiply,
    "@in": _find_entry,
    "size": _count,
    "replace": _replace,
    "split": _split,
    "join": _join_texts,
    "format": _format,
    "matches": _match,
    "lists.range": _range,
    "distinct": _distinct,
}
