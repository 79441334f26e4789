"""
Patches of function-patch-and-transform: source, transforms, target.

Follows v0.10.8. Sources are observed objects; targets are desired objects and the environment. A
target goes through JSON after each patch, so its whole numbers become integers, as in the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compositions.function_twins import field_paths, patch_input
from compositions.function_twins.field_paths import POLICIES, Merge, PathError, merge_at
from compositions.function_twins.go_values import JSONError, from_json, sprintf
from compositions.function_twins.transforms import TransformError, transformed

Patch = Mapping[str, Any]
Data = dict[str, Any]


class PatchError(Exception):
    """A patch that fails its step; the message is the function's."""


@dataclass(slots=True)
class Objects:
    """What the patches of one resource template read and write."""

    observed_xr: Data
    desired_xr: Data
    environment: Data
    observed: Data | None = None
    """The composed resource, if it exists."""
    desired: Data | None = None


_TO_COMPOSED = {
    patch_input.FROM_COMPOSITE: "observed_xr",
    patch_input.COMBINE_FROM_COMPOSITE: "observed_xr",
    patch_input.FROM_ENVIRONMENT: "environment",
    patch_input.COMBINE_FROM_ENVIRONMENT: "environment",
}
_FROM_COMPOSED = {
    patch_input.TO_COMPOSITE: "desired_xr",
    patch_input.COMBINE_TO_COMPOSITE: "desired_xr",
    patch_input.TO_ENVIRONMENT: "environment",
    patch_input.COMBINE_TO_ENVIRONMENT: "environment",
}
_OF_ENVIRONMENT = {
    patch_input.FROM_COMPOSITE: ("observed_xr", "environment"),
    patch_input.TO_ENVIRONMENT: ("observed_xr", "environment"),
    patch_input.COMBINE_FROM_COMPOSITE: ("observed_xr", "environment"),
    patch_input.TO_COMPOSITE: ("environment", "desired_xr"),
    patch_input.FROM_ENVIRONMENT: ("environment", "desired_xr"),
    patch_input.COMBINE_TO_COMPOSITE: ("environment", "desired_xr"),
}


def to_composed(patch: Patch) -> bool:
    """Return whether the patch writes to a composed resource rather than reading from it."""
    return patch_input.type_of(patch) in _TO_COMPOSED


def is_required(patch: Patch) -> bool:
    """Return whether the source of a patch must exist."""
    return (patch.get("policy") or {}).get("fromFieldPath") == "Required"


def patch_composed(patch: Patch, objects: Objects) -> None:
    """
    Apply a patch of a resource template. Does nothing if its source resource does not exist.

    Raises:
        NoSuchFieldError: Its source field does not exist.
        PatchError: It fails.
        OpaqueError: It uses something that is not supported here.
    """
    kind = patch_input.type_of(patch)
    if kind in _TO_COMPOSED:
        source = getattr(objects, _TO_COMPOSED[kind])
        objects.desired = patched(patch, source, objects.desired or {})
    elif objects.observed is not None and kind in _FROM_COMPOSED:
        name = _FROM_COMPOSED[kind]
        setattr(objects, name, patched(patch, objects.observed, getattr(objects, name)))


def patch_environment(patch: Patch, objects: Objects) -> None:
    """
    Apply a patch between the XR and the environment.

    Raises:
        NoSuchFieldError, PatchError, OpaqueError: As `patch_composed`.
    """
    source, target = _OF_ENVIRONMENT[patch_input.type_of(patch)]
    setattr(objects, target, patched(patch, getattr(objects, source), getattr(objects, target)))


def patched(patch: Patch, source: Data, target: Data) -> Data:
    """
    Return the patched target. The argument may be changed in the process.

    Raises:
        NoSuchFieldError: The source has no such field, or a wildcard of the target is applied to
            null.
        PatchError: Any other error of the function.
        OpaqueError: It uses something that is not supported here.
    """
    combining = patch_input.type_of(patch) in patch_input.COMBINING
    try:
        value = _combined(patch, source) if combining else _source_value(patch, source)
        _write(patch, target, value, single=combining)
    except field_paths.NoSuchFieldError:
        raise
    except (PathError, TransformError) as error:
        raise PatchError(str(error)) from error
    if not target.get("kind"):
        raise PatchError("cannot patch to object: Object 'Kind' is missing")
    # as in the function, through JSON after each patch: whole numbers become integers
    manifest: Data = from_json(target)
    return manifest


def target_of(patch: Patch) -> str:
    """Return the path that a patch writes to; by default the path it reads from."""
    path = patch.get("toFieldPath")
    return str(patch.get("fromFieldPath") or "") if path is None else str(path)


def _source_value(patch: Patch, source: Data) -> Any:
    value = transformed(
        patch.get("transforms") or (), field_paths.get(source, str(patch.get("fromFieldPath")))
    )
    try:
        return from_json(value)
    except JSONError as error:
        raise PatchError(f"cannot marshal value to JSON: {error}") from error


def _combined(patch: Patch, source: Data) -> Any:
    combine = patch["combine"]
    variables: Sequence[Patch] = combine["variables"]
    values = [field_paths.get(source, variable["fromFieldPath"]) for variable in variables]
    text = sprintf((combine["string"] or {}).get("fmt") or "", values)
    return transformed(patch.get("transforms") or (), text)


def _write(patch: Patch, target: Data, value: Any, *, single: bool) -> None:
    path, how = target_of(patch), _merge(patch)
    if "[*]" not in path or single:
        try:
            merge_at(target, path, value, how)
        except (PathError, JSONError) as error:
            raise PatchError(f"cannot patch to object: {error}") from error
        return
    paths = field_paths.expand(target, path)
    if not paths:
        raise PatchError(f"cannot expand ToFieldPath {path}")
    for expanded_path in paths:
        merge_at(target, expanded_path, value, how)


def _merge(patch: Patch) -> Merge | None:
    policy = (patch.get("policy") or {}).get("toFieldPath") or "Replace"
    if policy not in POLICIES:
        raise PatchError(f"invalid patch policy {policy}")
    return POLICIES[policy]
