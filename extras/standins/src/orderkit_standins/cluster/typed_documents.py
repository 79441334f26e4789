"""
Documents by their schema: which parts are separate fields, and which are atomic.

Server-side apply needs four functions: the fields that a value sets (`fields_of`), the fields that
a change touched (`compare`), the union of two documents (`merge`), and the document without fields
that were given up (`prune`). The rules are those of structured-merge-diff: maps are granular unless
``x-kubernetes-map-type: atomic``; lists are atomic unless ``x-kubernetes-list-type`` is ``map`` or
``set``; where the schema is silent, maps are granular and lists atomic.

A set of field paths has the form that ``managedFields`` stores (FieldsV1), a nested dict:
``{"f:spec": {"f:stage": {}}}``. A node is a member if it is empty or holds ``"."``. Steps are
``f:<name>``, ``k:<keys as JSON>`` (list-map item) and ``v:<JSON>`` (set item).

Pure; arguments are never changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

FieldSet = dict[str, Any]
"""The root is never a member, so an empty root is the empty set."""

SELF = "."


def is_member(node: FieldSet) -> bool:
    """Say whether a node below the root is itself in the set."""
    return not node or SELF in node


def union(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths that are in either set."""
    joined = dict(first)
    for step, node in second.items():
        joined[step] = _join(first[step], node) if step in first else node
    return joined


def _join(first: FieldSet, second: FieldSet) -> FieldSet:
    if first == second:
        return first
    joined = union(first, second)
    if is_member(first) or is_member(second):
        joined[SELF] = {}
    return joined if len(joined) > 1 or SELF not in joined else {}


