"""
Turn a Composition of mode Resources, which Crossplane 2 removed, into a pipeline.

Does what ``crossplane beta convert pipeline-composition`` of Crossplane 1.20 does, and fills in the
defaults that the API server once filled in and that nobody applies to a function's input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compositions.function_twins import patch_input
from compositions.function_twins.function_inputs import without_unknown
from compositions.station import OpaqueError
from ground.errors import RefusedError
from ground.objects.kube_objects import Manifest, dig, metadata
from ground.objects.values import copied

PATCHING, ENVIRONMENT = "function-patch-and-transform", "function-environment-configs"
_KEPT = ("compositeTypeRef", "writeConnectionSecretsToNamespace")
_MOVED = ("mode", "resources", "patchSets", "environment")
_MERGE_POLICIES = {
    (False, False): "ForceMergeObjects",
    (False, True): "ForceMergeObjectsAppendArrays",
    (True, False): "MergeObjects",
    (True, True): "MergeObjectsAppendArrays",
}
"""By ``keepMapValues`` and ``appendSlice`` of the removed ``mergeOptions``."""
_MATH = (("clampMin", "ClampMin"), ("clampMax", "ClampMax"), ("multiply", "Multiply"))
_STRING = (("fmt", "Format"), ("convert", "Convert"), ("regexp", "Regexp"))
_DETAILS = (
    ("value", "FromValue"),
    ("fromFieldPath", "FromFieldPath"),
    ("fromConnectionSecretKey", "FromConnectionSecretKey"),
)


@dataclass(frozen=True, slots=True)
class Conversion:
    """A Composition with a pipeline, and what a person should know about it."""

    manifest: Manifest
    notes: tuple[str, ...]


def is_legacy_mode(composition: Manifest) -> bool:
    """Return whether a Composition has resources of its own instead of a pipeline."""
    mode = dig(composition, "spec", "mode", default=None) or "Resources"
    return mode == "Resources" and not dig(composition, "spec", "pipeline", default=None)


def converted(composition: Manifest) -> Conversion:
    """
    Return a Composition of mode Resources as a pipeline. The argument is not changed.

    Raises:
        RefusedError: It has parts that no pipeline of these functions can do, or the function would
            refuse them.
    """
    spec: dict[str, Any] = copied(composition.get("spec") or {})
    if spec.get("functions"):
        raise _refused(composition, "spec.functions: container functions were removed long ago")
    notes: list[str] = []
    patch_input_data = _patch_input(spec, notes)
    # the API server used to prune these; the function refuses fields that it does not know
    data, unknown = without_unknown(patch_input_data, patch_input.SHAPE)
    notes += [f"input.{path} was removed: the function does not know it" for path in unknown]
    notes += [
        f"spec.{key} was removed: Crossplane 2 has no such field"
        for key in spec
        if key not in (*_KEPT, *_MOVED)
    ]
    try:
        why = patch_input.refusal(data)
    except OpaqueError as error:
        why = str(error)
    if why:
        raise _refused(composition, why)
    # no function-auto-ready: this function judges readiness as the mode Resources did, and
    # auto-ready would call a resource ready whose own checks fail
    pipeline = [*_environment_steps(spec, notes), _step("patch-and-transform", PATCHING, data)]
    kept = {key: spec[key] for key in _KEPT if key in spec}
    return Conversion(
        {**composition, "spec": {**kept, "mode": "Pipeline", "pipeline": pipeline}}, tuple(notes)
    )


def _refused(composition: Manifest, why: str) -> RefusedError:
    return RefusedError(
        f"Composition {metadata(composition).get('name')} cannot be converted: {why}",
        hint="correct the Composition, or write its pipeline by hand",
    )


def move_resources(tree: Any) -> None:
    """Move the parts of a commented document to where `converted` has them."""
    spec = tree["spec"]
    data = {key: spec.pop(key) for key in ("patchSets", "resources") if key in spec}
    steps = [_step("patch-and-transform", PATCHING, data)]
    environment = spec.pop("environment", None) or {}
    if set(environment) - {"patches"}:
        steps.insert(0, _step("environment-configs", ENVIRONMENT, {}))
    spec["pipeline"] = steps


def _step(name: str, function: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"step": name, "functionRef": {"name": function}, "input": data}


def _environment_steps(spec: Mapping[str, Any], notes: list[str]) -> Iterator[dict[str, Any]]:
    environment = spec.get("environment") or {}
    settings = {
        key: environment[key]
        for key in ("defaultData", "environmentConfigs")
        if environment.get(key)
    }
    resolution = dig(environment, "policy", "resolution", default=None)
    settings |= {"policy": {"resolution": resolution}} if resolution else {}
    if settings:
        notes.append("its EnvironmentConfigs are read as v1beta1 now: rewrite those of v1alpha1")
        header = {"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input"}
        yield _step("environment-configs", ENVIRONMENT, {**header, "spec": settings})


def _patch_input(spec: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    data: dict[str, Any] = {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources"}
    patches = dig(spec, "environment", "patches", default=None)
    if patches:
        data["environment"] = {"patches": [_patch(patch) for patch in patches]}
    if spec.get("patchSets"):
        data["patchSets"] = [
            {**entry, "patches": [_patch(patch) for patch in entry.get("patches") or ()]}
            for entry in spec["patchSets"]
        ]
    resources = [_resource(entry, n) for n, entry in enumerate(spec.get("resources") or ())]
    data["resources"] = resources
    unnamed = [
        new["name"]
        for new, old in zip(resources, spec.get("resources") or (), strict=True)
        if not old.get("name")
    ]
    if unnamed:
        notes.append(
            f"resources without a name are called {', '.join(unnamed)}: where XRs of it live, "
            "annotate their resources with these names (crossplane.io/composition-resource-name) "
            "first, or Crossplane composes them a second time"
        )
    notes += [
        f"resource {resource['name']}: the function never finds an integer for a check "
        "MatchInteger; check a text or a condition"
        for resource in resources
        for check in resource.get("readinessChecks") or ()
        if check.get("type") == "MatchInteger"
    ]
    return data


def _resource(resource: Mapping[str, Any], number: int) -> dict[str, Any]:
    changed = {"name": f"resource-{number}", **resource}
    changed["name"] = changed["name"] or f"resource-{number}"
    for key, convert in (
        ("patches", _patch),
        ("connectionDetails", _connection_detail),
        ("readinessChecks", _readiness_check),
    ):
        if resource.get(key):
            changed[key] = [convert(entry) for entry in resource[key]]
    return changed


def _patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    changed = {"type": patch.get("type") or patch_input.FROM_COMPOSITE, **patch}
    if patch.get("transforms"):
        changed["transforms"] = [_transform(entry) for entry in patch["transforms"]]
    policy = dict(patch.get("policy") or {})
    options = policy.pop("mergeOptions", None)
    if options is not None:
        keeps, appends = (bool(options.get(key)) for key in ("keepMapValues", "appendSlice"))
        policy["toFieldPath"] = _MERGE_POLICIES[keeps, appends]
    if policy:
        changed["policy"] = policy
    else:
        changed.pop("policy", None)
    return changed


def _transform(transform: Mapping[str, Any]) -> dict[str, Any]:
    kinds = ("math", "map", "match", "string", "convert")
    kind = transform.get("type") or next((key for key in kinds if key in transform), "")
    changed = {"type": kind, **transform}
    settings = transform.get(kind)
    if kind in {"math", "string"} and isinstance(settings, Mapping) and not settings.get("type"):
        table, default = (_MATH, "Multiply") if kind == "math" else (_STRING, "Format")
        changed[kind] = {"type": _first_present(settings, table, default), **settings}
    return changed


def _first_present(
    settings: Mapping[str, Any], table: tuple[tuple[str, str], ...], default: str
) -> str:
    return next((name for key, name in table if settings.get(key) is not None), default)


def _connection_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(detail)
    kind = changed.setdefault("type", _first_present(detail, _DETAILS, ""))
    if kind == "FromConnectionSecretKey" and not changed.get("name"):
        changed["name"] = detail.get("fromConnectionSecretKey")
    return changed


def _readiness_check(check: Mapping[str, Any]) -> dict[str, Any]:
    if check.get("type") != "MatchCondition":
        return dict(check)
    condition = {"type": "Ready", "status": "True", **(check.get("matchCondition") or {})}
    return {**check, "matchCondition": condition}
