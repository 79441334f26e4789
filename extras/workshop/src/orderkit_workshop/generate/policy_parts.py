"""
The parts of policy rules: CEL expressions, rules, variables, and the words of their messages.

Expressions are literals, safe lookups and wrapped lines. Lookups never fail: a missing value is
null. The API server and ``kubeschema.admission`` evaluate the same expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ground.objects.kube_objects import TRACKING_ID, Manifest
from kubeschema.field_paths import schema_at
from orderkit.core.kit.kit_file_parts import FieldPath
from orderkit.core.kit.model import Kit

_WIDTH, _LINE = 88, 96
_WORD = re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^\s'"])+""")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    }
)
ABSENT = "null"


def literal(value: object) -> str:
    """Write a string, number, boolean or null as a CEL literal."""
    if not isinstance(value, str) or ("'" in value and '"' not in value):
        return json.dumps(value, ensure_ascii=False)
    inner = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + inner.replace("'", "\\'") + "'"


def lookup(root: str, path: Sequence[str]) -> str:
    """Return the expression for the value at a path of maps; null if any part of it is missing."""
    return f"{optional(root, path)}.orValue({ABSENT})"


def optional(root: str, path: Sequence[str]) -> str:
    """Return the expression for the value at a path as an optional value."""
    return root + "".join(_step(step) for step in path)


def _step(name: str) -> str:
    if _PLAIN.match(name) and name not in _RESERVED:
        return f".?{name}"
    return f"[?{literal(name)}]"


def identifier(path: str) -> str:
    """Return a variable name derived from a field's path."""
    return re.sub(r"[^A-Za-z0-9_]", "_", path)


def either(*parts: str) -> str:
    """Join with ``||``, one operand per line."""
    return " ||\n".join(parts)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression inside a text."""

    expression: str


def message_expression(pieces: Iterable[str | Expression]) -> str:
    """Return the expression for a text of words and values, wrapped."""
    terms: list[str] = []
    words = ""
    for piece in pieces:
        if isinstance(piece, str):
            words += piece
            continue
        terms += [*_wrapped(words), piece.expression]
        words = ""
    return concatenated([*terms, *_wrapped(words)])


def _wrapped(words: str) -> list[str]:
    """Write words as literals that are not too long for a line."""
    lines = [""]
    for word in re.findall(r"\S*\s*", words):
        if lines[-1] and len(lines[-1]) + len(word) > _WIDTH:
            lines.append("")
        lines[-1] += word
    return [literal(line) for line in lines if line]


def concatenated(parts: Iterable[str]) -> str:
    """Join texts with ``+``, one operand per line."""
    return " +\n".join(parts)


def block(expression: str) -> str:
    """End an expression with a newline, so that YAML writes it as a block; break long lines."""
    lines = [line for long_line in expression.strip().split("\n") for line in _broken(long_line)]
    return "\n".join(lines) + "\n"


def _broken(line: str) -> Iterator[str]:
    """Break a line at spaces outside string literals. Long words are not broken."""
    piece = ""
    for word in _WORD.findall(line):
        if piece and len(piece) + 1 + len(word) > _LINE:
            yield piece
            piece = f"  {word}"
        else:
            piece = f"{piece} {word}" if piece else word
    yield piece


INSTANCE_LABEL = "app.kubernetes.io/instance"
"""Where Argo CD records the Application if it is configured to track by label."""
AGAIN = "or end this order and place another"
BY_CROSSPLANE = "request.userInfo.username == '__ORDERKIT_CROSSPLANE_ACCOUNT__'"
"""Says whether Crossplane itself writes. The account is baked when the pack is published."""
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One validation. `told` is its message with values, `plain` the message without them."""

    expression: str
    message: tuple[str | Expression, ...]
    plain: str

    def to_manifest(self) -> Manifest:
        return {
            "expression": block(self.expression),
            "messageExpression": block(message_expression(self.message)),
            "message": self.plain,
        }


@dataclass(slots=True)
class Variables:
    """The policy's variables. Each may use those before it."""

    kit: Kit
    expressions: dict[str, str] = field(default_factory=dict)
    names: dict[FieldPath, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expressions["before"] = "oldObject == null ? dyn({}) : oldObject"
        for root, suffix in (("object", ""), ("variables.before", "_before")):
            self._tracker(root, suffix)

    def _tracker(self, root: str, suffix: str) -> None:
        """Define the Application that delivers the object."""
        kind = self.kit.kind
        tracking_note = optional(root, ("metadata", "annotations", TRACKING_ID))
        labelled = optional(root, ("metadata", "labels", INSTANCE_LABEL))
        own_kind = literal(f":{kind.group}/{kind.kind}:")
        ending = f"'/' + {root}.metadata.name"
        id_, tracked = f"tracking_id{suffix}", f"tracked_by{suffix}"
        self.expressions[id_] = f"{tracking_note}.orValue('')"
        self.expressions[tracked] = (
            # the annotation counts only on the object that it names
            f"variables.{id_}.contains({own_kind}) &&\nvariables.{id_}.endsWith({ending}) ?\n"
            f"variables.{id_}.split(':')[0] :\n{labelled}.orValue('')"
        )
        self.expressions[f"labelled{suffix}"] = f"{labelled}.orValue('')"

    def field(self, path: FieldPath) -> tuple[str, str]:
        """Return the variables for a field's new and old value; null if absent."""
        if path not in self.names:
            taken_names, name = set(self.names.values()), f"spec_{identifier(path)}"
            while (
                name in taken_names
                or name in self.expressions
                or f"{name}_before" in self.expressions
            ):
                name += "_"
            self.names[path] = name
            steps = ("spec", *path.split("."))
            self.expressions[name] = lookup("object", steps)
            self.expressions[f"{name}_before"] = lookup("variables.before", steps)
        name = self.names[path]
        return f"variables.{name}", f"variables.{name}_before"

    def to_manifest(self) -> list[Manifest]:
        return [{"name": n, "expression": block(e)} for n, e in self.expressions.items()]


def changes(kit: Kit, path: FieldPath, variables: Variables) -> tuple[str | Expression, ...]:
    """Return the words for a change of a field."""
    now, was = variables.field(path)
    if not _is_scalar(schema_at(kit.spec_schema, path)):
        return (f"spec.{path}: changes",)
    before, after = shown(kit, path, was), shown(kit, path, now)
    return f"spec.{path}: changes from ", before, " to ", after


def shown(kit: Kit, path: FieldPath, value: str) -> Expression:
    """Return the expression that writes a field's value: strings quoted, no lists or maps."""
    schema = schema_at(kit.spec_schema, path)
    text = "'something else'"
    if _is_scalar(schema):
        text = f"string({value})"
    if schema.get("type") == "string":
        text = f"'\"' + {text} + '\"'"
    return Expression(f"({value} == null ? 'nothing' : {text})")


def _is_scalar(schema: Any) -> bool:
    return schema.get("type") in _SCALARS or bool(schema.get("x-kubernetes-int-or-string"))


def quoted(expression: str) -> tuple[str, Expression, str]:
    """Return the words for a text that an expression returns."""
    return '"', Expression(expression), '"'
