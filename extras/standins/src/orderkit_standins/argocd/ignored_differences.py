"""
Fields that an Application ignores in comparisons: ``spec.ignoreDifferences``.

Supported are JSON pointers, per group and kind (with wildcards), name and namespace. An ignored
field never counts as a difference, but a sync still writes it, unless
``RespectIgnoreDifferences=true``. jq expressions and field managers are refused.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest, ObjectKey

_UNSUPPORTED = ("jqPathExpressions", "managedFieldsManagers")
_ABSENT = object()
Pointer = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One entry: which objects, which fields of them. Empty name and namespace mean any."""

    group: str
    kind: str
    name: str
    namespace: str
    pointers: tuple[Pointer, ...]

    def concerns(self, key: ObjectKey) -> bool:
        """Say whether an object is meant."""
        return (
            fnmatchcase(key.kind.group, self.group)
            and fnmatchcase(key.kind.kind, self.kind)
            and self.name in ("", key.name)
            and self.namespace in ("", key.namespace)
        )


def read_rules(entries: Iterable[Mapping[str, Any]]) -> tuple[IgnoreRule, ...]:
    """
    Read ``ignoreDifferences``.

    Raises:
        InvalidInputError: An entry uses an unsupported option.
    """
    return tuple(map(_rule, entries))


def as_it_is(
    target: Manifest, live: Manifest, rules: Iterable[IgnoreRule], key: ObjectKey
) -> Manifest:
    """
    Return the target with the ignored fields as they are in the live object.

    A copy if rules concern the object, else `target` itself.
    """
    pointers = [pointer for rule in rules if rule.concerns(key) for pointer in rule.pointers]
    if not pointers:
        return target
    respected = copy.deepcopy(target)
    for pointer in pointers:
        _set_field(respected, pointer, _live_value(live, pointer))
    return respected


def _rule(entry: Mapping[str, Any]) -> IgnoreRule:
    for field in _UNSUPPORTED:
        if entry.get(field):
            raise InvalidInputError(
                f"spec.ignoreDifferences[].{field}", entry[field], "is not supported here"
            )
    return IgnoreRule(
        group=str(entry.get("group") or ""),
        kind=str(entry.get("kind") or ""),
        name=str(entry.get("name") or ""),
        namespace=str(entry.get("namespace") or ""),
        pointers=tuple(map(_pointer, entry.get("jsonPointers") or ())),
    )


def _pointer(text: object) -> Pointer:
    """Split a JSON pointer (RFC 6901)."""
    _, *steps = str(text).split("/")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def _steps(value: Any, pointer: Pointer) -> Iterator[Any]:
    """Yield what each step of a pointer leads to; `_ABSENT` from where it leads nowhere."""
    for step in pointer:
        if isinstance(value, dict):
            value = value.get(step, _ABSENT)
        elif isinstance(value, list) and _is_index(step, value):
            value = value[int(step)]
        else:
            value = _ABSENT
        yield value


def _is_index(step: str, items: list[Any]) -> bool:
    return step.isdecimal() and int(step) < len(items)


def _live_value(live: Manifest, pointer: Pointer) -> Any:
    return list(_steps(live, pointer))[-1] if pointer else _ABSENT


def _set_field(manifest: Manifest, pointer: Pointer, value: Any) -> None:
    """Set the field, or remove it where the object has none; without its parent do nothing."""
    *before, last = pointer or ("",)
    parent = list(_steps(manifest, tuple(before)))[-1] if before else manifest
    if isinstance(parent, dict):
        parent.pop(last, None)
        if value is not _ABSENT:
            parent[last] = copy.deepcopy(value)
    elif value is not _ABSENT and isinstance(parent, list) and _is_index(last, parent):
        parent[int(last)] = copy.deepcopy(value)
