"""
Find out why a part fails that does not say it itself.

A StatefulSet, a claim and an XR whose objects the API server refused give their reason in events
only, and a workload's reason may be its Pods'. Whoever may not read events or Pods sees less.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ground.errors import AccessError
from ground.objects.kube_objects import (
    CLUSTER_SCOPED_HOME,
    EVENT,
    Kind,
    Manifest,
    dig,
    metadata,
)
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import UNSYNCED, PartFailure, event_failure, part_failure
from orderkit.core.order.part_states import part_state
from orderkit.flows.order.unmatched_selectors import in_words, is_unmatched
from orderkit.flows.platform import Platform
from orderkit.ports.cluster import NoSuchKindError

POD = Kind("", "v1", "Pod")
_WORKLOADS = {
    ("apps", "Deployment"): ("readyReplicas", "replicas"),
    ("apps", "StatefulSet"): ("readyReplicas", "replicas"),
    ("apps", "ReplicaSet"): ("readyReplicas", "replicas"),
    ("apps", "DaemonSet"): ("numberReady", "desiredNumberScheduled"),
}
"""Kinds whose Pods explain them: how many are ready, and how many there are to be."""
_SILENT = frozenset({*_WORKLOADS, ("", "PersistentVolumeClaim"), ("batch", "Job")})


def closer_state(platform: Platform, manifest: Manifest) -> PartState:
    """Return the state of an object, with the reason that only its events or its Pods have."""
    state = part_state(manifest)
    if metadata(manifest).get("deletionTimestamp"):
        return state
    if is_unmatched(state.reason):
        return replace(state, reason=in_words(platform, manifest, state.reason))
    is_unsynced = state.reason.startswith(UNSYNCED)
    if is_unsynced or (not state.fails_from and _is_silent(manifest)):
        for failure in _hidden(platform, manifest, is_unsynced=is_unsynced):
            return replace(state, reason=failure.sentence, fails_from=failure.counts_from)
    return state


def is_worth_a_look(part: PartState) -> bool:
    """Say whether events or Pods may tell more about a part than its own state does."""
    kind = (part.key.kind.group, part.key.kind.kind)
    if is_unmatched(part.reason):
        return True
    return part.reason.startswith(UNSYNCED) or (not part.fails_from and kind in _SILENT)


def _is_silent(manifest: Manifest) -> bool:
    """Say whether an object is unready without a reason of its own."""
    kind, status = Kind.of(manifest), manifest.get("status") or {}
    if (kind.group, kind.kind) in _WORKLOADS:
        ready, wanted = _WORKLOADS[kind.group, kind.kind]
        default = 1 if wanted == "replicas" else 0
        spec = dig(manifest, "spec", wanted, default=default)
        total = spec if wanted == "replicas" else status.get(wanted, 0)
        return bool(status.get(ready, 0) < total)
    if (kind.group, kind.kind) == ("", "PersistentVolumeClaim"):
        return status.get("phase") == "Pending"
    is_job = (kind.group, kind.kind) == ("batch", "Job")
    return is_job and not status.get("succeeded") and not status.get("completionTime")


def _hidden(platform: Platform, manifest: Manifest, *, is_unsynced: bool) -> Iterator[PartFailure]:
    with suppress(AccessError, NoSuchKindError):
        yield from _of_events(platform, manifest)
    if not is_unsynced:
        with suppress(AccessError, NoSuchKindError):
            yield from _of_pods(platform, manifest)


def _of_events(platform: Platform, manifest: Manifest) -> Iterator[PartFailure]:
    meta = metadata(manifest)
    home = meta.get("namespace") or CLUSTER_SCOPED_HOME
    events = [
        event
        for event in platform.cluster.list(EVENT, namespace=home).items
        if dig(event, "involvedObject", "uid") == meta.get("uid")
    ]
    if failure := event_failure(events):
        yield failure


def _of_pods(platform: Platform, manifest: Manifest) -> Iterator[PartFailure]:
    labels: Any = dig(manifest, "spec", "selector", "matchLabels")
    if isinstance(labels, dict) and labels:
        home = metadata(manifest).get("namespace", "")
        pods = platform.cluster.list(POD, namespace=home, labels=labels).items
        yield from filter(None, map(part_failure, pods))
