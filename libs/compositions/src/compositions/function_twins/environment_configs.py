"""
A twin of function-environment-configs: merge EnvironmentConfigs into the environment.

Follows v0.7.1 (June 2026).

Refused by name: configs with different ``toFieldPath`` that overlap, which the function merges in
random order, and orders that Go's sort leaves undefined. Where the function crashes (a reference
without ``ref``, a matcher without its value), the step ends fatally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compositions.function_twins import environment, field_paths
from compositions.function_twins.field_paths import PathError, quoted
from compositions.function_twins.function_inputs import (
    HEADER,
    SELECTOR,
    ListOf,
    OptionalFields,
    ResourceSelectionError,
    labels_of_matchers,
    misshapen,
    selected,
)
from compositions.station import OpaqueError, Selector, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest, metadata
from ground.objects.values import overlaid

API_VERSION, KIND = "apiextensions.crossplane.io/v1beta1", "EnvironmentConfig"

Source = Mapping[str, Any]
_INPUT = OptionalFields(
    {
        **HEADER,
        "spec": OptionalFields(
            {
                "defaultData": "object",
                "environmentConfigs": ListOf(
                    OptionalFields(
                        {
                            "type": "text",
                            "ref": OptionalFields({"name": "text"}),
                            "selector": SELECTOR,
                            "toFieldPath": "text",
                        }
                    )
                ),
                "policy": OptionalFields({"resolution": "text"}),
            }
        ),
    }
)


def environment_configs(request: StationRequest) -> StationResponse:
    """
    Require the configs, then merge them into the environment.

    Raises:
        OpaqueError: The result of the real function is not deterministic.
    """
    response = StationResponse.to(request)
    wrong = misshapen(request.input, _INPUT)
    if wrong:
        response.fatal(f"cannot get Function input from *v1.RunFunctionRequest: {wrong}")
        return response
    spec = request.input.get("spec") or {}
    # nothing is written then, not even the defaults
    if spec.get("environmentConfigs") is None:
        return response
    try:
        response.requirements = dict(_requirements(spec, request.xr))
    except ResourceSelectionError as error:
        response.fatal(f"cannot build requirements: {error}")
        return response
    # The first call only declares the requirements; Crossplane calls again with the objects.
    if not request.required:
        return response
    try:
        data = _merged(spec, request)
    except ResourceSelectionError as error:
        response.fatal(str(error))
        return response
    response.context = {**response.context, environment.KEY: data}
    return response


def _sources(spec: Source) -> Iterator[tuple[str, str, Source]]:
    for number, source in enumerate(spec["environmentConfigs"]):
        settings = source or {}
        yield f"environment-config-{number}", settings.get("type") or "Reference", settings


def _requirements(spec: Source, xr: Manifest) -> Iterator[tuple[str, Selector]]:
    for name, kind, source in _sources(spec):
        if kind == "Reference":
            if source.get("ref") is None:
                raise ResourceSelectionError(f"{name} is a Reference without ref")
            yield name, Selector(API_VERSION, KIND, source["ref"].get("name") or "")
        elif kind == "Selector":
            if source.get("selector") is None:
                raise ResourceSelectionError(f"{name} is a Selector without selector")
            labels = labels_of_matchers(source["selector"].get("matchLabels") or (), xr)
            if labels:
                yield name, Selector(API_VERSION, KIND, labels=labels)


def _merged(spec: Source, request: StationRequest) -> dict[str, Any]:
    objects_by_path: dict[str, list[Manifest]] = {}
    for name, kind, source in _sources(spec):
        if name not in request.required or kind not in {"Reference", "Selector"}:
            continue
        objects = request.required[name]
        try:
            matching = _referred(spec, source, objects) if kind == "Reference" else _selected(
                source["selector"], objects
            )  # fmt: skip
        except ResourceSelectionError as error:
            prefix = "cannot get selected environment configs: cannot process environment config"
            reference = (
                f"{quoted(source['ref']['name'])} by reference, " if kind == "Reference" else ""
            )
            how = "" if reference else " by selector"
            raise ResourceSelectionError(
                f"{prefix} {reference}{quoted(name)}{how}: {error}"
            ) from error
        objects_by_path.setdefault(source.get("toFieldPath") or "", []).extend(matching)
    data = _merged_by_path(objects_by_path)
    # configs override the environment, which overrides the defaults: a comment in the function says
    # otherwise, but its code decides (v0.7.1)
    context_data = request.context.get(environment.KEY)
    if isinstance(context_data, dict):
        data = overlaid(context_data, data)
    data = overlaid(spec.get("defaultData") or {}, data)
    return environment.as_object(data)


def _referred(spec: Source, source: Source, objects: tuple[Manifest, ...]) -> list[Manifest]:
    name = quoted(source["ref"]["name"])
    if not objects:
        if (spec.get("policy") or {}).get("resolution") == "Optional":
            return []
        raise ResourceSelectionError(f"Required environment config {name} not found")
    if len(objects) > 1:
        message = f"expected exactly one required resource {name}, got {len(objects)}"
        raise ResourceSelectionError(message)
    return list(objects)


def _selected(selector: Source, objects: tuple[Manifest, ...]) -> list[Manifest]:
    mode = selector.get("mode") or "Single"
    if mode == "Single":
        if len(objects) != 1:
            message = f"expected exactly one required resource, got {len(objects)}"
            raise ResourceSelectionError(message)
        return list(objects)
    if mode != "Multiple":
        raise ResourceSelectionError(f"unknown selector mode {quoted(mode)}")
    return list(selected(objects, selector, "required resources"))


def _merged_by_path(objects_by_path: Mapping[str, list[Manifest]]) -> dict[str, Any]:
    """Merge the configs for each path, then the paths. Refuse if the order would matter."""
    places = [_data_at(path, objects) for path, objects in objects_by_path.items()]
    merged: dict[str, Any] = {}
    backwards: dict[str, Any] = {}
    for data in places:
        merged = overlaid(merged, data)
    for data in reversed(places):
        backwards = overlaid(backwards, data)
    if merged != backwards:
        raise OpaqueError("environmentConfigs whose toFieldPath overlap: their order is random")
    return merged


def _data_at(path: str, objects: list[Manifest]) -> dict[str, Any]:
    placed_data: dict[str, Any] = {}
    for manifest in objects:
        name = metadata(manifest).get("name") or ""
        data: dict[str, Any] = {}
        if path:
            try:
                field_paths.put(data, path, manifest.get("data"))
            except PathError as error:
                message = f"cannot get data from environment config {name} into path {quoted(path)}"
                raise ResourceSelectionError(f"cannot merge environment data: {message}") from error
        elif isinstance(manifest.get("data"), dict):
            data = manifest["data"]
        elif "data" not in manifest:
            message = f"cannot get data from environment config {quoted(name)}: data: no such field"
            raise ResourceSelectionError(f"cannot merge environment data: {message}")
        placed_data = overlaid(placed_data, data)
    return placed_data
