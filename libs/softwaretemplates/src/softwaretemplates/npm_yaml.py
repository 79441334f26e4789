"""
Print data as YAML exactly as the portal's library does (npm ``yaml`` 2.x, default options).

For actions whose result is a file: either the same bytes or an error. Block style, indented by two,
plain text where YAML 1.2 reads it as a string, quotes otherwise; lines are folded at 80 columns,
multi-line strings are literal blocks. Refused, because the library's rules are not implemented:
lines in double quotes that cannot be folded, blocks with long lines or with blanks around line
ends, very long keys. Compared with the library in ``tests/test_yamlprint.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ground.errors import RefusedError, shorten
from softwaretemplates.render.javascript import number_text, ordered

__all__ = ["dump"]

_WIDTH, _CONTENT_MIN, _KEY_MAX = 80, 20, 120
_NOT_TEXT = re.compile(
    r"(~|[Nn]ull|NULL|[Tt]rue|TRUE|[Ff]alse|FALSE|0o[0-7]+|[-+]?[0-9]+|0x[0-9a-fA-F]+"
    r"|[-+]?\.(inf|Inf|INF)|\.nan|\.NaN|\.NAN"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+|[-+]?(\.[0-9]+|[0-9]+\.[0-9]*))?\Z"
)
_NOT_PLAIN = re.compile(
    r"\A[\n\t ,\[\]{}#&*!|>'\"%@`]|\A[?-]\Z|\A[?-][ \t]|[\n:][ \t]|[ \t]\n|[\n\t ]#|[\n\t :]\Z"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_DOCUMENT_MARK = re.compile(r"(?:\A|(?<=[\n\u2028\u2029]))(%|---|\.\.\.)")
_SHORT_ESCAPES = {
    "0000": "0",
    "0007": "a",
    "000b": "v",
    "001b": "e",
    "0085": "N",
    "00a0": "_",
    "2028": "L",
    "2029": "P",
}


def dump(value: Any) -> str:
    """
    Return one YAML document with a final newline.

    Raises:
        RefusedError: It contains a string that the library prints by rules not implemented here.
    """
    if isinstance(value, dict | list) and value:
        return "\n".join(_block(value, "")) + "\n"
    return _scalar(value, "", None) + "\n"


def _block(value: dict[str, Any] | list[Any], indent: str) -> Iterator[str]:
    """Yield the lines of a map or list that is not empty."""
    if isinstance(value, list):
        for item in value:
            lines = _item(item, indent + "  ")
            yield f"{indent}- {next(lines)}"
            yield from lines
        return
    for key, item in ordered(value):
        name = _key(key)
        if isinstance(item, dict | list) and item:
            yield f"{indent}{name}:"
            yield from _block(item, indent + "  ")
        else:
            text = _scalar(item, indent + "  ", len(name) + 2)
            gap = "" if text.startswith("\n") else " "
            yield f"{indent}{name}:{gap}{text}"


def _item(item: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a list item, the first without its indentation."""
    if isinstance(item, dict | list) and item:
        lines = _block(item, indent)
        yield next(lines).removeprefix(indent)
        yield from lines
    else:
        yield _scalar(item, indent, None)


def _key(key: str) -> str:
    if len(key) > _KEY_MAX or "\n" in key or _DOCUMENT_MARK.search(key):
        raise _refused(key, "is too long for a key, or begins like a document")
    if _CONTROL.search(key):
        return _double_quoted(key)
    return _quoted(key) if _NOT_PLAIN.search(key) or _NOT_TEXT.match(key) else key


def _scalar(value: Any, indent: str, column: int | None) -> str:
    """Return a value on the line of its key; `column` is where it starts."""
    if isinstance(value, str):
        return _text(value, indent, column)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value)


def _text(value: str, indent: str, column: int | None) -> str:
    if _CONTROL.search(value):
        if "\n" in value:
            raise _refused(value, "has control characters in several lines")
        return _fold(_double_quoted(value), indent, column)
    if "\n" in value:
        return _literal(value, indent)
    if _DOCUMENT_MARK.search(value) and not indent:
        raise _refused(value, "begins like a document")
    if _NOT_PLAIN.search(value) or _NOT_TEXT.match(value):
        return _fold(_quoted(value), indent, column)
    return _fold(value, indent, column)


def _quoted(value: str) -> str:
    """Quote with the quotes that the text does not contain; double quotes if both would do."""
    if '"' in value and "'" not in value:
        return f"'{value}'"
    return _double_quoted(value)


def _double_quoted(value: str) -> str:
    encoded = json.dumps(value, ensure_ascii=False)
    return re.sub(r"\\(u([0-9a-f]{4})|.)", _escape, encoded)


def _escape(match: re.Match[str]) -> str:
    code = match[2]
    if code is None:
        return match[0]
    if code in _SHORT_ESCAPES:
        return f"\\{_SHORT_ESCAPES[code]}"
    return f"\\x{code[2:]}" if code.startswith("00") else match[0]


def _fold(text: str, indent: str, column: int | None) -> str:
    """Break a line at single blanks so that lines have at most 80 columns where possible."""
    step = max(1 + _CONTENT_MIN, 1 + _WIDTH - len(indent))
    if len(text) <= step:
        return text
    if any(ord(character) > 0xFFFF for character in text):  # noqa: PLR2004 - JavaScript counts two
        raise _refused(text, "is long and has characters above U+FFFF")
    folds, end = [], _WIDTH - len(indent if column is None else " " * column)
    if column is not None and column > _WIDTH - _CONTENT_MIN:
        folds, end = [0], _WIDTH - len(indent)
    split = 0
    for at in _positions(text):
        if (
            text[at] == " "
            and at
            and text[at - 1] not in " \t"
            and text[at + 1 : at + 2] not in "\t "
        ):
            split = at
        if at < end:
            continue
        if split:
            folds.append(split)
            end, split = split + step, 0
        elif text.startswith('"'):
            raise _refused(text, "is long and has no blank to break the line at")
    return _joined(text, folds, indent)


def _positions(text: str) -> Iterator[int]:
    """Yield the positions of a text; for an escape in double quotes only the last one."""
    at, quoted = 0, text.startswith('"')
    while at < len(text):
        if quoted and text[at] == "\\":
            at += {"x": 3, "u": 5}.get(text[at + 1], 1)
        yield at
        at += 1


def _joined(text: str, folds: list[int], indent: str) -> str:
    parts, start = [], 0
    for fold in folds:
        parts.append(text[start:fold])
        start = fold + 1 if fold else 0
    parts.append(text[start:])
    return f"\n{indent}".join(parts)


def _literal(value: str, indent: str) -> str:
    body = value.rstrip("\n")
    lines = body.split("\n")
    awkward = (
        not body
        or not lines[0]
        or any(line != line.strip(" \t") for line in lines)
        or value[len(body) :].count("\n") > 1
        or max(map(len, lines)) > _WIDTH - len(indent)
        or _DOCUMENT_MARK.search(value)
    )
    if awkward:
        raise _refused(value, "has several lines, some long, blank at an end, or like a mark")
    mark = "|" if value.endswith("\n") else "|-"
    pad = indent or ""
    return f"{mark}\n" + "\n".join(pad + line if line else "" for line in lines)


def _refused(text: str, reason: str) -> RefusedError:
    return RefusedError(
        f"{shorten(repr(text), limit=80)}: {reason}; the portal's YAML cannot be matched",
        hint="write the file in the skeleton and fetch it with fetch:template",
    )
