"""
Decide whether a part of an order fails, from what providers and Kubernetes write about it.

Assembling is for what passes by itself, so an error counts at once, unless its words say that it
often passes: a reference to a sibling that is not there yet, a busy cloud. Such an error counts
after `GRACE_S`.

Sources: conditions of crossplane-runtime (Synced, reason ReconcileError) and of upjet
(LastAsyncOperation); kstatus (Stalled); Kubernetes' ReplicaFailure, ProgressDeadlineExceeded,
Failed and PodScheduled, and the reasons of waiting containers (kubelet's ``images`` and
``kuberuntime``).

`part_state` reads what the cluster says about one part of an order: its XR, or an object that it
composes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from compositions.paused import is_paused
from ground.argocd.delivery_obstacles import obstacle_of
from ground.objects.kube_objects import (
    APPLICATION,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)
from orderkit.core.order.order_state import THROTTLED, is_throttled, object_unready
from orderkit.core.order.order_view import PartState

GRACE_S = 30
"""How long an error may last that often passes by itself."""
_PASSES = re.compile(
    r"not found|cannot resolve references|no matches for kind|has been modified|already exists"
    r"|throttl|rate exceeded|too many requests|timed? ?out|deadline exceeded|connection refused"
    r"|unavailable|in progress|not ready|not yet|conflict",
    re.IGNORECASE,
)
_WAITS = re.compile(r"may not yet be ready|waiting for first consumer", re.IGNORECASE)
"""It waits for something that is being made, as long as that takes."""
LONG_AGO = "1970-01-01T00:00:00Z"
"""Since when a failure counts of which nobody says when it began."""
_TELLING = re.compile(r"^Failed|Failed$")
_REFUSED = "cannot apply composed resource "
"""How Crossplane's event begins about an object that the API server refused."""
MISSING_OBJECT = re.compile(
    r'(?P<what>(?:Cluster)?ProviderConfig\S* "[^"]+"|(?:namespaces?|secrets?|configmaps?) "[^"]+")'
    r" not found",
    re.IGNORECASE,
)
"""What a sentence says is missing that someone has to make."""
UNSYNCED = "Unsynced resources"
"""How the message of an XR begins whose composed objects the API server refused."""
_STUCK_CONTAINERS = frozenset(
    {"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"}
    | {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
    | {"CrashLoopBackOff"}
)
_NO_ERRORS = frozenset({"ReconcilePaused", "SchedulingGated"})
_FAILED_PHASES = frozenset({"Failed", "Error", "Lost"})
_BAD_WHEN: Mapping[str, str] = {
    "Synced": "False",
    "LastAsyncOperation": "False",
    "Stalled": "True",
    "ReplicaFailure": "True",
    "Failed": "True",
    "PodScheduled": "False",
}
"""By type: the status with which a condition tells of an error."""


@dataclass(frozen=True, slots=True)
class PartFailure:
    """Why a part fails; `counts_from` is when it begins to count, RFC 3339 in UTC."""

    sentence: str
    counts_from: str


def part_failure(obj: Manifest) -> PartFailure | None:
    """Return why an object fails; None if it does not, or is paused or being deleted."""
    if is_paused(obj) or metadata(obj).get("deletionTimestamp"):
        return None
    kind = Kind.of(obj)
    if (kind.group, kind.kind) == (APPLICATION.group, APPLICATION.kind):
        obstacle = obstacle_of(obj)
        failing = obstacle and obstacle.failing
        return _failure(obstacle.reason, obstacle.since) if obstacle and failing else None
    inner = dig(obj, "status", "atProvider", "manifest")  # of provider-kubernetes
    found = next(_failures(obj), None)
    if found is None and isinstance(inner, dict) and inner.get("kind"):
        return part_failure(inner)
    return found


def event_failure(events: Iterable[Manifest]) -> PartFailure | None:
    """Return why an object fails by the newest of its own events that says so."""
    told = [
        event
        for event in events
        if event.get("type") == "Warning"
        and (
            _TELLING.search(str(event.get("reason") or ""))
            or str(event.get("message") or "").startswith(_REFUSED)
        )
    ]
    if not told:
        return None
    newest = max(told, key=_seen)
    first = newest.get("firstTimestamp") or newest.get("eventTime") or ""
    message = str(newest.get("message") or newest.get("reason") or "").removeprefix(_REFUSED)
    return _failure(message, str(first))


def _seen(event: Manifest) -> str:
    times = (dig(event, "series", "lastObservedTime"), event.get("lastTimestamp"))
    return str(next(filter(None, times), event.get("eventTime") or ""))


def counts(counts_from: str, now: datetime) -> bool:
    """Say whether a failure counts by now."""
    return bool(counts_from) and seconds_until(counts_from, now) <= 0


def seconds_until(moment: str, now: datetime) -> float:
    """Return how long it is until then; negative if that has passed, or cannot be read."""
    read = _read(moment)
    return (read - now).total_seconds() if read else -1.0


def _failures(obj: Manifest) -> Iterator[PartFailure]:
    conditions = list(_entries(dig(obj, "status", "conditions")))
    yield from _of_containers(obj, conditions)
    for entry in conditions:
        type_, status, reason = (str(entry.get(key) or "") for key in ("type", "status", "reason"))
        is_late = type_ == "Progressing" and reason == "ProgressDeadlineExceeded"
        is_bad = _BAD_WHEN.get(type_) == status or is_late
        message = str(entry.get("message") or reason)
        if is_bad and message and reason not in _NO_ERRORS:
            since = str(entry.get("lastTransitionTime") or "")
            failure = _failure(message, since, may_pass=type_ == "PodScheduled")
            if failure:
                yield failure
    phase = str(dig(obj, "status", "phase") or "")
    if phase in _FAILED_PHASES and not Kind.of(obj).group:  # of other kinds it is any word
        words = (dig(obj, "status", name) for name in ("message", "reason"))
        yield PartFailure(str(next(filter(None, words), "") or f"its phase is {phase}"), LONG_AGO)


def _of_containers(obj: Manifest, conditions: list[dict[str, Any]]) -> Iterator[PartFailure]:
    """Yield why containers of a Pod do not start."""
    began = min(
        (
            str(entry.get("lastTransitionTime") or "")
            for entry in conditions
            if entry.get("type") in ("Ready", "ContainersReady", "Initialized")
        ),
        default="",
    )
    for list_ in ("initContainerStatuses", "containerStatuses"):
        for entry in _entries(dig(obj, "status", list_)):
            waiting = dig(entry, "state", "waiting")
            reason = str(waiting.get("reason") or "") if isinstance(waiting, dict) else ""
            if reason in _STUCK_CONTAINERS:
                message = str(waiting.get("message") or "")
                text = f"container {entry.get('name')}: {reason}"
                text = f"{text}: {message}" if message else text
                failure = _failure(text, began, may_pass=True)
                if failure:
                    yield failure


def _failure(sentence: str, since: str, *, may_pass: bool = False) -> PartFailure | None:
    if _WAITS.search(sentence):
        return None
    began = _read(since)
    if began is None or not (may_pass or _PASSES.search(sentence)):
        return PartFailure(sentence, since if began else LONG_AGO)
    return PartFailure(sentence, (began + timedelta(seconds=GRACE_S)).strftime(_FORMAT))


_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def _read(moment: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _entries(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


MISSING, UNREAD = "not in the cluster", "is being read"


def part_state(manifest: Manifest) -> PartState:
    """Return the state of an object that the cluster has."""
    failure = part_failure(manifest)
    return PartState(
        ObjectKey.of(manifest),
        _status(manifest, "Synced"),
        _status(manifest, "Ready"),
        _reason(manifest, failure.sentence if failure else ""),
        failure.counts_from if failure else "",
    )


def _status(manifest: Manifest, type_: str) -> str:
    entry = condition(manifest, type_)
    return str(entry.get("status") or "-") if entry else "-"


def _reason(manifest: Manifest, failure: str) -> str:
    if metadata(manifest).get("deletionTimestamp"):
        unready = object_unready(manifest) if is_paused(manifest) else ""
        return f"is being deleted; {unready}" if unready else "is being deleted"
    throttled = THROTTLED if is_throttled(manifest) else ""
    return "; ".join(filter(None, (failure or object_unready(manifest), throttled)))
