"""
Translate CEL rules of an XRD for forms: into keywords where that is exact, else into sentences.

Exact are comparisons, sizes, choices and patterns of one value that is always set (or is tested
with ``has``). All other rules, and every rule about changes, become a sentence. Called by
``core.kit.xrd_fields``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orderkit.core.kit.js_patterns import to_javascript

RULES = "x-kubernetes-validations"
_STRING = r"r'[^']*[^'\\]'|'[^'\\]*'|r\"[^\"]*[^\"\\]\"|\"[^\"\\]*\""
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_COMPARE = re.compile(
    rf"(?P<size>size\(self\)|self\.size\(\)|self) ?(?P<op>>=|<=|==|!=|>|<) ?"
    rf"(?P<value>{_NUMBER}|{_STRING})\Z"
)
_MATCHES = re.compile(rf"self\.matches\((?P<pattern>{_STRING})\)\Z")
_IN = re.compile(rf"self in \[(?P<items>(?:(?:{_NUMBER}|{_STRING})(?:, ?)?)+)\]\Z")
_ITEM = re.compile(rf"{_NUMBER}|{_STRING}")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_HAS = re.compile(rf"!has\(self\.(?P<name>{_NAME})\) \|\| (?P<rest>.+)\Z", re.DOTALL)
_MEMBER = re.compile(rf"\bself\.(?P<name>{_NAME})\b(?!\()")
_SIZES = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_FLIPPED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
_BACKWARDS = re.compile(
    rf"(?P<value>{_NUMBER}) ?(?P<op>>=|<=|>|<) ?(?P<left>size\(self\)|self\.size\(\)|self)\Z"
)


@dataclass(frozen=True, slots=True)
class RuleKeyword:
    """A keyword of JSON Schema that is equivalent to a rule, and the rule's message."""

    keyword: str
    value: Any
    message: str


@dataclass(frozen=True, slots=True)
class PropertyRule:
    """A rule of an object about one property, rewritten so that `self` is the property."""

    name: str
    rule: str
    message: str
    guarded: bool
    """Whether the rule tests first that the property is set."""


def rules_of(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the CEL rules of a schema."""
    rules = schema.get(RULES)
    return [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


def limits(rule: str, message: str, schema: Mapping[str, Any]) -> tuple[RuleKeyword, ...] | None:
    """Return the equivalent keywords of a rule; None if there are none."""
    if schema.get("nullable"):
        return None  # for null, the rule is not evaluated or fails
    form_limits: list[RuleKeyword] = []
    for clause in _flat(rule).split(" && "):
        limit = _limit(clause.strip(), schema)
        if limit is None:
            return None
        form_limits.append(RuleKeyword(*limit, message))
    return tuple(form_limits)


def rule_of_one_property(rule: str, message: str) -> PropertyRule | None:
    """Return the rule as one about a property, if it uses only one."""
    flat = _flat(rule)
    guard = _HAS.match(flat)
    body = guard["rest"] if guard else flat
    names = {match["name"] for match in _MEMBER.finditer(_without_texts(flat))}
    if len(names) != 1 or "has(" in body or "oldSelf" in body:
        return None
    (name,) = names
    if guard and guard["name"] != name:
        return None
    spoken = re.sub(rf"\bself\.{name}\b(?!\()", "self", body)
    return PropertyRule(name, spoken, message, guarded=guard is not None)


def properties_mentioned(rule: str) -> frozenset[str]:
    """Return the properties of ``self`` that a rule uses."""
    return frozenset(match["name"] for match in _MEMBER.finditer(_without_texts(rule)))


def sentence(rule: Mapping[str, Any]) -> str:
    """Return a sentence for a rule: its message, or the rule itself."""
    text = _flat(str(rule.get("rule", "")))
    message = str(rule.get("message") or "").strip()
    if "oldSelf" in text:
        if re.fullmatch(r"self == oldSelf|oldSelf == self", text):
            return "It cannot be changed later."
        return with_full_stop(f"When it is changed: {message or text}")
    return with_full_stop(f"Checked when it is ordered: {message or text}")


def with_full_stop(text: str) -> str:
    """Return a text with a full stop."""
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."


def _flat(rule: str) -> str:
    return " ".join(rule.split())


def _without_texts(rule: str) -> str:
    return re.sub(_STRING, "''", rule)


def _limit(clause: str, schema: Mapping[str, Any]) -> tuple[str, Any] | None:
    if backwards := _BACKWARDS.match(clause):
        clause = f"{backwards['left']} {_FLIPPED[backwards['op']]} {backwards['value']}"
    if match := _COMPARE.match(clause):
        value = ast.literal_eval(match["value"])
        if match["size"] != "self":
            return _size(match["op"], value, str(schema.get("type")))
        return _compare(match["op"], value, schema)
    if match := _MATCHES.match(clause):
        return _pattern(ast.literal_eval(match["pattern"]), schema)
    if match := _IN.match(clause):
        return _choice([ast.literal_eval(item) for item in _ITEM.findall(match["items"])], schema)
    return None


def _size(op: str, value: object, type_: str) -> tuple[str, Any] | None:
    keywords = _SIZES.get(type_)
    if keywords is None or not isinstance(value, int) or value < 0:
        return None
    minimum, maximum = keywords
    if op in (">=", ">"):
        return minimum, value + (op == ">")
    if op in ("<=", "<") and value - (op == "<") >= 0:
        return maximum, value - (op == "<")
    if op == "!=" and value == 0:
        return minimum, 1
    return None


def _compare(op: str, value: object, schema: Mapping[str, Any]) -> tuple[str, Any] | None:
    type_ = schema.get("type")
    if type_ == "string" and value == "" and op == "!=":
        return "minLength", 1
    if isinstance(value, int) and type_ == "integer" and op in ("<", "<=", ">", ">="):
        moved = value + {"<": -1, ">": 1}.get(op, 0)
        return ("maximum" if op in ("<", "<=") else "minimum"), moved
    if isinstance(value, float) and type_ == "number" and op in ("<=", ">="):
        return ("maximum" if op == "<=" else "minimum"), value
    return None


def _pattern(pattern: str, schema: Mapping[str, Any]) -> tuple[str, Any] | None:
    if schema.get("type") != "string" or "pattern" in schema:
        return None
    try:
        return "pattern", to_javascript(pattern)
    except ValueError:
        return None


def _choice(items: list[Any], schema: Mapping[str, Any]) -> tuple[str, Any] | None:
    kind = {"string": str, "integer": int}.get(str(schema.get("type")))
    if kind is None or not all(isinstance(item, kind) for item in items):
        return None
    enum = schema.get("enum")
    choices = [item for item in enum if item in items] if isinstance(enum, list) else items
    unique = list(dict.fromkeys(choices))
    return ("enum", unique) if unique else None


def is_tighter(limit: RuleKeyword, schema: Mapping[str, Any]) -> bool:
    """Say whether a limit is tighter than the schema."""
    schema_value = schema.get(limit.keyword)
    if schema_value is None or limit.keyword in ("enum", "pattern"):
        return True
    return bool(
        limit.value > schema_value
        if limit.keyword.startswith("min")
        else limit.value < schema_value
    )
