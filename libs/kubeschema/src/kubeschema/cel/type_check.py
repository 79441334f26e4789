"""
All rules of one schema, and their verdicts on objects.

A `RuleSet` is made once per schema and checks any number of objects. Rules are compiled on first
use. Old values are found as the server finds them: by field, by map key, by the keys of a keyed
list, never by position.
"""

from __future__ import annotations

import functools
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubeschema.cel.cel_rules import HERE, RULES, CelRule, Context, RuleFault, compile_rule
from kubeschema.cel.environments import HAS_OLD, OLD, Judge, UnavailableError, load
from kubeschema.cel.evaluation import Activation, EvaluationOutcome, Meter
from kubeschema.cel.rule_failures import RuleField, cost_text, error_text, failure, rule_fields
from kubeschema.cel.syntax_tree import read_tree
from kubeschema.cel.type_shapes import CelType, Unbound, bind, shape_of
from kubeschema.pruning import LIST_MAP_KEYS, LIST_TYPE, Schema
from kubeschema.structural import SchemaProblem

BLOCKING = frozenset(
    {
        *("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong"),
        *("FieldValueTooMany", "FieldValueTypeInvalid"),
    }
)
"""Structural faults after which the server evaluates no rules."""

_UNTYPED = (
    "Internal error: internal error: failed to construct type information for "
    "x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
)
_ON_LISTS = re.compile(r"No matching overloads found : \(list\)\.(?:indexOf|lastIndexOf)")

MESSAGE_MAX = 5 * 1024  # Kubernetes' MaxEvaluatedMessageExpressionSizeBytes


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """A rule that was not evaluated: its place in the object, the rule, and the reason."""

    path: str
    rule: str
    why: str


