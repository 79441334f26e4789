"""
What the cluster has of an order, for people: events about its parts, and one part.

`order_events` returns the events about an order and its parts, newest first. Argo CD and Crossplane
report there what they do and why it fails. The API server keeps events for an hour (the embedded
one: ``orderkit_standins.cluster.server_controllers``). Events about cluster-scoped objects are in
namespace ``default``, where Kubernetes puts them.

`read_part` reads one object of an order as people may see it: without what Secrets hold.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from ground.argocd.delivery_obstacles import refusals
from ground.errors import NotFoundError
from ground.objects.kube_objects import CLUSTER_SCOPED_HOME, EVENT, Kind, Manifest, ObjectKey
from ground.secrets import MASK
from ground.shapes import Answer, ObjectReference, changed
from orderkit.core.kit.model import Kit
from orderkit.core.plan.snapshot import cleaned
from orderkit.flows.order import tracing
from orderkit.flows.order.order_report import KnownReads
from orderkit.flows.platform import Platform, RepositorySnapshot, get_object
from orderkit.ports.cluster import Cluster


class OrderEvent(Answer, frozen=True):
    """One event; `at` is when it was seen last, in ISO 8601."""

    at: str
    type: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str
    count: int
    object: ObjectReference


def order_events(
    platform: Platform,
    order: str,
    ledger_files: RepositorySnapshot | None = None,
    *,
    limit: int,
) -> list[OrderEvent]:
    """
    Return the events about an order's Application, XR and composed resources.

    What refused the newest sync is among them, as an event about the Application.

    Raises:
        NotFoundError: The ledger has no such order.
    """
    trace = tracing.trace(platform, order, KnownReads(ledger_files))
    parts = {trace.root.key, *trace.parts()}
    reported = [*_refused(platform.cluster, trace.root.key), *_events(platform.cluster, parts)]
    events = sorted(reported, key=lambda event: event.at, reverse=True)
    texts = tracing.secrets_of(platform, trace.report)
    return [changed(event, message=texts.redact(event.message)) for event in events[:limit]]


def _refused(cluster: Cluster, application: ObjectKey) -> Iterator[OrderEvent]:
    """Yield what refused the newest sync, from the Application's own status."""
    live = get_object(cluster, application) or {}
    for at, reason, message, count in refusals(live):
        yield OrderEvent(at, "Warning", reason, message, count, ObjectReference.to(application))


def _events(cluster: Cluster, parts: set[ObjectKey]) -> Iterator[OrderEvent]:
    by_object = {(key.kind.group, key.kind.kind, key.namespace, key.name): key for key in parts}
    for namespace in sorted({key.namespace or CLUSTER_SCOPED_HOME for key in parts}):
        for event in cluster.list(EVENT, namespace=namespace).items:
            about = by_object.get(_about(event))
            if about is not None:
                yield _read(event, about)


def _about(event: Manifest) -> tuple[str, str, str, str]:
    involved = event.get("involvedObject") or {}
    group = Kind.parse(involved.get("apiVersion") or "", involved.get("kind") or "").group
    return (
        group,
        involved.get("kind", ""),
        involved.get("namespace") or "",
        involved.get("name", ""),
    )


def _read(event: Manifest, about: ObjectKey) -> OrderEvent:
    series = event.get("series") or {}
    at = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp", "")
    )
    return OrderEvent(
        at=at,
        type=event.get("type", ""),
        reason=event.get("reason", ""),
        message=event.get("message", ""),
        count=int(series.get("count") or event.get("count") or 1),
        object=ObjectReference.to(about),
    )


def read_part(
    platform: Platform, order: str, is_asked: Callable[[ObjectKey], bool]
) -> tuple[ObjectKey, Manifest]:
    """
    Return an order's Application, XR or composed object, masked and without the server's fields.

    Args:
        platform: The platform.
        order: The order's id.
        is_asked: Chooses among the order's own objects; nothing else can be read.

    Raises:
        NotFoundError: No such order, or it has no such object now.
    """
    trace = tracing.trace(platform, order)
    own = (trace.root.key, *trace.parts())
    key = next((key for key in own if is_asked(key)), None)
    manifest = get_object(platform.cluster, key) if key else None
    if key is None or manifest is None:
        raise NotFoundError(
            f"{order} has no such part now", hint="it may have been replaced: look at all parts"
        )
    kit = trace.report.declared if key == trace.report.xr else None
    shown = cleaned(manifest, tracing.secrets_of(platform, trace.report))
    return key, without_secret_outputs(shown, kit) if kit else shown


def without_secret_outputs(xr: Manifest, kit: Kit) -> Manifest:
    """Return a copy of the XR in which what the kit calls a secret output is masked."""
    shown = copy.deepcopy(xr)
    for output in kit.outputs:
        *parents, last = ("status", *output.path.split("."))
        place = shown
        for step in parents:
            inner = place.get(step)
            place = inner if isinstance(inner, dict) else {}
        if output.is_secret and output.path and last in place:
            place[last] = MASK
    return shown
