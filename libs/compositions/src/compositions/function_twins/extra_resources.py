"""
A twin of function-extra-resources: put objects of the cluster into the context.

Follows v0.3.0 (January 2026). Every entry becomes a list under its name ``into``; an entry without
results is left out. Fields added after that release (``spec.context.key``) are unknown here, as
they are in v0.3.0. A selector whose labels are all optional and absent is not requested; the step
then ends fatally as soon as any other entry has results, as in the real function.

Refused by name: orders that Go's sort leaves undefined. Where the function crashes (a reference
without ``ref``, a selector without ``selector``), the step ends fatally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compositions.function_twins.field_paths import quoted
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
from compositions.station import Selector, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest

KEY = "apiextensions.crossplane.io/extra-resources"

Source = Mapping[str, Any]
_INPUT = OptionalFields(
    {
        **HEADER,
        "spec": OptionalFields(
            {
                "policy": OptionalFields({"resolution": "text"}),
                "extraResources": ListOf(
                    OptionalFields(
                        {
                            "type": "text",
                            "ref": OptionalFields({"name": "text"}),
                            "selector": OptionalFields(
                                {k: v for k, v in SELECTOR.shapes.items() if k != "mode"}
                            ),
                            "kind": "text",
                            "apiVersion": "text",
                            "namespace": "text",
                            "into": "text",
                        }
                    )
                ),
            }
        ),
    }
)


def extra_resources(request: StationRequest) -> StationResponse:
    """
    Require the objects, then put them into the context.

    Raises:
        OpaqueError: Their order is undefined.
    """
    response = StationResponse.to(request)
    wrong = misshapen(request.input, _INPUT)
    if wrong:
        response.fatal(f"cannot get Function input from *v1.RunFunctionRequest: {wrong}")
        return response
    spec = request.input.get("spec") or {}
    sources: list[Source] = spec.get("extraResources") or []
    try:
        response.requirements = dict(_requirements(sources, request.xr))
    except ResourceSelectionError as error:
        response.fatal(f"could not build extra resource requirements: {error}")
        return response
    # the first call only declares the requirements; Crossplane calls again with the objects
    if not request.required:
        return response
    try:
        resources = dict(_resources_by_key(spec, sources, request))
    except ResourceSelectionError as error:
        response.fatal(f"verifying and sorting extra resources: {error}")
        return response
    response.context = {**response.context, KEY: resources}
    return response


def _kind(source: Source) -> str:
    return source.get("type") or "Reference"


def _requirements(sources: list[Source], xr: Manifest) -> Iterator[tuple[str, Selector]]:
    for source in sources:
        key, home = source.get("into") or "", source.get("namespace")
        api_and_kind = source.get("apiVersion") or "", source.get("kind") or ""
        if _kind(source) == "Reference":
            if source.get("ref") is None:
                raise ResourceSelectionError(f"{quoted(key)} is a Reference without ref")
            yield key, Selector(*api_and_kind, name=source["ref"].get("name") or "", namespace=home)
        elif _kind(source) == "Selector":
            if source.get("selector") is None:
                raise ResourceSelectionError(f"{quoted(key)} is a Selector without selector")
            labels = labels_of_matchers(source["selector"].get("matchLabels") or (), xr)
            if labels:
                yield key, Selector(*api_and_kind, labels=labels, namespace=home)


def _resources_by_key(
    spec: Source, sources: list[Source], request: StationRequest
) -> Iterator[tuple[str, list[Manifest]]]:
    optional = (spec.get("policy") or {}).get("resolution") == "Optional"
    for source in sources:
        key = source.get("into") or ""
        if key not in request.required:
            raise ResourceSelectionError(f"cannot find expected extra resource {quoted(key)}")
        objects = list(request.required[key])
        if _kind(source) == "Selector":
            title = f"extra resources {quoted(key)}"
            objects = list(selected(objects, source["selector"], title))
        elif _kind(source) != "Reference":
            continue
        elif len(objects) != 1 and (objects or not optional):
            raise ResourceSelectionError(_not_one(key, len(objects)))
        if objects:
            yield key, objects


def _not_one(key: str, count: int) -> str:
    if not count:
        return f"Required extra resource {quoted(key)} not found"
    return f"expected exactly one extra resource {quoted(key)}, got {count}"