@dataclass(frozen=True, slots=True, order=True)
class Broken:
    """A rule that failed, in the server's words."""

    problem: SchemaProblem
    rule: str
    is_transition: bool
    """The rule compares with the object before the change."""
    fields: tuple[RuleField, ...] = field(default=(), compare=False)
    """Which fields of the value it is about; empty if the value itself, or ``fieldPath``, is."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on one object. If `broken` and `gaps` are empty, all rules hold."""

    broken: tuple[Broken, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def problems(self) -> tuple[SchemaProblem, ...]:
        return tuple(broken.problem for broken in self.broken)


@dataclass(slots=True)
class _Node:
    """One level of a schema that has rules, or has some below."""

    schema: Schema
    shape: CelType | None
    rules: list[CelRule] = field(default_factory=list)
    properties: dict[str, _Node] = field(default_factory=dict)
    values: _Node | None = None
    items: _Node | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Level:
    """The compiler's position: path in the schema, and whether old values can be found."""

    path: str
    correlatable: bool = True
    uncorrelatable_at: str = ""
    resource: bool = False


def has_rules(schema: object) -> bool:
    """Return whether a schema has rules at any level. Does not import the CEL library."""
    if isinstance(schema, Mapping):
        return bool(schema.get(RULES)) or any(has_rules(child) for child in schema.values())
    return isinstance(schema, list) and any(has_rules(child) for child in schema)


def rules_of(schema: Schema) -> RuleSet:
    """
    Return the rules of the schema of a whole Kubernetes object; see `RuleSet`.

    Equal schemas share one, which was made from a copy: a CRD is judged when it is read, written
    and served, and to compile its rules takes longer than all else that this does.
    """
    return _shared(json.dumps(schema))


@functools.lru_cache(maxsize=100)
def _shared(schema: str) -> RuleSet:
    return RuleSet(json.loads(schema))


class RuleSet:
    """The rules of one schema, compiled on the first call of `faults` or `check`."""

    def __init__(self, schema: Schema) -> None:
        """Read the rules of the schema of a whole Kubernetes object."""
        self._schema = schema
        self._faults: list[tuple[str, RuleFault]] = []
        self._root: _Node | None = None
        self._unavailable = ""
        self._compiled = not has_rules(schema)
        self._lock = threading.Lock()

    def faults(self, *, at: str = "") -> list[tuple[str, str]]:
        """
        Return path and message for every rule, and every default, that the server would refuse.

        Args:
            at: Path of the schema in its CRD; prefix of every path.
        """
        self._compile()
        return [
            (f"{at}{path}.{fault.field}", fault.message.replace(HERE, at))
            for path, fault in self._faults
        ]

    def check(self, new: Any, old: Any = None) -> Verdicts:
        """
        Judge an object that has its defaults and conforms to its structural schema.

        Args:
            old: The object before an update; None on creation.
        """
        self._compile()
        if self._unavailable:
            return Verdicts(gaps=tuple(self._all_gaps()))
        if self._root is None:
            return Verdicts()
        walk = _Walk()
        walk.visit(self._root, new, old, ())
        return Verdicts(tuple(sorted(walk.broken)), tuple(sorted(walk.gaps)))

    def _all_gaps(self) -> Iterator[Gap]:
        for path, entry in _entries(self._schema, ""):
            yield Gap(path, str(entry.get("rule", "")), self._unavailable)

    def _compile(self) -> None:
        """Compile once."""
        # other threads wait: they would otherwise see only some of the rules
        with self._lock:
            if self._compiled:
                return
            try:
                load()
            except UnavailableError as error:
                self._unavailable = str(error)
            else:
                self._root = self._node(self._schema, _Level("", resource=True))
            self._compiled = True

    def _node(self, schema: Schema, level: _Level) -> _Node | None:
        """Compile one level and those below it; None if there are no rules."""
        shape = shape_of(schema, resource=level.resource)
        node = _Node(schema, shape, keys=tuple(schema.get(LIST_MAP_KEYS) or ()))
        if schema.get(RULES):
            self._rules(node, level)
        for name, child in (schema.get("properties") or {}).items():
            below = self._child(child, level, f".properties[{name}]")
            if below is not None:
                node.properties[name] = below
        if isinstance(schema.get("additionalProperties"), Mapping):
            extra = schema["additionalProperties"]
            node.values = self._child(extra, level, ".additionalProperties")
        if isinstance(schema.get("items"), Mapping):
            node.items = self._items(schema, level)
        if not (node.rules or node.properties or node.values or node.items):
            return None
        self._try_default(node, level)
        return node

    def _try_default(self, node: _Node, level: _Level) -> None:
        """Judge a default by the rules that apply to it in an object, as the server does."""
        if node.schema.get("default") is None:
            return
        walk = _Walk()
        walk.visit(node, node.schema["default"], None, ())
        for broken in walk.broken:
            problem = broken.problem
            field_path = f"default.{problem.path}" if problem.path else "default"
            self._faults.append((level.path, RuleFault(field_path, problem.message)))

    def _child(self, schema: Schema, level: _Level, step: str) -> _Node | None:
        path = level.path + step
        return self._node(schema, _Level(path, level.correlatable, level.uncorrelatable_at))

    def _items(self, schema: Schema, level: _Level) -> _Node | None:
        item_level = level
        if schema.get(LIST_TYPE) != "map" and level.correlatable:
            item_level = _Level(level.path, correlatable=False, uncorrelatable_at=level.path)
        return self._child(schema["items"], item_level, ".items")

    def _rules(self, node: _Node, level: _Level) -> None:
        if node.shape is None:
            self._faults.append((level.path, RuleFault(RULES, _UNTYPED)))
            return
        context = Context(
            node.schema, node.shape, Judge(node.shape), level.correlatable, level.uncorrelatable_at
        )
        for index, entry in enumerate(node.schema[RULES]):
            compiled = compile_rule(entry, context)
            if isinstance(compiled, CelRule):
                node.rules.append(compiled)
            else:
                self._faults += [(f"{level.path}.{RULES}[{index}]", fault) for fault in compiled]


def _entries(schema: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield all rules with the path of the field they belong to."""
    for entry in schema.get(RULES) or ():
        yield path.removeprefix("."), entry
    for name, child in (schema.get("properties") or {}).items():
        yield from _entries(child, f"{path}.{name}")
    for key, step in (("additionalProperties", "[*]"), ("items", "[*]")):
        if isinstance(schema.get(key), Mapping):
            yield from _entries(schema[key], path + step)


Path = tuple[str, ...]


class _Walk:
    """One pass over an object."""

    def __init__(self) -> None:
        self._meter = Meter()
        self.broken: set[Broken] = set()
        self.gaps: set[Gap] = set()

    def visit(self, node: _Node, new: Any, old: Any, path: Path) -> None:
        """Judge a value and everything below it. Nulls count as absent."""
        if new is None:
            return
        if node.rules and node.shape is not None:
            self._judge(node, node.shape, new, old, path)
        if isinstance(new, dict):
            self._visit_fields(node, new, old if isinstance(old, dict) else {}, path)
        elif isinstance(new, list) and node.items is not None:
            before = _by_key(node.keys, old)
            for index, entry in enumerate(new):
                was = before.get(_key(node.keys, entry)) if before else None
                self.visit(node.items, entry, was, (*path, f"[{index}]"))

    def _visit_fields(
        self, node: _Node, new: dict[str, Any], old: dict[str, Any], path: Path
    ) -> None:
        for name, below in node.properties.items():
            if name in new:
                self.visit(below, new[name], old.get(name), (*path, f".{name}"))
        if node.values is not None:
            for name, entry in new.items():
                self.visit(node.values, entry, old.get(name), (*path, f"[{name}]"))

    def _judge(self, node: _Node, shape: CelType, new: Any, old: Any, path: Path) -> None:
        bound = _Bound(shape, new, old, self._meter)
        for rule in node.rules:
            # The server evaluates a transition rule only where there is an old value.
            if rule.uses_old and old is None and not rule.optional_old:
                continue
            field_path = "".join(path).removeprefix(".")
            if rule.gap:
                self.gaps.add(Gap(field_path, rule.source, rule.gap))
                continue
            try:
                data = bound.data(canonical=rule.canonical)
            except Unbound as error:
                self.gaps.add(Gap(field_path, rule.source, f"a value is not exact here: {error}"))
                continue
            problem = self._problem(node, rule, data, new, field_path)
            if problem is not None:
                fields = _fields(rule, shape, new, old)
                self.broken.add(Broken(problem, rule.source.strip(), rule.uses_old, fields))

    def _problem(
        self, node: _Node, rule: CelRule, data: Activation, new: Any, field_path: str
    ) -> SchemaProblem | None:
        outcome = _outcome(rule, data)
        if outcome.value is False:
            return failure(rule, node.schema, new, field_path, _message(rule, data))
        if outcome.is_costly:
            return cost_text(rule, node.schema, field_path, outcome.gap)
        if outcome.gap:
            self.gaps.add(Gap(field_path, rule.source, outcome.gap))
        elif outcome.value is not True:
            error = outcome.error or str(outcome.value)
            return error_text(rule, node.schema, field_path, error)
        return None


class _Bound:
    """The values at one place, converted for its rules on first use."""

    def __init__(self, shape: CelType, new: Any, old: Any, meter: Meter) -> None:
        self._shape, self._new, self._old, self._meter = shape, new, old, meter
        self._made: dict[bool, Activation] = {}

    def data(self, *, canonical: bool) -> Activation:
        if canonical not in self._made:
            now = bind(self._shape, self._new, canonical=canonical)
            was = bind(self._shape, self._old, canonical=canonical)
            has_old = self._old is not None
            variables = {"self": now, "oldSelf": was, OLD: was, HAS_OLD: has_old}
            self._made[canonical] = Activation(variables, self._meter)
        return self._made[canonical]


def _fields(rule: CelRule, shape: CelType, new: Any, old: Any) -> tuple[RuleField, ...]:
    if rule.field_path or rule.program is None or not isinstance(new, dict):
        return ()
    return rule_fields(read_tree(rule.program.serialize()), shape, new, old)


def _outcome(rule: CelRule, data: Activation) -> EvaluationOutcome:
    if rule.program is None:
        return EvaluationOutcome(gap=rule.gap)
    outcome = rule.program.evaluate(data)
    if rule.on_lists is not None and _ON_LISTS.search(outcome.error):
        return rule.on_lists.evaluate(data)
    return outcome


def _message(rule: CelRule, data: Activation) -> str:
    """Return the rule's message; if ``messageExpression`` fails, the plain message."""
    if rule.message_program is not None:
        value = rule.message_program.evaluate(data).value
        if isinstance(value, str):
            text = value.strip()
            if text and "\n" not in text and len(text.encode()) <= MESSAGE_MAX:
                return text
    return rule.message


def _by_key(keys: tuple[str, ...], old: Any) -> dict[object, Any]:
    if not keys or not isinstance(old, list):
        return {}
    return {_key(keys, entry): entry for entry in old}


def _key(keys: tuple[str, ...], entry: Any) -> object:
    return tuple(repr(entry.get(key)) for key in keys) if isinstance(entry, dict) else None
