"""
What function-patch-and-transform reads from a composed resource: readiness, connection details.

Follows v0.10.8. Numbers arrive over the wire as floats, so the check MatchInteger never finds an
integer there and warns, as in the function.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from compositions.function_twins import field_paths, patch_input
from compositions.function_twins.field_paths import NoSuchFieldError, PathError
from compositions.function_twins.go_values import json_text
from compositions.function_twins.patches import PatchError, is_required, patched
from compositions.station import Ready, Resource
from ground.objects.kube_objects import dig

Data = dict[str, Any]
_SECRET_TYPE = "connection.crossplane.io/v1alpha1"  # noqa: S105 - the type of a Secret


class CheckError(Exception):
    """A readiness check that cannot be run; the message is the function's."""


def is_ready(observed: Data, checks: Sequence[Mapping[str, Any]]) -> bool:
    """
    Return whether all checks pass; without checks, whether the condition Ready is True.

    Raises:
        CheckError: A field has another type than its check expects.
    """
    if not checks:
        return _condition(observed, "Ready") == "True"
    for number, check in enumerate(checks):
        try:
            if not _holds(observed, check):
                return False
        except NoSuchFieldError:
            return False
        except PathError as error:
            raise CheckError(f"cannot run readiness check at index {number}: {error}") from error
    return True


def _holds(observed: Data, check: Mapping[str, Any]) -> bool:
    kind = check["type"]
    if kind == "None":
        return True
    if kind == "MatchCondition":
        condition_check = check["matchCondition"]
        return bool(_condition(observed, condition_check["type"]) == condition_check["status"])
    path = check["fieldPath"]
    if kind == "MatchString":
        return bool(field_paths.get_string(observed, path) == check["matchString"])
    value = field_paths.get(observed, path)
    if kind == "NonEmpty":
        return True
    if kind == "MatchInteger":
        if isinstance(value, bool) or not isinstance(value, int):
            raise PathError(f"{path}: not a (int64) number")
        return bool(value == check["matchInteger"])
    if not isinstance(value, bool):
        raise PathError(f"{path}: not a bool")
    return bool(value is (kind == "MatchTrue"))


def _condition(observed: Data, type_: str) -> str:
    """Return the status of a condition; Unknown if it is missing, empty if there is no status."""
    if "status" not in observed:
        return ""
    conditions = dig(observed, "status", "conditions", default=None) or ()
    if not isinstance(conditions, list) or not all(isinstance(entry, dict) for entry in conditions):
        return ""
    for listed_condition in conditions:
        if listed_condition.get("type") == type_:
            return str(listed_condition.get("status") or "")
    return "Unknown"


def connection_details(
    observed: Data, secret_data: Mapping[str, bytes], details: Sequence[Mapping[str, Any]]
) -> dict[str, bytes]:
    """Return the connection details for the XR. Missing values are left out."""
    published: dict[str, bytes] = {}
    for detail in details:
        kind, name = detail["type"], detail["name"]
        if kind == "FromValue":
            published[name] = detail["value"].encode()
        elif kind == "FromConnectionSecretKey":
            if detail["fromConnectionSecretKey"] in secret_data:
                published[name] = secret_data[detail["fromConnectionSecretKey"]]
        else:
            try:
                value = field_paths.get(observed, detail["fromFieldPath"])
            except PathError:
                continue
            published[name] = (value if isinstance(value, str) else json_text(value)).encode()
    return published


def keeps_details(xr: Data) -> bool:
    """Return whether Crossplane stores connection details itself, which it does for v1 XRs only."""
    try:
        field_paths.get(xr, "spec.crossplane")
    except PathError:
        return True
    return False


def connection_secret(
    xr: Data, details: Mapping[str, bytes], settings: Mapping[str, Any] | None
) -> Resource:
    """
    Return the Secret with the connection details of an XR that has none of its own.

    Raises:
        PatchError: A patch of its name fails.
        OpaqueError: A patch uses something that is not supported here.
    """
    name, namespace = _reference(xr, settings or {})
    meta = {"name": name, "namespace": namespace}
    manifest: Data = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {key: text for key, text in meta.items() if text},
        "data": {key: base64.b64encode(data).decode() for key, data in details.items()},
        "type": _SECRET_TYPE,
    }
    return Resource(manifest, Ready.TRUE)


def _reference(xr: Data, settings: Mapping[str, Any]) -> tuple[str, str]:
    reference_of_xr = dig(xr, "spec", "writeConnectionSecretToRef", default=None)
    meta = xr.get("metadata") or {}
    if isinstance(reference_of_xr, dict):
        name, namespace = reference_of_xr.get("name") or "", reference_of_xr.get("namespace") or ""
    elif settings.get("name") or settings.get("namespace"):
        name, namespace = settings.get("name") or "", settings.get("namespace") or ""
    else:
        name, namespace = f"{meta.get('name') or ''}-connection", meta.get("namespace") or ""
    reference: Data = {"apiVersion": "v1", "kind": "SecretReference", "name": name}
    return _patched_reference(xr, {**reference, "namespace": namespace}, settings)


def _patched_reference(xr: Data, reference: Data, settings: Mapping[str, Any]) -> tuple[str, str]:
    for number, patch in enumerate(settings.get("patches") or ()):
        kind = patch_input.type_of(patch)
        if kind not in {patch_input.FROM_COMPOSITE, patch_input.COMBINE_FROM_COMPOSITE}:
            raise PatchError(_secret_fault(f"unsupported patch type {kind} at index {number}"))
        try:
            reference = patched(patch, xr, reference)
        except (NoSuchFieldError, PatchError) as error:
            if kind == patch_input.FROM_COMPOSITE and not is_required(patch):
                continue
            message = f"cannot apply patch type {kind} at index {number}: {error}"
            raise PatchError(_secret_fault(message)) from error
    texts = (reference.get("name"), reference.get("namespace"))
    name, namespace = (text if isinstance(text, str) else "" for text in texts)
    return name, namespace


def _secret_fault(why: str) -> str:
    return (
        "cannot compose connection secret: cannot generate connection secret reference: "
        f"cannot apply connection secret patches: {why}"
    )
