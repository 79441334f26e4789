r"""
Translate patterns and CEL rules of an XRD for forms: exactly, or into sentences.

Patterns are translated from RE2, which the API server reads, to JavaScript. Constructs that differ
but have an equivalent are rewritten (``\s``, ``.``, POSIX classes, ``\z``, the flags ``(?i)`` and
``(?s)`` anywhere, escapes unknown to JavaScript). Other differences are refused, because the form
would accept values that the server refuses, or the reverse.

Of CEL rules, comparisons, sizes, choices and patterns of one value that is always set (or is tested
with ``has``) become keywords. All other rules, and every rule about changes, become a sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground import regular_expressions
from kubeschema.re2_patterns import POSIX_CLASSES, PatternError, compile_pattern

_SPACE = r"\t\n\f\r "
_COMMON = (
    r"\\x(?:\{(?P<code>[0-9A-Fa-f]+)\}|(?P<hex>[0-9A-Fa-f]{2}))"
    r"|\\(?P<octal>[0-7]{3})|\\(?P<escape>.)"
)
_OUTSIDE = re.compile(
    rf"{_COMMON}|\(\?(?P<flags>[a-zA-Z]*-?[a-zA-Z]+)(?P<scope>[:)])|(?P<group>\((?:\?P?<\w+>|\?:)?)"
    r"|(?P<end>\))|(?P<open>\[\^?\]?)|(?P<plain>.)",
    re.DOTALL,
)
_INSIDE = re.compile(
    rf"{_COMMON}|\[:(?P<posix>\w+):\]|(?P<close>\])|(?P<range>[0-9A-Za-z]-[0-9A-Za-z])|(?P<plain>.)",
    re.DOTALL,
)
_CASES = {"k": "\u212a", "s": "\u017f"}
"""Letters beyond ASCII that RE2 takes for these when it ignores case."""
_CASED = {"alpha", "alnum", "word", "lower", "upper"}
_SAME_ESCAPES = frozenset("dDwWbBtnrfv^$\\.*+?()[]{}|/")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KNOWN = {
    f"^{_LABEL}$": "lower-case letters, digits and '-', a letter or digit at both ends",
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$": "lower-case letters, digits and '-', beginning with a letter, "
    "a letter or digit at the end",
    rf"^{_LABEL}(\.{_LABEL})*$": "lower-case letters, digits, '-' and '.', as a DNS name",
    "^[0-9]+$": "digits only",
    r"^\d+$": "digits only",
    "^[a-z]+$": "lower-case letters only",
    "^[a-z0-9]+$": "lower-case letters and digits only",
}


def to_javascript(pattern: str) -> str:
    """
    Return the pattern for JavaScript (flag ``u``) that is equivalent to `pattern` in RE2.

    Raises:
        ValueError: There is no certain equivalent, or `pattern` is invalid.
    """
    compile_pattern(pattern)
    js_pattern = "".join(_pieces(pattern))
    regular_expressions.compile_pattern(js_pattern)
    return js_pattern


def described(pattern: str) -> str:
    """Describe a pattern in words, or quote it if no description is known."""
    words = _KNOWN.get(
        pattern.replace(r"[a-z0-9\-]", "[-a-z0-9]").replace("[a-z0-9-]", "[-a-z0-9]")
    )
    return f"must be {words}" if words else f"must match {pattern}"


def _pieces(pattern: str) -> Iterator[str]:
    at, inside = 0, False
    flags = ""
    outer: list[str] = []
    while at < len(pattern):
        match = (_INSIDE if inside else _OUTSIDE).match(pattern, at)
        if match is None:
            raise PatternError(f"{pattern!r} is not a valid pattern")
        at = match.end()
        kind = match.lastgroup
        if kind in ("open", "close"):
            inside = kind == "open"
            yield match[0].replace("[]", r"[\]").replace("^]", r"^\]")  # an item, to RE2
        elif kind == "scope":
            outer += [flags] if match["scope"] == ":" else []
            flags = _flags(pattern, flags, match["flags"])
            yield "(?:" if match["scope"] == ":" else ""
        elif kind == "group":
            outer.append(flags)
            yield "(?:" if match[0] == "(?:" else "("
        elif kind == "end":
            flags = outer.pop() if outer else flags
            yield ")"
        elif kind == "escape":
            yield _escape(match["escape"], flags, inside=inside)
        else:
            yield _piece(match, flags, inside=inside)


def _flags(pattern: str, flags: str, changes: str) -> str:
    """Return the flags that hold after ``(?i)``, ``(?-s)`` and the like."""
    added, _, removed = changes.partition("-")
    if set(added) - {"i", "s"}:
        raise PatternError(
            f"{pattern!r} has the flags {changes}, which JavaScript does not support"
        )
    return "".join(sorted({*flags, *added} - {*removed}))


def _piece(match: re.Match[str], flags: str, *, inside: bool) -> str:
    digits = match["code"] or match["hex"] or match["octal"]
    if digits:
        code = int(digits, 8 if match["octal"] else 16)
        letter = chr(code)
        return _any_case(letter, inside=inside) if _folds(letter, flags) else _character(code)
    return _within(match, flags) if inside else _without(match[0], flags)


def _without(text: str, flags: str) -> str:
    """Return a character outside of brackets."""
    if text == ".":
        return "[^]" if "s" in flags else r"[^\n]"
    return _any_case(text, inside=False) if _folds(text, flags) else text


def _within(match: re.Match[str], flags: str) -> str:
    """Return a character, a range or a POSIX class inside of brackets."""
    text, name = match[0], match["posix"]
    if name and "i" in flags:
        name = "alpha" if name in {"lower", "upper"} else name
        return POSIX_CLASSES.get(name, text) + _beyond_ascii(name)
    if name:
        return POSIX_CLASSES.get(name, text)
    if match["range"] and "i" in flags:
        letters = map(chr, range(ord(text[0]), ord(text[2]) + 1))
        cases = (_any_case(letter, inside=True)[1:] for letter in letters if letter.isalpha())
        return text + "".join(cases)
    return _any_case(text, inside=True) if _folds(text, flags) else text.replace("[", r"\[")


def _folds(letter: str, flags: str) -> bool:
    """
    Return whether a character stands for its other cases, too.

    Raises:
        PatternError: It does, and they are not known here.
    """
    if "i" not in flags or letter.upper() == letter.lower():
        return False
    if not letter.isascii():
        raise PatternError(f"{letter!r} after (?i) has no certain equivalent in JavaScript")
    return True


def _any_case(letter: str, *, inside: bool) -> str:
    cases = f"{letter}{letter.swapcase()}{_CASES.get(letter.lower(), '')}"
    return cases if inside else f"[{cases}]"


def _beyond_ascii(posix: str) -> str:
    return "".join(_CASES.values()) if posix in _CASED else ""


_WRITTEN = {"A": "^", "z": "$", "a": r"\x07"}


def _escape(letter: str, flags: str, *, inside: bool) -> str:
    if "i" in flags and letter == "w":
        return rf"\w{_beyond_ascii('word')}" if inside else rf"[\w{_beyond_ascii('word')}]"
    if "i" in flags and letter == "W":
        raise PatternError(r"\W after (?i) has no certain equivalent in JavaScript")
    if letter in "sS" and not inside:
        return f"[{'^' if letter == 'S' else ''}{_SPACE}]"
    if letter == "s":
        return _SPACE
    if letter in _WRITTEN:
        return _WRITTEN[letter]
    if letter in _SAME_ESCAPES or letter.isalnum() or (inside and letter == "-"):
        return f"\\{letter}"
    return letter


def _character(code: int) -> str:
    if code < 0x100:  # noqa: PLR2004 - two hexadecimal digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else chr(code)  # noqa: PLR2004 - four digits


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
