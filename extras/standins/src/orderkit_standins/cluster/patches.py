"""
The three patch formats besides server-side apply. Pure; arguments are never changed.

JSON merge patch (RFC 7386), JSON patch (RFC 6902), and strategic merge patch for the built-in
kinds: lists with map keys are merged by key, ``$patch: delete|replace``,
``$deleteFromPrimitiveList``; ``$setElementOrder`` and ``$retainKeys`` are accepted (order is
kept as it is).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.objects.values import clone
from orderkit_standins.cluster.documents import encode
from orderkit_standins.cluster.refusals import BadRequest, PatchRefused, RequestEntityTooLarge

_OPERATIONS_MAX, _COPIED_MAX = 10_000, 3 * 1024 * 1024
"""The limits of kube-apiserver 1.36 (``maxJSONPatchOperations``, ``JSONPatchMaxCopyBytes``)."""
Schema = Mapping[str, Any]


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply an RFC 7386 patch."""
    if not isinstance(patch, dict):
        return clone(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def json_patch(target: Any, operations: Any) -> Any:
    """
    Apply an RFC 6902 patch: all operations or none.

    Raises:
        BadRequest: The patch is not a list.
        RequestEntityTooLarge: It has too many operations.
        PatchRefused: An operation is malformed, a path does not exist, a test fails, or the patch
            copies too much.
    """
    if not isinstance(operations, list):
        raise BadRequest("json patch must be a list of operations")
    if len(operations) > _OPERATIONS_MAX:
        raise RequestEntityTooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{_OPERATIONS_MAX}, got {len(operations)}"
        )
    document = {"": clone(target)}
    copied_bytes = 0
    for operation in operations:
        try:
            copied_bytes += _operate(document, operation, _COPIED_MAX - copied_bytes)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise PatchRefused(
                f"the server rejected our request due to an error in our request: {operation}"
            ) from error
    return document[""]


def _operate(document: dict[str, Any], operation: dict[str, Any], copies_max: int) -> int:
    """Apply one operation; return the number of bytes that it copied."""
    path = _steps(operation["path"])
    match operation["op"]:
        case "add":
            _add(document, path, clone(operation["value"]))
        case "remove":
            _remove(document, path)
        case "replace":
            _remove(document, path)
            _add(document, path, clone(operation["value"]))
        case "move":
            value = _remove(document, _steps(operation["from"]))
            _add(document, path, value)
        case "copy":
            value = _at(document, _steps(operation["from"]))
            size_bytes = len(encode(value))
            if size_bytes > copies_max:
                raise ValueError(f"copies more than {_COPIED_MAX} bytes in all")
            _add(document, path, clone(value))
            return size_bytes
        case "test":
            if _at(document, path) != operation["value"]:
                raise ValueError("test failed")
        case other:
            raise ValueError(f"unknown operation {other}")
    return 0


def _steps(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError("a JSON pointer starts with '/'")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _at(document: Any, steps: list[str]) -> Any:
    for step in steps:
        document = (
            document[_index(document, step)] if isinstance(document, list) else document[step]
        )
    return document


def _index(items: list[Any], step: str) -> int:
    if not step.isdigit() or (len(step) > 1 and step[0] == "0"):
        raise ValueError(f"{step} is not a list index")
    if int(step) >= len(items):
        raise IndexError(step)
    return int(step)


def _add(document: Any, steps: list[str], value: Any) -> None:
    holder, last = _at(document, steps[:-1]), steps[-1]
    if isinstance(holder, list):
        at = len(holder) if last in {"-", str(len(holder))} else _index(holder, last)
        holder.insert(at, value)
    else:
        holder[last] = value


def _remove(document: Any, steps: list[str]) -> Any:
    holder, last = _at(document, steps[:-1]), steps[-1]
    return holder.pop(_index(holder, last) if isinstance(holder, list) else last)


_DIRECTIVE = "$patch"
_DELETE_ITEMS = "$deleteFromPrimitiveList/"


def strategic_merge(target: Any, patch: Any, schema: Schema | None) -> Any:
    """
    Apply a strategic merge patch, with list keys from the schema.

    Raises:
        BadRequest: A list item of the patch lacks its key, or an unknown directive.
    """
    if not isinstance(patch, dict):
        return clone(patch)
    if patch.get(_DIRECTIVE) == "replace":
        return {k: clone(v) for k, v in patch.items() if k != _DIRECTIVE}
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith(_DELETE_ITEMS):
            field = name.removeprefix(_DELETE_ITEMS)
            merged[field] = [item for item in merged.get(field) or () if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge_field(merged.get(name), value, _schema_of(schema, name))
    return merged


def _schema_of(schema: Schema | None, name: str) -> Schema | None:
    declared = (schema or {}).get("properties") or {}
    field_schema = declared.get(name, (schema or {}).get("additionalProperties"))
    return field_schema if isinstance(field_schema, Mapping) else None


def _merge_field(old: Any, value: Any, schema: Schema | None) -> Any:
    if not isinstance(value, list) or not isinstance(old, list):
        return strategic_merge(old, _plain_items(value), schema)
    list_type = (schema or {}).get("x-kubernetes-list-type")
    if list_type == "set":
        return old + [item for item in value if item not in old]
    if list_type == "map" and schema is not None:
        return _merge_items(old, value, schema)
    return clone(value)


def _plain_items(value: Any) -> Any:
    """Drop directives from a list that has nothing to be merged with."""
    if not isinstance(value, list):
        return value
    return [i for i in value if not (isinstance(i, dict) and _DIRECTIVE in i)]


def _merge_items(old: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if any(item == {_DIRECTIVE: "replace"} for item in patch):
        return _plain_items(patch)  # type: ignore[no-any-return]  # a list in, a list out
    merged = {_identity(item, keys): item for item in old}
    for item in patch:
        identity = _identity(item, keys)
        if item.get(_DIRECTIVE) == "delete":
            merged.pop(identity, None)
        else:
            merged[identity] = strategic_merge(merged.get(identity), item, schema.get("items"))
    return list(merged.values())


def _identity(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(item, dict) or not all(key in item for key in keys):
        raise BadRequest(f"map: {item} does not contain declared merge key: {', '.join(keys)}")
    return tuple(item[key] for key in keys)
