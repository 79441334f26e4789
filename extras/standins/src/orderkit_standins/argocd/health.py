"""
The health of an Application: the worst of its objects, with Argo CD's exceptions.

An object marked ``ignore-healthcheck``, the Application itself and children whose health is
Missing or Unknown do not count. It is Missing if none of its objects exists, as since Argo CD 3.4;
an object that is being deleted is Progressing, whatever its kind. As since Argo CD 3.6
the message names the objects that cause it; they themselves say why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ground.argocd.health import MISSING, Health, HealthStatus, health_of, worst
from ground.objects.kube_objects import APPLICATION, Kind, Manifest, ObjectKey, annotations_of
from orderkit_standins.argocd.compare import ComparedResource
from orderkit_standins.argocd.spec import is_deleting

_CAUSES_SHOWN = 3
IGNORE_HEALTH = "argocd.argoproj.io/ignore-healthcheck"

_LEAVING = Health(HealthStatus.PROGRESSING, "Pending deletion")

IsComposite = Callable[[Kind], bool]
"""Says whether an XRD defines a kind; then an object without status is not healthy yet."""


def live_health(live: Manifest, is_composite: IsComposite) -> Health | None:
    """Return the health of a live object; None if it stays and its kind has no check."""
    if is_deleting(live):
        return _LEAVING
    return _checked(live, is_composite)


def _checked(manifest: Manifest, is_composite: IsComposite) -> Health | None:
    verdict = health_of(manifest)
    if verdict is None and is_composite(Kind.of(manifest)):
        return health_of(manifest, composite=True)
    return verdict


def application_health(
    app: ObjectKey, resources: Sequence[ComparedResource], is_composite: IsComposite
) -> Health:
    """Return the Application's own health, and which objects cause it."""
    if resources and all(resource.live is None for resource in resources):
        return MISSING
    verdicts = list(_verdicts(app, resources, is_composite))
    status = worst(verdict for _, verdict in verdicts).status
    causes = [key for key, verdict in verdicts if verdict.status is status]
    return Health(status, "" if status is HealthStatus.HEALTHY else _caused_by(causes))


def _caused_by(causes: Sequence[ObjectKey]) -> str:
    shown = ", ".join(
        f"{f'{key.kind.group}/' if key.kind.group else ''}{key.kind.kind}:"
        f"{f'{key.namespace}/' if key.namespace else ''}{key.name}"
        for key in causes[:_CAUSES_SHOWN]
    )
    rest = len(causes) - _CAUSES_SHOWN
    return f"Caused by {shown}" + (f" and {rest} more" if rest > 0 else "")


def _verdicts(
    app: ObjectKey, resources: Iterable[ComparedResource], is_composite: IsComposite
) -> Iterator[tuple[ObjectKey, Health]]:
    for resource in resources:
        if (
            resource.live is None
            or resource.key == app
            or annotations_of(resource.live).get(IGNORE_HEALTH) == "true"
        ):
            continue
        verdict = live_health(resource.live, is_composite)
        if verdict is not None and not _is_silent_child(resource.key, verdict):
            yield resource.key, verdict


def _is_silent_child(key: ObjectKey, verdict: Health) -> bool:
    silent = (HealthStatus.MISSING, HealthStatus.UNKNOWN)
    is_application = (key.kind.group, key.kind.kind) == (APPLICATION.group, APPLICATION.kind)
    return is_application and verdict.status in silent
