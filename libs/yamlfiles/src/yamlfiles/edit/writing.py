"""
Write values as YAML text that three readers read alike: YAML 1.1, YAML 1.2 and Kubernetes.

YAML 1.1 is PyYAML's resolver, YAML 1.2 the core schema, Kubernetes ``go_scalars`` (``kubectl``,
Argo CD and the API server have their own dialect).

Scalars are written in a requested style, maps and lists in block or flow style. A string is left
unquoted only if all three read it as a string, and a number only if all three read that number.
Otherwise a string gets single quotes, or double quotes if it has line breaks or unprintable
characters. ``proving`` checks the result again.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

from yamlfiles import go_scalars
from yamlfiles.edit.edit_operations import EditRefusal, EditRefusedError, Value

_TAG = "tag:yaml.org,2002:"
_FIRST_11 = yaml.SafeLoader.yaml_implicit_resolvers
_BUILD_11 = yaml.constructor.SafeConstructor
_UNREADABLE = object()

_NULL_12 = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL_12 = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT_12 = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT_12 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE_12 = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DIGITS_MAX = 400


def is_json(value: object) -> bool:
    """Return whether JSON can represent a reading."""
    return value is not _UNREADABLE and not (isinstance(value, float) and not math.isfinite(value))


def same(value: object, other_value: object) -> bool:
    """Compare two scalars with their types: 1, 1.0 and true are different."""
    return type(value) is type(other_value) and value == other_value


@functools.lru_cache(maxsize=4096)
def readings(text: str) -> tuple[Any, Any, Any]:
    """Return what YAML 1.1, YAML 1.2 and Kubernetes read; a sentinel object for non-JSON values."""
    return read_11(text), read_12(text), _read_kubernetes(text)


def is_read_alike(text: str) -> bool:
    """Return whether all readers read the plain scalar `text` alike, whatever its value."""
    first, *other_readings = readings(text)
    return first is not _UNREADABLE and all(same(first, other) for other in other_readings)


def agree(text: str, value: Value) -> bool:
    """Return whether all readers read exactly `value` from the plain scalar `text`."""
    return all(same(reading, value) for reading in readings(text))


def read_11(text: str) -> Any:
    """Return the value that PyYAML's safe loader reads."""
    candidates = (*_FIRST_11.get(text[:1], ()), *_FIRST_11.get(None, ()))
    tag = next((tag for tag, pattern in candidates if pattern.match(text)), None)
    if tag is None:
        return text
    if tag.removeprefix(_TAG) not in ("null", "bool", "int", "float"):
        return _UNREADABLE
    try:
        return _BUILD_11().construct_object(yaml.ScalarNode(tag, text))
    except (ValueError, OverflowError):
        return _UNREADABLE


def read_12(text: str) -> Any:
    """Return the value that the core schema of YAML 1.2 reads."""
    if text in _NULL_12:
        return None
    if text in _BOOL_12:
        return _BOOL_12[text]
    if len(text) > _DIGITS_MAX:
        return text
    if _INT_12.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _FLOAT_12.fullmatch(text):
        return float(text)
    return _UNREADABLE if _NOT_FINITE_12.fullmatch(text) else text


def _read_kubernetes(text: str) -> Any:
    try:
        return go_scalars.resolve(text)
    except ValueError:
        return _UNREADABLE


_PLAIN = re.compile(r"(?:[^\W_]|[_./+(<$^=;~\\]|-(?=[^\W_]))[^:#]*(?:(?::(?=\S)|(?<=\S)#)[^:#]*)*")
_FLOW_MARKS = re.compile(r"[,\[\]{}:?#]")
_INT_MIN, _UINT_MAX = -(2**63), 2**64 - 1
_DEPTH_MAX = 32
_KEY_MAX = 1000
"""Limit for a key's length: parsers look for its colon within 1,024 characters only."""


@dataclass(frozen=True, slots=True)
class Style:
    """
    The style to write in, taken from the surroundings of the value.

    `quote` is the preferred quote of strings: ``'``, ``"`` or none.
    """

    newline: str = "\n"
    step: int = 2
    list_offset: int = 2
    """How far a list's dashes are indented relative to their key."""
    quote: str = ""
    literal: bool = True
    """
    Multi-line strings may be literal blocks.

    Not at the end of a text without a final line break.
    """
    json: bool = False
    """Use double quotes everywhere, also for keys, because the surrounding text is JSON."""


def check(value: object) -> None:
    """
    Check that JSON can represent `value`.

    Raises:
        EditRefusedError: It cannot; or `value` has a number that readers read differently, a lone
            surrogate, or is nested too deeply.
    """
    level: list[object] = [value]
    for _ in range(_DEPTH_MAX):
        level = [child for node in level for child in _checked(node)]
        if not level:
            return
    raise EditRefusedError(EditRefusal.VALUE, f"the new value has more than {_DEPTH_MAX} levels")


def _checked(node: object) -> Iterable[object]:
    """Check a value itself and return the values in it."""
    if isinstance(node, dict):
        if not all(isinstance(key, str) for key in node):
            raise EditRefusedError(EditRefusal.VALUE, "a key of the new value is not text")
        return [*node, *node.values()]
    if isinstance(node, list):
        return node
    if isinstance(node, str):
        _check_text(node)
    elif isinstance(node, float) and not math.isfinite(node):
        raise EditRefusedError(EditRefusal.VALUE, f"{node} cannot be written as JSON")
    elif isinstance(node, int) and not _INT_MIN <= node <= _UINT_MAX:
        raise EditRefusedError(EditRefusal.VALUE, f"{node} has more than 64 bits")
    elif node is not None and not isinstance(node, int | float):
        raise EditRefusedError(EditRefusal.VALUE, f"{type(node).__name__} is not a YAML value")
    return ()


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EditRefusedError(EditRefusal.VALUE, "the new value has half a character") from error


