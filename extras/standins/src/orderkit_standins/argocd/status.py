"""
What an Application says of itself: its health, its status, and the smallest patch to it.

Health is the worst of its objects, with Argo CD's exceptions. An object marked
``ignore-healthcheck``, the Application itself and children whose health is Missing or Unknown do
not count. It is Missing if none of its objects exists, as since Argo CD 3.4; an object that is
being deleted is Progressing, whatever its kind. As since Argo CD 3.6 the message names the objects
that cause it; they themselves say why.

Status is pure: manifests in, dicts out. Everything delivery knows of an Application across a
restart is in it; there is no other memory. Times are RFC 3339 with seconds, as in Kubernetes; only
the end of an operation has milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ground.argocd.health import MISSING, Health, HealthStatus, health_of, worst
from ground.argocd.sync_rules import wave_of
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
)
from orderkit_standins.argocd.compare import (
    ApplicationCondition,
    ComparedResource,
    Comparison,
    SyncCode,
)
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


Status = dict[str, Any]


def stamp(now: datetime) -> str:
    """Write a time as Kubernetes does."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def precise_stamp(now: datetime) -> str:
    """Write a time with milliseconds, where delays below a second are counted from it."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_stamp(text: object) -> datetime | None:
    """Read a Kubernetes time; None if there is none or it is malformed."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def status_of(app: Manifest) -> Status:
    """Return a copy of the status whose entries may be replaced (what is in them is shared)."""
    return dict(dig(app, "status", default={}) or {})


def compared(
    app: Manifest,
    comparison: Comparison,
    health: Health,
    extra: Iterable[ApplicationCondition],
    now: datetime,
) -> Status:
    """Return the status after a comparison; the operation in it is left as it is."""
    status = status_of(app)
    status["sync"] = {
        "status": comparison.status,
        "revision": comparison.revision,
        "comparedTo": {
            "source": dig(app, "spec", "source", default={}),
            "destination": dig(app, "spec", "destination", default={}),
        },
    }
    status["health"] = _health(status, health.status, health.message, now)
    status["resources"] = [_resource(resource) for resource in comparison.resources]
    status["conditions"] = _conditions(status, [*comparison.conditions, *extra], now)
    status["sourceType"] = "Directory"
    status["resourceHealthSource"] = "appTree"
    status["controllerNamespace"] = ARGOCD_NAMESPACE
    return status


def invalid(app: Manifest, condition: ApplicationCondition, now: datetime) -> Status:
    """Return the status of an Application whose spec is wrong; what it delivered stays listed."""
    status = status_of(app)
    status["sync"] = {**dig(status, "sync", default={}), "status": "Unknown"}
    status["health"] = _health(status, HealthStatus.UNKNOWN, "", now)
    status["conditions"] = _conditions(status, [condition], now)
    return status


def listed(app: Manifest) -> Iterator[ObjectKey]:
    """Yield the objects that the status names: compared last, or touched by the last operation."""
    status = dig(app, "status", default={})
    results = dig(status, "operationState", "syncResult", "resources", default=()) or ()
    for entry in (*(dig(status, "resources", default=()) or ()), *results):
        if entry.get("kind") and entry.get("name"):
            kind = Kind(entry.get("group", ""), entry.get("version", ""), entry["kind"])
            yield ObjectKey(kind, entry["name"], entry.get("namespace", ""))


def merge_patch(old: object, new: object) -> Any:
    """Return the RFC 7386 patch from `old` to `new`; empty when they are equal."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            patch[key] = merge_patch(old[key], value)
    return patch


def _health(status: Status, code: HealthStatus, message: str, now: datetime) -> Status:
    before = dig(status, "health", default={})
    changed = before.get("status") != code.value
    since = stamp(now) if changed else before.get("lastTransitionTime", stamp(now))
    entry = {"status": code.value, "lastTransitionTime": since}
    return {**entry, "message": message} if message else entry


def _resource(resource: ComparedResource) -> Status:
    key = resource.key
    status: SyncCode = resource.status
    entry: Status = {
        "version": key.kind.version,
        "kind": key.kind.kind,
        "name": key.name,
    }
    if status:
        entry["status"] = status
    if key.kind.group:
        entry["group"] = key.kind.group
    if key.namespace:
        entry["namespace"] = key.namespace
    wave = wave_of(resource.target) if resource.target else 0
    if wave:
        entry["syncWave"] = wave
    if resource.needs_pruning:
        entry["requiresPruning"] = True
    return entry


def _conditions(
    status: Status, conditions: Sequence[ApplicationCondition], now: datetime
) -> list[Status]:
    """Keep the time of a condition that says what it said before."""
    before = {
        (condition.get("type"), condition.get("message")): condition.get("lastTransitionTime")
        for condition in dig(status, "conditions", default=()) or ()
    }
    unique = sorted({(condition.type, condition.message) for condition in conditions})
    return [
        {
            "type": type_,
            "message": message,
            "lastTransitionTime": before.get((type_, message)) or stamp(now),
        }
        for type_, message in unique
    ]
