"""
The health of an Application: the worst of its objects, with Argo CD's exceptions.

An object marked ``ignore-healthcheck``, the Application itself and children whose health is
Missing or Unknown do not count. A wanted object that is not there makes it Missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from orderkit.adapters.embedded.delivery.compare import Resource
from orderkit.core.health import MISSING, Health, HealthStatus, health_of, worst
from orderkit.core.objects import APPLICATION, Kind, Manifest, ObjectKey, annotations_of

IGNORE_HEALTH = "argocd.argoproj.io/ignore-healthcheck"

IsComposite = Callable[[Kind], bool]
"""Says whether an XRD defines a kind; then an object without status is not healthy yet."""


def live_health(live: Manifest, is_composite: IsComposite) -> Health | None:
    """Judge one live object; None when its kind has no check."""
    verdict = health_of(live)
    if verdict is None and is_composite(Kind.of(live)):
        return health_of(live, composite=True)
    return verdict


def application_health(
    app: ObjectKey, resources: Iterable[Resource], is_composite: IsComposite
) -> Health:
    """Return the Application's own health; the message names the object that spoils it."""
    return worst(_verdicts(app, resources, is_composite))


def _verdicts(
    app: ObjectKey, resources: Iterable[Resource], is_composite: IsComposite
) -> Iterator[Health]:
    for one in resources:
        if one.live is None:
            yield MISSING
            continue
        if one.key == app or annotations_of(one.live).get(IGNORE_HEALTH) == "true":
            continue
        verdict = live_health(one.live, is_composite)
        if verdict is None or _is_silent_child(one.key, verdict):
            continue
        name = f"{one.key.kind.kind}/{one.key.name}"
        yield Health(verdict.status, f"{name}: {verdict.message}" if verdict.message else name)


def _is_silent_child(key: ObjectKey, verdict: Health) -> bool:
    silent = (HealthStatus.MISSING, HealthStatus.UNKNOWN)
    is_application = (key.kind.group, key.kind.kind) == (APPLICATION.group, APPLICATION.kind)
    return is_application and verdict.status in silent