def scalar(value: Value, style: Style, *, flow: bool) -> str:
    """Return a scalar on one line."""
    if isinstance(value, str):
        return _text(value, style, flow=flow)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    digits, mark, exponent = repr(value).partition("e")
    return f"{digits}{'' if '.' in digits else '.0'}{mark}{exponent}"


def _text(text: str, style: Style, *, flow: bool) -> str:
    if style.json or style.quote == '"' or not text.isprintable():
        return double_quoted(text)
    if style.quote != "'" and _is_plain(text, flow=flow):
        return text
    return "'" + text.replace("'", "''") + "'"


def _is_plain(text: str, *, flow: bool) -> bool:
    if not _PLAIN.fullmatch(text) or text.endswith(" ") or text.startswith("..."):
        return False
    if flow and _FLOW_MARKS.search(text):
        return False
    return agree(text, text)


def double_quoted(text: str) -> str:
    """Return the text in double quotes, as JSON escapes it, on one line."""
    parts = []
    for character in text:
        if character in '"\\' or character in "\n\t\r":
            parts.append(json.dumps(character)[1:-1])
        elif character.isprintable():
            parts.append(character)
        else:
            code = ord(character)
            parts.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")  # noqa: PLR2004 - four hexadecimal digits
    return '"' + "".join(parts) + '"'


def key(text: str, style: Style, *, flow: bool) -> str:
    """
    Return a map's key.

    Raises:
        EditRefusedError: It is too long for parsers to find its colon.
    """
    key_text = scalar(text, style, flow=flow)
    if len(key_text) > _KEY_MAX:
        raise EditRefusedError(EditRefusal.VALUE, f"a key of more than {_KEY_MAX} characters")
    return key_text


def flow(value: Value, style: Style) -> str:
    """Return any value on one line."""
    if isinstance(value, dict):
        pairs = (f"{key(k, style, flow=True)}: {flow(v, style)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, style) for item in value) + "]"
    return scalar(value, style, flow=True)


def is_block(value: Value) -> bool:
    """Return whether a value takes lines of its own: a map or list that is not empty."""
    return isinstance(value, dict | list) and bool(value)


def block(value: Value, indent: int, style: Style) -> Iterator[str]:
    """Yield the lines of a map or a list that is not empty, indented, without line breaks."""
    pad = " " * indent
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _entry(f"{pad}{key(name, _keys(style), flow=False)}:", item, indent, style)
    elif isinstance(value, list):
        for item in value:
            lines = item_lines(item, indent + 2, style)
            yield f"{pad}- {next(lines)}"
            yield from lines


def _keys(style: Style) -> Style:
    return replace(style, quote="")


def _entry(head: str, value: Value, indent: int, style: Style) -> Iterator[str]:
    if is_block(value):
        yield head
        deeper = style.list_offset if isinstance(value, list) else style.step
        yield from block(value, indent + deeper, style)
    elif isinstance(value, str) and "\n" in value:
        first, *further_lines = inline(value, indent + style.step, style)
        yield f"{head} {first}"
        yield from further_lines
    else:
        yield (
            f"{head} {flow(value, style)}"
            if isinstance(value, dict | list)
            else (f"{head} {scalar(value, style, flow=False)}")
        )


def item_lines(value: Value, indent: int, style: Style) -> Iterator[str]:
    """Yield the lines of a list's item, the first without its indentation."""
    if is_block(value):
        lines = block(value, indent, style)
        yield next(lines).removeprefix(" " * indent)
        yield from lines
    else:
        yield from inline(value, indent, style)


def inline(value: Value, indent: int, style: Style) -> list[str]:
    """Return the lines of a scalar, or of an empty collection, as they stand after the key."""
    if isinstance(value, str) and "\n" in value and style.literal:
        lines = literal(value, indent)
        if lines is not None:
            return ["|" if value.endswith("\n") else "|-", *lines]
    if isinstance(value, dict | list):
        return [flow(value, style)]
    return [scalar(value, style, flow=False)]


def literal(text: str, indent: int) -> list[str] | None:
    """Return the lines of a literal block's body; None if quotes show the text better."""
    lines = text.removesuffix("\n").split("\n")
    if not lines[0] or not lines[-1] or lines[0].startswith((" ", "\t")):
        return None
    if not all(line.isprintable() and line == line.rstrip() for line in lines):
        return None
    return block_lines(text, indent)


def block_lines(text: str, indent: int) -> list[str] | None:
    """Return the lines of a block scalar's body; None if it has characters that need escapes."""
    lines = text.removesuffix("\n").split("\n")
    if not all(line.replace("\t", "").isprintable() for line in lines):
        return None
    return [" " * indent + line if line else "" for line in lines]


def folded(text: str) -> str:
    """Return the source of a ``>`` block: breaks beside lines that begin with a blank stay."""
    body = text.rstrip("\n")
    parts = re.split(r"(\n+)", body)
    for at in range(1, len(parts), 2):
        if not parts[at - 1].startswith((" ", "\t")) and not parts[at + 1].startswith((" ", "\t")):
            parts[at] += "\n"
    return "".join(parts) + text[len(body) :]
