"""
Field paths as Crossplane's functions read them, and how a value is merged at one.

``spec.items[0].name``, ``data[a.key]``. Get, set and expand follow crossplane-runtime's fieldpath
package (2.3 and 2.4), including which missing things count as *not found* (the patch is skipped)
and which are errors (the step fails). Values of the wrong type on the path are never replaced;
lists are extended with nulls.

The policies of ``policy.toFieldPath`` merge as crossplane-runtime does through the mergo library
(1.0.2), including its oddities: an existing *empty* value (``""``, 0, false, an empty map) is
replaced although existing values are kept; lists append only new entries, and only at the top
level; in an appending merge a string that meets a list is an error. Values are changed in place
where Go changes them in place.

Values are those of ``go_values``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compositions.function_twins.go_values import from_json, same, type_name
from compositions.station import OpaqueError

INDEX_MAX = 1024
"""The largest index that may be set."""
_UINT32_MAX = 2**32 - 1
WILDCARD = "*"

Segment = str | int
"""A field of an object, or an index of a list."""


class PathError(Exception):
    """A path that cannot be parsed, or that does not fit the data."""


class NoSuchFieldError(PathError):
    """There is no such field."""


_TOKEN = re.compile(r"[.\[]")


def parse(path: str) -> list[Segment]:
    """
    Parse a path.

    Raises:
        PathError: It is not a valid path.
    """
    try:
        return list(_segments(path))
    except PathError as error:
        raise PathError(f"cannot parse path {quoted(path)}: {error}") from error


def quoted(text: str) -> str:
    """Return text as ``%q`` prints it, for messages."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _segments(path: str) -> Iterator[Segment]:
    at = 0
    while at < len(path):
        match = _TOKEN.search(path, at)
        end = match.start() if match else len(path)
        wrong = path.find("]", at, end)
        if wrong >= 0:
            raise _unexpected("]", wrong)
        if end > at:
            yield _field(path[at:end])
        if match is None:
            return
        if match.group() == ".":
            at = _after_period(path, end)
        else:
            inside, at = _bracketed(path, end)
            yield inside


def _after_period(path: str, at: int) -> int:
    if at in (0, len(path) - 1):
        raise _unexpected(".", at)
    if path[at + 1] in ".[":
        raise _unexpected(path[at + 1], at + 1)
    return at + 1


def _bracketed(path: str, at: int) -> tuple[Segment, int]:
    end = path.find("]", at)
    if end < 0:
        raise PathError(f"unterminated '[' at position {at}")
    if end == at + 1:
        raise _unexpected("]", end)
    again = path.find("[", at + 1, end)
    if again >= 0:
        raise _unexpected("[", again)
    return _field_or_index(path[at + 1 : end]), end + 1


def _unexpected(char: str, at: int) -> PathError:
    return PathError(f"unexpected '{char}' at position {at}")


def _field(text: str) -> str:
    # crossplane-runtime trims quotes at both ends, whether or not they match.
    return text.strip("'\"")


def _field_or_index(text: str) -> Segment:
    if text.isascii() and text.isdigit() and int(text) <= _UINT32_MAX:
        return int(text)
    return _field(text)


def path_text(segments: Sequence[Segment]) -> str:
    """Write segments as a path. Names with dots are put in brackets."""
    texts = []
    for segment in segments:
        if isinstance(segment, int) or segment == WILDCARD or "." in segment:
            texts.append(f"[{segment}]")
        else:
            texts.append(f".{segment}")
    return "".join(texts).removeprefix(".")


def get(data: Any, path: str) -> Any:
    """
    Return the value at a path.

    Raises:
        NoSuchFieldError: There is no value.
        PathError: The path is invalid, or leads through a value without fields.
    """
    return _value(data, parse(path))


def _value(data: Any, segments: Sequence[Segment]) -> Any:
    value = data
    for number, segment in enumerate(segments):
        path = path_text(segments[:number])
        if isinstance(segment, int):
            if not isinstance(value, list):
                raise PathError(f"{path}: not an array")
            if segment >= len(value):
                raise NoSuchFieldError(f"{path_text(segments[: number + 1])}: no such element")
            value = value[segment]
        elif isinstance(value, dict):
            if segment not in value:
                raise NoSuchFieldError(f"{path_text(segments[: number + 1])}: no such field")
            value = value[segment]
        elif value is None:
            raise NoSuchFieldError(f"{path}: expected map, got nil")
        else:
            raise PathError(f"{path}: not an object")
    return value if segments else None


def get_string(data: Any, path: str) -> str:
    """
    Return the string at a path.

    Raises:
        NoSuchFieldError, PathError: As `get`, or the value is not a string.
    """
    value = get(data, path)
    if not isinstance(value, str):
        raise PathError(f"{path}: not a string")
    return value


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """
    Set the value at a path in place. Missing objects and lists on the way are created.

    Raises:
        PathError: The path leads through another type, or an index is above `INDEX_MAX`.
    """
    segments = parse(path)
    # As crossplane-runtime's SetValue, which converts a value to plain JSON types first.
    value = from_json(value)
    far = next((step for step in segments if isinstance(step, int) and step > INDEX_MAX), None)
    if far is not None:
        raise PathError(f"index {far} is greater than max allowed index {INDEX_MAX}")
    holder: Any = data
    for number, segment in enumerate(segments):
        _check_holds(holder, segments[: number + 1])
        if number == len(segments) - 1:
            holder[segment] = value
        else:
            _make(holder, segment, segments[number + 1])
            holder = holder[segment]


