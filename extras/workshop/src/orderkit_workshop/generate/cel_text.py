"""
Write CEL expressions: literals, safe lookups, wrapped lines.

Lookups never fail: a missing value is null. The API server and ``kubeschema.admission`` evaluate
the same expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
