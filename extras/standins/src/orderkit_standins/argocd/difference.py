"""
Does a live object differ from what Git wants?

Every field Git gives must be there with that value; every field we applied before and Git no
longer gives (our field manager's entry in ``managedFields``) must be gone. Fields of others
(defaults, status, other controllers) do not count. No dry run is needed: nothing is written.

Not done: quantities written differently (``1000m`` and ``1``). Fields that are to be ignored
are made equal before (``ignored_differences``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ground.objects.kube_objects import Manifest, metadata

_NOT_COMPARED = frozenset({"status"})
_SERVER_FIELDS = frozenset({"creationTimestamp", "managedFields", "generation", "uid"})


def differs(target: Manifest, live: Manifest, *, owner: str) -> bool:
    """Say whether applying `target` as `owner` would change `live`."""
    owned = _owned_fields(live, owner)
    for field in target.keys() - _NOT_COMPARED:
        target_value, live_value = target[field], live.get(field)
        if field == "metadata":
            target_value = {k: v for k, v in target_value.items() if k not in _SERVER_FIELDS}
            live_value = metadata(live)
        if not _same(target_value, live_value, owned.get(f"f:{field}", {})):
            return True
    return any(
        step.startswith("f:") and step[2:] not in target and step[2:] not in _NOT_COMPARED
        for step in owned
    )


def _owned_fields(live: Manifest, owner: str) -> Mapping[str, Any]:
    for entry in metadata(live).get("managedFields") or ():
        is_ours = entry.get("manager") == owner and entry.get("operation") == "Apply"
        if is_ours and not entry.get("subresource"):
            fields = entry.get("fieldsV1")
            return fields if isinstance(fields, dict) else {}
    return {}


def _same(target: object, live: object, owned: Mapping[str, Any]) -> bool:
    if live is None and target in ({}, []):
        return True  # of kinds that are built in the API server drops what is empty
    if isinstance(target, dict):
        return isinstance(live, dict) and _same_map(target, live, owned)
    if isinstance(target, list):
        return isinstance(live, list) and _same_list(target, live, owned)
    if target is None:
        return live is None
    return target == live and isinstance(target, bool) == isinstance(live, bool)


def _same_map(target: Mapping[str, Any], live: Mapping[str, Any], owned: Mapping[str, Any]) -> bool:
    if not all(
        _same(target_value, live.get(key), owned.get(f"f:{key}", {}))
        for key, target_value in target.items()
    ):
        return False
    return all(step[2:] in target for step in owned if step.startswith("f:"))


def _same_list(target: list[Any], live: list[Any], owned: Mapping[str, Any]) -> bool:
    if any(step.startswith("k:") for step in owned):
        return _same_items(target, live, owned)
    values = {step[2:] for step in owned if step.startswith("v:")}
    if values:
        target_value = {_canonical(value) for value in target}
        present = {_canonical(value) for value in live}
        return (
            target_value <= present and {_canonical(json.loads(v)) for v in values} <= target_value
        )
    if len(target) != len(live):
        return False
    return all(
        _same(target_value, live_value, {})
        for target_value, live_value in zip(target, live, strict=True)
    )


def _same_items(target: list[Any], live: list[Any], owned: Mapping[str, Any]) -> bool:
    """Compare lists whose items have keys: match by key, ignore what others added."""
    ours = {step[2:]: fields for step, fields in owned.items() if step.startswith("k:")}
    names = json.loads(next(iter(ours)))
    key_names = tuple(n for n in names if all(isinstance(i, dict) and n in i for i in target))
    if not key_names:  # all keys are defaulted by the server
        return len(target) == len(live) and all(map(_same, target, live, [{}] * len(live)))
    by_key = {_item_key(item, key_names): item for item in live}
    targets_by_key = {_item_key(item, key_names): item for item in target}
    owned_by_key = {_item_key(json.loads(text), key_names): text for text in ours}
    if not owned_by_key.keys() <= targets_by_key.keys():
        return False
    return all(
        key in by_key and _same(item, by_key[key], ours.get(owned_by_key.get(key, ""), {}))
        for key, item in targets_by_key.items()
    )


def _item_key(item: object, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_values(item, names))


def _values(item: object, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield _canonical(item.get(name) if isinstance(item, dict) else None)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)