def difference(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths of `first` that are not in `second`, path by path."""
    remaining: FieldSet = {}
    for step, node in first.items():
        if step == SELF:
            continue
        subtracted = _subtract(node, second[step]) if step in second else node
        if subtracted is not None:
            remaining[step] = subtracted
    return remaining


def _subtract(first: FieldSet, second: FieldSet) -> FieldSet | None:
    children = difference(first, second)
    stays = is_member(first) and not is_member(second)
    if not children:
        return {} if stays else None
    return {SELF: {}, **children} if stays else children


def intersection(first: FieldSet, second: FieldSet) -> FieldSet:
    """Return the paths that are in both sets."""
    shared: FieldSet = {}
    for step, node in first.items():
        if step == SELF or step not in second:
            continue
        shared_node = _meet(node, second[step])
        if shared_node is not None:
            shared[step] = shared_node
    return shared


def _meet(first: FieldSet, second: FieldSet) -> FieldSet | None:
    children = intersection(first, second)
    stays = is_member(first) and is_member(second)
    if not children:
        return {} if stays else None
    return {SELF: {}, **children} if stays else children


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the members as the API server prints them: ``.status.conditions[type="Ready"]``."""
    for step in sorted(fields):
        if step == SELF:
            continue
        path = prefix + _printed(step)
        if is_member(fields[step]):
            yield path
        yield from paths(fields[step], path)


def _printed(step: str) -> str:
    tag, _, content = step.partition(":")
    if tag == "f":
        return f".{content}"
    if tag == "v":
        return f"[={content}]"
    keys = json.loads(content)
    return "[" + ",".join(f"{key}={json.dumps(keys[key])}" for key in sorted(keys)) + "]"


Schema = Mapping[str, Any]


class OwnedField(NamedTuple):
    """One field or item that can have an owner of its own."""

    step: str
    value: Any
    schema: Schema | None
    keyed: bool
    """True if the path itself is owned too, not only the leaves below (map keys, list items)."""


def children(value: Any, schema: Schema | None) -> list[OwnedField] | None:
    """Return the separately owned parts of a value, or None if it is one leaf."""
    if isinstance(value, dict):
        if schema is not None and schema.get("x-kubernetes-map-type") == "atomic":
            return None
        return [_field(schema, name, entry) for name, entry in value.items()]
    if isinstance(value, list) and schema is not None:
        return _items(value, schema)
    return None


def _field(schema: Schema | None, name: str, value: Any) -> OwnedField:
    declared = (schema or {}).get("properties") or {}
    if name in declared:
        return OwnedField(f"f:{name}", value, declared[name], keyed=False)
    return OwnedField(f"f:{name}", value, _other_fields(schema), keyed=True)


def _other_fields(schema: Schema | None) -> Schema | None:
    declared = (schema or {}).get("additionalProperties")
    return declared if isinstance(declared, Mapping) else None


def _items(value: list[Any], schema: Schema) -> list[OwnedField] | None:
    item_schema = schema.get("items")
    match schema.get("x-kubernetes-list-type"):
        case "set":
            item_children = [
                OwnedField(f"v:{_json(item)}", item, None, keyed=True) for item in value
            ]
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            steps = [_item_step(item, keys, item_schema) for item in value]
            if None in steps:
                return None
            item_children = [
                OwnedField(str(step), item, item_schema, keyed=True)
                for step, item in zip(steps, value, strict=True)
            ]
        case _:
            return None
    return (
        item_children
        if len({child.step for child in item_children}) == len(item_children)
        else None
    )


def _item_step(item: Any, keys: Any, schema: Schema | None) -> str | None:
    if not isinstance(item, dict):
        return None
    declared = (schema or {}).get("properties") or {}
    key_values = {}
    for key in keys:
        value = item.get(key, declared.get(key, {}).get("default"))
        if value is None or isinstance(value, dict | list):
            return None
        key_values[key] = value
    return f"k:{_json(key_values)}"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def fields_of(value: Any, schema: Schema | None) -> FieldSet:
    """Return the fields that an apply of `value` claims."""
    return {child.step: _claimed(child) for child in children(value, schema) or ()}


def _claimed(child: OwnedField) -> FieldSet:
    inner = fields_of(child.value, child.schema)
    return {SELF: {}, **inner} if inner and child.keyed else inner


def _everything(child: OwnedField) -> FieldSet:
    inner = {
        nested.step: _everything(nested) for nested in children(child.value, child.schema) or ()
    }
    return {SELF: {}, **inner} if inner else inner


class OwnedFieldChanges(NamedTuple):
    """Fields added or modified, and fields removed."""

    touched: FieldSet
    removed: FieldSet


def compare(old: Any, new: Any, schema: Schema | None) -> OwnedFieldChanges:
    """Return what differs between two documents of one schema."""
    before = {child.step: child for child in children(old, schema) or ()}
    after = {child.step: child for child in children(new, schema) or ()}
    touched: FieldSet = {}
    removed = {step: _everything(child) for step, child in before.items() if step not in after}
    for step, child in after.items():
        if step not in before:
            touched[step] = _everything(child)
        elif child.value != before[step].value or _types_differ(child.value, before[step].value):
            _compare_child(step, before[step], child, touched, removed)
    return OwnedFieldChanges(touched, removed)


def _types_differ(first: Any, second: Any) -> bool:
    """Say whether values that Python calls equal are different JSON (True and 1)."""
    return isinstance(first, bool) != isinstance(second, bool)


def _compare_child(
    step: str, old: OwnedField, new: OwnedField, touched: FieldSet, removed: FieldSet
) -> None:
    was, becomes = children(old.value, old.schema), children(new.value, new.schema)
    if was is None or becomes is None or type(old.value) is not type(new.value):
        touched[step] = {}
        return
    inner = compare(old.value, new.value, new.schema)
    if inner.touched or not becomes:
        touched[step] = inner.touched
    if inner.removed:
        removed[step] = inner.removed


def merge(live: Any, config: Any, schema: Schema | None) -> Any:
    """Return `live` with every field of `config` set; order of list items is kept."""
    ours, theirs = children(config, schema), children(live, schema)
    if ours is None or theirs is None or type(live) is not type(config):
        return config
    if isinstance(config, dict):
        merged = dict(live)
        for child in ours:
            name = child.step[2:]
            merged[name] = (
                merge(live[name], child.value, child.schema) if name in live else child.value
            )
        return merged
    configured = {child.step: child for child in ours}
    kept = [
        merge(child.value, configured.pop(child.step).value, child.schema)
        if child.step in configured
        else child.value
        for child in theirs
    ]
    return kept + [child.value for child in configured.values()]


def prune(value: Any, given_up: FieldSet, kept: FieldSet, schema: Schema | None) -> Any:
    """
    Remove the fields in `given_up` that are not in `kept`.

    Unowned content below a removed field goes with it; owned content below it stays.
    """
    return _rebuilt(value, schema, lambda child: _prune_child(child, given_up, kept))


def _prune_child(child: OwnedField, given_up: FieldSet, kept: FieldSet) -> Any:
    given_up_fields, owned = given_up.get(child.step), kept.get(child.step)
    if given_up_fields is None:
        return child.value
    if not is_member(given_up_fields):
        inner = prune(child.value, given_up_fields, owned or {}, child.schema)
        emptied = not inner and bool(child.value) and (owned is None or not is_member(owned))
        return _GONE if emptied else inner
    if owned is None:
        return _GONE
    if not any(step != SELF for step in owned) and not any(
        step != SELF for step in given_up_fields
    ):
        return child.value
    return _extract(child, owned)


def _extract(child: OwnedField, owned: FieldSet) -> Any:
    """Return only the owned parts of a container (the keys of a list-map item always stay)."""

    def keep(nested: OwnedField) -> Any:
        inner = owned.get(nested.step)
        return _GONE if inner is None else _extract(nested, inner)

    kept_parts = _rebuilt(child.value, child.schema, keep)
    return (
        {**json.loads(child.step[2:]), **kept_parts} if child.step.startswith("k:") else kept_parts
    )


_GONE: Any = object()


def _rebuilt(value: Any, schema: Schema | None, decide: Any) -> Any:
    """Return the container with each part replaced by `decide(part)`, or left out."""
    parts = children(value, schema)
    if parts is None:
        return value
    decided = [(child, decide(child)) for child in parts]
    if isinstance(value, dict):
        return {
            child.step[2:]: decided_part
            for child, decided_part in decided
            if decided_part is not _GONE
        }
    return [decided_part for _, decided_part in decided if decided_part is not _GONE]
