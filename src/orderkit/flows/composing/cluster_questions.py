"""
The cluster reads that a plan needs, and their order.

Answered by a cluster, by a recorded snapshot, or by a cluster's objects read in bulk. Called
by the flows that plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from compositions.composed import RESOURCE_NAME_ANNOTATION, composed_keys
from compositions.composition_choice import with_stored_choice
from compositions.generated_passwords import SEED_SELECTOR, STAND_IN_SEED
from compositions.python_functions import NOT_RUN_HERE
from compositions.simulation import lookup_in
from compositions.station import Selector
from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    FUNCTION,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    condition,
    controller,
    labels_of,
    metadata,
)
from orderkit.core.plan.object_texts import selector_text
from orderkit.ports.cluster import NoSuchKindError, ObjectList

NOT_ASKED = "the cluster was not asked: nothing that exists is taken into account"


class Lookup(Protocol):
    """The methods of ``ports.cluster.Cluster`` that a plan needs; the same contract applies."""

    def get(self, key: ObjectKey) -> Manifest | None: ...

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList: ...

    def plural(self, kind: Kind) -> str | None: ...

    def serves(self, kind: Kind) -> bool: ...

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None: ...


def get(cluster: Lookup | None, key: ObjectKey) -> Manifest | None:
    """Return an object; None also while its kind is not served."""
    try:
        return cluster.get(key) if cluster is not None else None
    except NoSuchKindError:
        return None


def living(cluster: Lookup | None, xr: Manifest) -> tuple[Manifest | None, tuple[str, ...]]:
    """Return the XR in the cluster, and what remains unknown if there is none."""
    if cluster is None:
        return None, (NOT_ASKED,)
    try:
        manifest = get(cluster, ObjectKey.of(xr))
    except OrderkitError as error:
        return None, (f"the cluster could not be asked: {error}",)
    if manifest is None:
        return None, ("the cluster does not have this order yet",)
    return manifest, ()


def not_run_there(cluster: Lookup | None, functions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the functions of which the cluster says that it does not run them, and why."""
    for name in sorted(functions):
        with suppress(OrderkitError):  # then nothing is known of it
            function = get(cluster, ObjectKey(FUNCTION, name))
            health = condition(function or {}, "Healthy") or {}
            if health.get("reason") == NOT_RUN_HERE:
                yield name, str(health.get("message", ""))


def observed_of(
    cluster: Lookup | None, xr: Manifest, is_xr: Callable[[Manifest], bool], above: str = ""
) -> Iterator[tuple[str, Manifest]]:
    """Yield what an XR of the cluster composes there, by path, nested XRs followed."""
    for key in composed_keys(xr):
        manifest = get(cluster, key)
        name = annotations_of(manifest or {}).get(RESOURCE_NAME_ANNOTATION)
        if manifest is None or not name or "/" in name or _is_foreign(manifest, xr):
            continue
        yield f"{above}{name}", manifest
        if is_xr(manifest):
            yield from observed_of(cluster, manifest, is_xr, f"{above}{name}/")


def _is_foreign(part: Manifest, xr: Manifest) -> bool:
    """Say whether something else owns an object that an XR refers to: Crossplane ignores it."""
    owner, uid = controller(part), metadata(xr).get("uid")
    return bool(owner and uid and owner.get("uid") != uid)


def looked_up(cluster: Lookup | None, selector: Selector) -> list[Manifest]:
    """
    Return the objects that a station's selector matches.

    The platform's seed of passwords is never read: what follows from it is masked, so any will do.
    """
    if selector == SEED_SELECTOR:
        return [STAND_IN_SEED]
    kind = Kind.parse(selector.api_version, selector.kind)
    if selector.name:
        manifest = get(cluster, ObjectKey(kind, selector.name, selector.namespace or ""))
        return [manifest] if manifest is not None else []
    try:
        objects = cluster.list(kind, namespace=selector.namespace) if cluster is not None else None
    except NoSuchKindError:
        return []
    return list(lookup_in(objects.items)(selector)) if objects is not None else []


def as_living(
    xr: Manifest,
    root: Manifest | None,
    xrd: Manifest | None = None,
    *,
    applied: Manifest | None = None,
) -> Manifest:
    """
    Return an XR of Git as the object it is in the cluster: same uid, same status.

    Args:
        xrd: With it, also with the Composition and revision that Crossplane has chosen.
        applied: The XR that Git had before.
    """
    if root is None:
        return xr
    if xrd:
        xr = with_stored_choice(xr, root, xrd, applied=applied)
    kept = {key: value for key, value in metadata(root).items() if key in {"uid", "generation"}}
    labels = {**labels_of(root), **labels_of(xr)}
    meta: dict[str, Any] = {**metadata(xr), **kept, "labels": labels}
    living_xr = {**xr, "metadata": meta}
    return {**living_xr, "status": root["status"]} if root.get("status") else living_xr


class AnsweredQuestions:
    """Looks up what stations require, each object once. A station must not see a failure."""

    def __init__(self, cluster: Lookup | None) -> None:
        self._place = cluster
        self._found: dict[str, list[Manifest]] = {}
        self._error: OrderkitError | None = None

    @property
    def objects(self) -> list[Manifest]:
        """All objects that were looked up."""
        return [manifest for manifests in self._found.values() for manifest in manifests]

    def look(self, selector: Selector) -> list[Manifest]:
        name = selector_text(selector)
        if name not in self._found and self._error is None:
            try:
                self._found[name] = looked_up(self._place, selector)
            except OrderkitError as error:
                self._error = error
        return self._found.get(name, [])

    def check(self) -> None:
        """Raise the error of a failed look-up."""
        if self._error is not None:
            raise self._error
