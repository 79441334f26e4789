r"""
Objects as ``meta.k8s.io/v1`` Tables: what ``kubectl get`` prints.

Columns of custom kinds are those of their definition. The built-in kinds have the real server's
main columns. Ages are computed when the table is made, as kubectl expects.

`find` evaluates the JSONPath of printer columns, such as
``.status.conditions[?(@.type=='Ready')].status``. It knows fields (``.a``, ``['a.b']``, ``\.`` for
a dot in a name), indexes (also negative), ``[*]``, and filters with one comparison. Not here:
recursion (``..``), slices, unions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from ground.objects.kube_objects import Manifest, dig, metadata
from orderkit_standins.cluster.documents import encode
from orderkit_standins.cluster.kinds import Column, ServedKind

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


_NAME = Column(
    "Name",
    ".metadata.name",
    "string",
    "name",
    "Name must be unique within a namespace.",
)
UNKNOWN_TIME, INVALID_TIME = "<unknown>", "<invalid>"


def table(
    served: ServedKind, manifests: Iterable[Manifest], *, version: str, include: str = "Metadata"
) -> Manifest:
    """
    Return a Table of objects of one kind.

    Args:
        version: resourceVersion of the list.
        include: What each row carries of its object: None, Metadata or Object.
    """
    columns = (_NAME, *served.columns)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description or f"{column.name} of the object",
                "priority": column.priority,
            }
            for column in columns
        ],
        "rows": [_row(columns, manifest, include) for manifest in manifests],
    }


def partial(manifest: Manifest) -> Manifest:
    """Return an object as PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata(manifest),
    }


def _row(columns: tuple[Column, ...], manifest: Manifest, include: str) -> Manifest:
    row: Manifest = {"cells": [_cell(column, manifest) for column in columns]}
    if include == "Object":
        row["object"] = manifest
    elif include != "None":
        row["object"] = partial(manifest)
    return row


def _cell(column: Column, manifest: Manifest) -> Any:
    if column.path in _COMPUTED:
        return _COMPUTED[column.path](manifest)
    try:
        values = find(column.path, manifest)
    except JsonPathError:
        return None
    value = values[0] if values else None
    return UNKNOWN_TIME if value is None and column.type == "date" else _formatted(column, value)


def _formatted(column: Column, value: Any) -> Any:
    is_bool = isinstance(value, bool)
    match column.type:
        case "string":
            return _text(value)
        case "date":
            return age(value) if isinstance(value, str) else None
        case "boolean":
            return value if is_bool else None
        case "integer":
            return int(value) if isinstance(value, int | float) and not is_bool else None
        case "number":
            return value if isinstance(value, int | float) and not is_bool else None
        case _:
            return None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return encode(value)


def age(timestamp: str) -> str:
    """Return how long ago a Kubernetes timestamp was, as kubectl writes it."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return INVALID_TIME
    if moment.tzinfo is None:
        return INVALID_TIME
    return human_duration(datetime.now(UTC) - moment)


def human_duration(duration: timedelta) -> str:
    """Return a duration in at most two units: ``5s``, ``3m4s``, ``26h``, ``3d4h``."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return INVALID_TIME
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for limit, below, big, small, unit_big, unit_small in (
        (120, seconds, max(seconds, 0), 0, "s", ""),
        (10, minutes, minutes, seconds % 60, "m", "s"),
        (180, minutes, minutes, 0, "m", ""),
        (8, hours, hours, minutes % 60, "h", "m"),
        (48, hours, hours, 0, "h", ""),
        (192, hours, days, hours % 24, "d", "h"),
        (730, days, days, 0, "d", ""),
        (2920, days, days // 365, days % 365, "y", "d"),
    ):
        if below < limit:
            return f"{big}{unit_big}" + (f"{small}{unit_small}" if small else "")
    return f"{days // 365}y"


def _count(*fields: str) -> Callable[[Manifest], int]:
    return lambda manifest: sum(len(manifest.get(field) or ()) for field in fields)


def _reference(field: str) -> Callable[[Manifest], str]:
    def text(manifest: Manifest) -> str:
        kind = dig(manifest, field, "kind", default="")
        kind_text = kind.lower() if field == "involvedObject" else kind
        return f"{kind_text}/{dig(manifest, field, 'name', default='')}"

    return text


_COMPUTED: dict[str, Callable[[Manifest], Any]] = {
    "#data": _count("data", "binaryData"),
    "#secrets": _count("secrets"),
    "#involvedObject": _reference("involvedObject"),
    "#roleRef": _reference("roleRef"),
}
"""Columns of built-in kinds that no JSONPath can say."""
