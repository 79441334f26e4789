r"""
The JSONPath of printer columns: ``.status.conditions[?(@.type=='Ready')].status``.

Fields (``.a``, ``['a.b']``, ``\.`` for a dot in a name), indexes (also negative), ``[*]``, and
filters with one comparison. Not here: recursion (``..``), slices, unions. Pure; used by ``tables``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_FIELD = re.compile(r"\.((?:\\.|[^.\[\]\\])+)")
_QUOTED = re.compile(r"""\[\s*(?:'([^']*)'|"([^"]*)")\s*\]""")
_INDEX = re.compile(r"\[\s*(-?\d+|\*)\s*\]")
_FILTER = re.compile(
    r"""\[\?\(\s*@(?P<path>[^=!<>]*?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>'[^']*'|"[^"]*"|[^)]*?))?\s*\)\]"""
)


class JsonPathError(ValueError):
    """The path has a form that is not supported."""


def find(path: str, document: Any) -> list[Any]:
    """
    Return every value the path leads to; nothing if a part is missing.

    Raises:
        JsonPathError: The path cannot be read.
    """
    values = [document]
    for step in _compiled(path):
        values = [match for value in values for match in step(value)]
    return values


@lru_cache(maxsize=512)
def _compiled(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    return tuple(_steps(text.removesuffix(".")))


def _steps(text: str) -> Iterator[Step]:
    at = 0
    while at < len(text):
        for pattern, make in _FORMS:
            match = pattern.match(text, at)
            if match:
                yield make(match)
                at = match.end()
                break
        else:
            if text.startswith(".[", at):
                at += 1
                continue
            raise JsonPathError(f"unsupported JSONPath at {text[at:]!r}")


def _field(match: re.Match[str]) -> Step:
    return _key_step(re.sub(r"\\(.)", r"\1", match[1]))


def _quoted(match: re.Match[str]) -> Step:
    return _key_step(match[1] if match[1] is not None else match[2])


def _key_step(name: str) -> Step:
    if name == "*":
        return _everything
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _everything(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else []


def _index(match: re.Match[str]) -> Step:
    if match[1] == "*":
        return _everything
    index = int(match[1])

    def step(value: Any) -> Iterable[Any]:
        fits = isinstance(value, list) and -len(value) <= index < len(value)
        return [value[index]] if fits else []

    return step


def _filter(match: re.Match[str]) -> Step:
    steps, operator, text = _compiled(match["path"]), match["op"], match["value"]
    literal = None if operator is None else _literal(text)

    def keeps(item: Any) -> bool:
        values = [item]
        for step in steps:
            values = [inner for value in values for inner in step(value)]
        if operator is None:
            return bool(values)
        return bool(values) and _COMPARE[operator](values[0], literal)

    def step(value: Any) -> Iterable[Any]:
        return [item for item in _everything(value) if keeps(item)]

    return step


def _literal(text: str) -> Any:
    if text[:1] in {"'", '"'}:
        return text[1:-1]
    if text in {"true", "false"}:
        return text == "true"
    try:
        return float(text)
    except ValueError as error:
        raise JsonPathError(f"{text!r} is not a JSONPath literal") from error


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(actual: Any, literal: Any) -> bool:
        try:
            return compare(actual, literal)
        except TypeError:
            return False

    return test


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda actual, literal: actual == literal,
    "!=": lambda actual, literal: actual != literal,
    "<": _ordered(lambda actual, literal: actual < literal),
    "<=": _ordered(lambda actual, literal: actual <= literal),
    ">": _ordered(lambda actual, literal: actual > literal),
    ">=": _ordered(lambda actual, literal: actual >= literal),
}
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_FILTER, _filter),
    (_QUOTED, _quoted),
    (_INDEX, _index),
    (_FIELD, _field),
)
