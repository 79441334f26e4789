"""
What a plan asks of the place where orders live, and how the questions follow each other.

A cluster answers them, and so do a recorded snapshot and a cluster's objects read in bulk. Called
by the flows that plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from orderkit.core.crossplane.composed_metadata import RESOURCE_NAME_ANNOTATION, composed_keys
from orderkit.core.crossplane.simulation import lookup_in
from orderkit.core.crossplane.station import Selector
from orderkit.core.errors import OrderkitError
from orderkit.core.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    labels_of,
    metadata,
)
from orderkit.ports.cluster import NoSuchKindError, ObjectList

NOT_ASKED = "the cluster was not asked: nothing that exists is taken into account"


class Lookup(Protocol):
    """What of ``ports.cluster.Cluster`` a plan needs; the same words hold."""

    def get(self, key: ObjectKey) -> Manifest | None: ...

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList: ...

    def plural(self, kind: Kind) -> str | None: ...

    def serves(self, kind: Kind) -> bool: ...

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None: ...


def get(place: Lookup | None, key: ObjectKey) -> Manifest | None:
    """Return an object; None also while its kind is not served."""
    try:
        return place.get(key) if place is not None else None
    except NoSuchKindError:
        return None


def living(place: Lookup | None, xr: Manifest) -> tuple[Manifest | None, tuple[str, ...]]:
    """Return the XR as the cluster has it, and what is not known because it does not."""
    if place is None:
        return None, (NOT_ASKED,)
    try:
        found = get(place, ObjectKey.of(xr))
    except OrderkitError as error:
        return None, (f"the cluster could not be asked: {error}",)
    if found is None:
        return None, ("the cluster does not have this order yet",)
    return found, ()


def observed_of(
    place: Lookup | None, xr: Manifest, is_xr: Callable[[Manifest], bool], above: str = ""
) -> Iterator[tuple[str, Manifest]]:
    """Yield what an XR of the cluster composes there, by path, nested XRs followed."""
    for key in composed_keys(xr):
        found = get(place, key)
        name = annotations_of(found or {}).get(RESOURCE_NAME_ANNOTATION)
        if found is None or not name or "/" in name:
            continue
        yield f"{above}{name}", found
        if is_xr(found):
            yield from observed_of(place, found, is_xr, f"{above}{name}/")


def looked_up(place: Lookup | None, selector: Selector) -> list[Manifest]:
    """Return what a station that asks for this finds."""
    kind = Kind.parse(selector.api_version, selector.kind)
    if selector.name:
        found = get(place, ObjectKey(kind, selector.name, selector.namespace or ""))
        return [found] if found is not None else []
    try:
        listed = place.list(kind, namespace=selector.namespace) if place is not None else None
    except NoSuchKindError:
        return []
    return list(lookup_in(listed.items)(selector)) if listed is not None else []


def as_living(xr: Manifest, root: Manifest | None) -> Manifest:
    """Return an XR of Git as the object it is in the cluster: same uid, same status."""
    if root is None:
        return xr
    kept = {key: part for key, part in metadata(root).items() if key in {"uid", "generation"}}
    labels = {**labels_of(root), **labels_of(xr)}
    meta: dict[str, Any] = {**metadata(xr), **kept, "labels": labels}
    found = {**xr, "metadata": meta}
    return {**found, "status": root["status"]} if root.get("status") else found
