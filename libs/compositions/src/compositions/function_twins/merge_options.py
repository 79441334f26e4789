"""
How a patch's value is merged with the existing value: the policies of ``policy.toFieldPath``.

Merges as crossplane-runtime does through the mergo library (1.0.2), including its oddities: an
existing *empty* value (``""``, 0, false, an empty map) is replaced although existing values are
kept; lists append only new entries, and only at the top level; in an appending merge a string that
meets a list is an error. Values are changed in place where Go changes them in place.

Used by the twin of function-patch-and-transform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compositions.function_twins import field_paths
from compositions.function_twins.field_paths import NoSuchFieldError, PathError
from compositions.function_twins.go_values import same, type_name


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
            present = field_paths.get(data, path)
        except NoSuchFieldError:
            present = None
        value = _merged(present, value, how)
    field_paths.put(data, path, value)


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