def _check_holds(holder: Any, segments: Sequence[Segment]) -> None:
    container, kind = (list, "array") if isinstance(segments[-1], int) else (dict, "object")
    if not isinstance(holder, container):
        raise PathError(f"{path_text(segments[:-1])} is not an {kind}")


def _make(holder: Any, segment: Any, following: Segment) -> None:
    """Create what the next segment needs if it is missing; extend a list."""
    missing = holder[segment] is None if isinstance(holder, list) else segment not in holder
    if missing:
        holder[segment] = [] if isinstance(following, int) else {}
    value = holder[segment]
    if isinstance(following, int) and isinstance(value, list):
        value += [None] * (following + 1 - len(value))


def expand(data: Any, path: str) -> list[str]:
    """
    Return every path that matches a path with wildcards; empty if a part of it is missing.

    Raises:
        NoSuchFieldError: A wildcard is applied to null.
        PathError: A wildcard is applied to a value without entries.
        OpaqueError: One of the entries has the wildcard's own name.
    """
    wildcard_path = parse(path)
    try:
        return [path_text(segments) for segments in _expanded(data, wildcard_path)]
    except PathError as error:
        message = (
            f"cannot expand wildcards for segments: {quoted(path_text(wildcard_path))}: {error}"
        )
        raise type(error)(message) from error


def _expanded(data: Any, segments: Sequence[Segment]) -> list[Sequence[Segment]]:
    value = data
    for number, segment in enumerate(segments):
        if segment == WILDCARD:
            entries = _entries(value, segments[:number])
            remaining = segments[number + 1 :]
            branches = ([*segments[:number], entry, *remaining] for entry in entries)
            return [expanded for branch in branches for expanded in _expanded_again(data, branch)]
        try:
            value = _value(data, segments[: number + 1])
        except NoSuchFieldError:
            return []
    return [segments]


def _expanded_again(data: Any, segments: Sequence[Segment]) -> list[Sequence[Segment]]:
    try:
        return _expanded(data, segments)
    except PathError as error:
        message = f"{quoted(path_text(segments))}: cannot expand wildcards: {error}"
        raise type(error)(message) from error


def _entries(holder: Any, segments: Sequence[Segment]) -> Sequence[Segment]:
    if isinstance(holder, list):
        return range(len(holder))
    if isinstance(holder, dict):
        if WILDCARD in holder:
            raise OpaqueError("a wildcard over a field named '*': the function crashes on it")
        return list(holder)
    path = quoted(path_text(segments))
    if holder is None:
        raise NoSuchFieldError(f"wildcard field {path} is not found in the path")
    raise PathError(f"{path}: unexpected wildcard usage")


@dataclass(frozen=True, slots=True)
class Merge:
    """What happens to existing values."""

    override: bool
    append: bool = False


POLICIES: Mapping[str, Merge | None] = {
    "Replace": None,
    "MergeObjects": Merge(override=False),
    "MergeObject": Merge(override=False),
    "MergeObjectsAppendArrays": Merge(override=False, append=True),
    "ForceMergeObjects": Merge(override=True),
    "ForceMergeObjectsAppendArrays": Merge(override=True, append=True),
    "AppendArray": Merge(override=True, append=True),
}
"""By the policy's name; None replaces."""


def merge_at(data: dict[str, Any], path: str, value: Any, how: Merge | None) -> None:
    """
    Set or merge a value at a path, in place.

    Raises:
        PathError: The path does not fit, or the values cannot be merged.
    """
    if how is not None:
        try:
            present = get(data, path)
        except NoSuchFieldError:
            present = None
        value = _merged(present, value, how)
    put(data, path, value)


def _merged(present: Any, value: Any, how: Merge) -> Any:
    if present is None or value is None:
        return value
    if how.append and isinstance(present, list) and isinstance(value, list):
        # removeSourceDuplicates in crossplane-runtime: it looks at the top level only.
        value = [entry for entry in value if not any(same(entry, old) for old in present)]
        if not (value or present):
            return None  # Go's nil slice, which mergo puts in place of an empty one
    holder = {"arg": present}
    _into(holder, {"arg": value}, how)
    return holder["arg"]


def _into(target: dict[str, Any], source: Mapping[str, Any], how: Merge) -> None:
    was_empty = not target
    for key, value in source.items():
        present = target.get(key)
        if value is None:
            if how.override:
                target[key] = None
            continue
        filled = not _is_empty(present)
        if isinstance(value, dict) and isinstance(present, dict) and filled:
            _into(present, value, how)
            continue
        if isinstance(value, list):
            _list_into(target, key, value, how, was_empty=was_empty)
            if filled:
                continue
        if how.override or not filled:
            target[key] = value


def _list_into(
    target: dict[str, Any], key: str, value: list[Any], how: Merge, *, was_empty: bool
) -> None:
    present: Any = [] if target.get(key) is None else target[key]
    if not how.append:
        target[key] = value if how.override or was_empty else present
        return
    if not isinstance(present, list):
        raise PathError(
            "failed to merge values: cannot append two slices with different type "
            f"({type_name(value)}, {type_name(present)})"
        )
    target[key] = [*present, *value]


def _is_empty(value: Any) -> bool:
    # mergo's isEmptyValue: the zero value of any type, not only null.
    return not value
