"""
Find out why an Argo CD Application is not delivered, and what a person can do about it.

No single field tells. A ComparisonError leaves health Healthy and the revision a branch name; a
forbidden kind is not a condition, its reason stands at the resource; while an operation retries an
older commit, the revision already shows the newest; and a file that Argo CD does not recognise as
Kubernetes' is passed over in silence, Synced and Healthy (all observed on Argo CD 3.2.11).

Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ground.argocd.messages import advice_for, plain
from ground.argocd.sync_rules import HINT, found_hooks
from ground.objects.kube_objects import (
    ARGOCD_NAMESPACE,
    TRACKING_ID,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    labels_of,
    metadata,
)

__all__ = [
    "ORDER_LABEL",
    "TERMINATE",
    "Obstacle",
    "applied",
    "automated",
    "delivers_nothing",
    "kubectl_patch",
    "obstacle_of",
    "pinned",
    "refusals",
    "short",
    "sync_request",
    "tracker",
]

ORDER_LABEL = "orderkit.dev/order"
"""On the Application of an order, with the order's id: ``orderkit repair`` may act on it."""
TERMINATE = {"status": {"operationState": {"phase": "Terminating"}}}
"""The patch that ends the running operation."""
_UNREADABLE = ("InvalidSpecError", "ComparisonError", "UnknownError", "DeletionError")
"""While one of these conditions is set, the other fields mean nothing."""
_DISTURBING = ("SyncError", "SharedResourceWarning", "RepeatedResourceWarning")
_WAITS = re.compile(
    r"waiting for (?P<what>healthy state of|completion of hook|deletion of)"
    r" (?P<group>[^/\s]*)/(?P<kind>[^/\s]+)/(?P<name>\S+)(?: and (?P<more>\d+) more)?"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_UNTIL = {
    "healthy state of": "to become healthy",
    "completion of hook": "to complete",
    "deletion of": "to be gone",
}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why an Application is not delivered, in words."""

    reason: str
    advice: str = ""
    """What a person can do; empty if waiting is enough."""
    failing: bool = False
    """The delivery failed; otherwise it is in progress."""
    since: str = ""
    """When it began, RFC 3339, if Argo CD reports it."""
    waits_for: ObjectKey | None = None
    """The object that the operation waits for."""


def obstacle_of(application: Manifest, commit: str | None = None) -> Obstacle | None:
    """
    Say why the Application is not delivered; None when it is.

    Args:
        application: As read from the cluster.
        commit: Where it shall be; None to accept whatever Argo CD compared last.
    """
    return (
        _hooks(application)
        or _conditions(application, _UNREADABLE)
        or _removal(application)
        or _unread(application)
        or _operation(application, commit)
        or _behind(application, commit)
        or _gave_up(application)
        or _conditions(application, _DISTURBING)
        or _difference(application)
    )


def delivers_nothing(application: Manifest) -> bool:
    """Say whether Argo CD found no objects at the commit it is Synced to."""
    status = dig(application, "status", "sync", "status")
    return status == "Synced" and not dig(application, "status", "resources")


def extraneous(application: Manifest) -> list[ObjectKey]:
    """Return what Argo CD delivered, Git no longer has, and the Application may not prune."""
    if dig(application, "spec", "syncPolicy", "automated", "prune"):
        return []
    return [
        _key(application, entry)
        for entry in dig(application, "status", "resources", default=()) or ()
        if entry.get("requiresPruning")
    ]


def pinned(application: Manifest) -> str:
    """Return the commit that a running operation applies; empty if none runs."""
    state = _state(application)
    if state.get("phase") not in ("Running", "Terminating"):
        return str(dig(application, "operation", "sync", "revision", default="") or "")
    requested = dig(state, "operation", "sync", "revision")
    # a retry with ``retry.refresh`` names none in its request: its result says which it took
    return str(requested or dig(state, "syncResult", "revision", default="") or "")


def applied(application: Manifest) -> str:
    """Return the newest commit whose objects Argo CD applied; empty if it never applied one."""
    if not delivers_nothing(application) and obstacle_of(application) is None:
        return _revision(application)
    # ``status.sync.revision`` is only what it compared last; the history has the operations that
    # succeeded, and a commit that changes no object needs none
    history = dig(application, "status", "history", default=()) or ()
    return str((history[-1] if history else {}).get("revision") or "")


def refusals(application: Manifest) -> Iterator[tuple[str, str, str, int]]:
    """
    Yield why the last operation failed, as time, reason, message and number of attempts.

    Argo CD emits an event only when it gives up, and without the words of the API server.
    """
    state = _state(application)
    at = str(state.get("finishedAt") or state.get("startedAt") or "")
    count = int(state.get("retryCount") or 0) + 1
    failed = [
        entry
        for entry in _results(state)
        if entry.get("status") == "SyncFailed" or entry.get("hookPhase") in ("Failed", "Error")
    ]
    for entry in failed:
        message = f"{_key(application, entry)}: {plain(str(entry.get('message') or 'failed'))}"
        yield at, "SyncFailed", message, count
    if not failed and (state.get("phase") in ("Failed", "Error") or state.get("retryCount")):
        commit = dig(state, "syncResult", "revision", default="") or pinned(application)
        message = plain(str(state.get("message") or "Argo CD does not say why"))
        yield at, "OperationFailed", f"the sync of {short(str(commit))} failed: {message}", count
    for entry in dig(application, "status", "conditions", default=()) or ():
        if entry.get("type") in (*_UNREADABLE, *_DISTURBING):
            since = str(entry.get("lastTransitionTime") or at)
            yield since, str(entry["type"]), plain(str(entry.get("message") or "")), 1


def automated(application: Manifest) -> bool:
    """Say whether auto-sync started the running operation, not a person."""
    return bool(dig(_state(application), "operation", "initiatedBy", "automated"))


def tracker(live: Manifest) -> str:
    """
    Return the name of the Application that delivered this very object, or nothing.

    The annotation is ``<app>:<group>/<kind>:<namespace>/<name>``.
    """
    value = annotations_of(live).get(TRACKING_ID)
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) != 3:  # noqa: PLR2004 - app, kind, name
        return ""
    # only on the object that it names: controllers copy annotations to objects they make
    key = ObjectKey.of(live)
    namespace, _, name = parts[2].partition("/")
    names_it = parts[1] == f"{key.kind.group}/{key.kind.kind}" and name == key.name
    return parts[0] if names_it and (not key.namespace or namespace == key.namespace) else ""


def short(revision: str) -> str:
    """Shorten a commit id for people; a branch name stays whole."""
    return revision[:8] if _COMMIT.fullmatch(revision) else revision


def _state(application: Manifest) -> dict[str, Any]:
    return dig(application, "status", "operationState", default={}) or {}


def _revision(application: Manifest) -> str:
    return str(dig(application, "status", "sync", "revision", default="") or "")


def _conditions(application: Manifest, types: Iterable[str]) -> Obstacle | None:
    conditions = dig(application, "status", "conditions", default=()) or ()
    if dig(application, "status", "sync", "status") == "Synced" and "SyncError" in types:
        return None  # left over from before, or a warning about what did not hinder
    for type_ in types:
        for entry in conditions:
            if entry.get("type") == type_:
                message = str(entry.get("message") or type_)
                since = str(entry.get("lastTransitionTime") or "")
                return Obstacle(plain(message), advice_for(message), failing=True, since=since)
    return None


def _hooks(application: Manifest) -> Obstacle | None:
    """Judge what Argo CD shows of hooks, which an order has none of: it may be Synced with them."""
    found = found_hooks(application) if ORDER_LABEL in labels_of(application) else ""
    return Obstacle(found, HINT, failing=True) if found else None


def _removal(application: Manifest) -> Obstacle | None:
    since = metadata(application).get("deletionTimestamp")
    if not since:
        return None
    waits = _waits_for(application)
    if waits is None:
        return Obstacle("the Application is being removed", since=since)
    return Obstacle(
        f"the Application is to be removed, but its sync still waits for {waits}",
        f"end that sync: {_ending(application)}",
        failing=True,
        since=since,
        waits_for=waits,
    )


def _unread(application: Manifest) -> Obstacle | None:
    if not _revision(application) or dig(application, "status", "sync", "status") == "Unknown":
        return Obstacle("Argo CD has not read the repository yet")
    return None


def _operation(application: Manifest, commit: str | None) -> Obstacle | None:
    """Judge the running operation."""
    state = _state(application)
    phase = state.get("phase")
    started_at = str(state.get("startedAt") or "")
    if phase == "Terminating":
        return Obstacle(f"Argo CD ends its sync of {short(pinned(application))}", since=started_at)
    if phase != "Running":
        is_requested = "operation" in application
        compared_revision = short(_revision(application))
        return Obstacle(f"Argo CD is applying {compared_revision}") if is_requested else None
    target_revision = commit or _revision(application)
    applied = pinned(application) or target_revision
    if state.get("retryCount"):
        return _retrying(application, applied, target_revision)
    waits = _waits_for(application)
    if waits is not None:
        return _waiting(application, waits, applied, target_revision)
    return Obstacle(f"Argo CD is applying {short(applied)}", since=started_at)


def _retrying(application: Manifest, applied: str, target_revision: str) -> Obstacle:
    """A failed operation that Argo CD retries: it blocks newer commits."""
    state = _state(application)
    why, advice = _why_failed(application)
    limit = dig(state, "operation", "retry", "limit", default=0)
    tries = "without limit" if limit < 0 else f"of {limit}"
    reason = f"{why} (retry {state['retryCount']} {tries} of {short(applied)})"
    if applied != target_revision:
        reason += f"; {short(target_revision)} has to wait"
        advice = f"let the newer commit through: {_ending(application)}"
    since = str(state.get("startedAt") or "")
    return Obstacle(reason, advice, failing=True, since=since)


def _waiting(
    application: Manifest, waits: ObjectKey, applied: str, target_revision: str
) -> Obstacle:
    """An operation that waits for an object, without a time limit."""
    state = _state(application)
    since = str(state.get("startedAt") or "")
    match = _WAITS.match(str(state.get("message") or ""))
    until = _UNTIL[match["what"]] if match else ""
    and_more = f" and {match['more']} more" if match and match["more"] else ""
    reason = f"the sync of {short(applied)} waits for {waits}{and_more} {until}".strip()
    advice = f"Argo CD waits without limit: see why {waits} does not get ready"
    if applied != target_revision:
        reason += f"; {short(target_revision)} has to wait"
        advice = f"let the newer commit through: {_ending(application)}"
    return Obstacle(f"{reason}, since {since}", advice, since=since, waits_for=waits)


def _waits_for(application: Manifest) -> ObjectKey | None:
    """Return the object on which the running operation waits."""
    state = _state(application)
    match = _WAITS.match(str(state.get("message") or ""))
    if state.get("phase") != "Running" or not match:
        return None
    # just after a wave the message names an object of the next one, which nobody waits for yet
    # (observed on Argo CD 3.2.11): so the operation's own list must have it as running
    for entry in _results(state):
        waits_for_object = (entry.get("group") or "", entry.get("kind"), entry.get("name"))
        if waits_for_object == (match["group"], match["kind"], match["name"]):
            return _key(application, entry)
    return None


def _behind(application: Manifest, commit: str | None) -> Obstacle | None:
    compared_revision = _revision(application)
    if commit and compared_revision != commit:
        return Obstacle(f"Git is at {short(commit)}, Argo CD has seen {short(compared_revision)}")
    return None


def _gave_up(application: Manifest) -> Obstacle | None:
    """Judge the last operation: Argo CD never retries a failed commit by itself."""
    state = _state(application)
    if state.get("phase") not in ("Failed", "Error"):
        return None
    at = str(dig(state, "syncResult", "revision", default="") or pinned(application))
    if at and at != _revision(application):
        if dig(application, "status", "sync", "status") == "Synced":
            return None  # the newer commit took back what failed: there is nothing to apply
        # Until it looks at Git again it takes the failed attempt for one at this commit
        # (alreadyAttemptedSync of Argo CD 3.6.1), so what was deleted meanwhile comes back later.
        return Obstacle(
            f"Argo CD is about to apply {short(_revision(application))}, when it looks at Git next:"
            " within three minutes"
        )
    why, advice = _why_failed(application)
    retries = state.get("retryCount", 0)
    after = f" after {retries} {'retry' if retries == 1 else 'retries'}" if retries else ""
    again = f"or have this commit tried again: {_again(application)}"
    return Obstacle(
        f"Argo CD gave up on {short(at or _revision(application))}{after}: {why}",
        f"{advice or 'correct it with a new commit'}, {again}",
        failing=True,
        since=str(state.get("finishedAt") or ""),
    )


def _difference(application: Manifest) -> Obstacle | None:
    compared_revision = short(_revision(application))
    if dig(application, "status", "sync", "status") == "Synced":
        return None
    if kept := extraneous(application):
        names = ", ".join(map(str, kept))
        return Obstacle(
            f"{compared_revision} does not hold {names} any more, and Argo CD keeps what an order"
            " delivered until the order ends",
            "put it back under its name (git revert), or end the order: orderkit destroy",
            failing=True,
        )
    policy = dig(application, "spec", "syncPolicy", "automated")
    if policy is None or policy.get("enabled") is False:
        reason = f"the cluster differs from {compared_revision}, and auto-sync is off"
        return Obstacle(reason, f"sync it by hand: {_again(application)}", failing=True)
    return Obstacle(f"the cluster differs from {compared_revision}")


def _why_failed(application: Manifest) -> tuple[str, str]:
    """Return the first failure of an operation with its resource, and advice."""
    state = _state(application)
    for entry in _results(state):
        if entry.get("status") == "SyncFailed" or entry.get("hookPhase") in ("Failed", "Error"):
            message = str(entry.get("message") or "failed")
            return f"{_key(application, entry)}: {plain(message)}", advice_for(message)
    message = str(state.get("message") or state.get("phase"))
    return plain(message), advice_for(message)


def _results(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from dig(state, "syncResult", "resources", default=()) or ()


def _key(application: Manifest, entry: dict[str, Any]) -> ObjectKey:
    """Name the object of a result."""
    kind = Kind(entry.get("group") or "", entry.get("version", ""), entry.get("kind", ""))
    name, namespace = entry.get("name", ""), entry.get("namespace") or ""
    # a cluster-scoped one is given the destination's namespace in results, not in the list of
    # resources (observed on Argo CD 3.2.11)
    for resource in dig(application, "status", "resources", default=()) or ():
        if (resource.get("group") or "", resource.get("kind"), resource.get("name")) == (
            kind.group,
            kind.kind,
            name,
        ) and resource.get("namespace", "") in ("", namespace):
            namespace = resource.get("namespace", "")
    return ObjectKey(kind, name, namespace)


def _ending(application: Manifest) -> str:
    if order := labels_of(application).get(ORDER_LABEL):
        return f"orderkit repair {order}"
    return kubectl_patch(application, TERMINATE)


def _again(application: Manifest) -> str:
    if order := labels_of(application).get(ORDER_LABEL):
        return f"orderkit repair {order}"
    return kubectl_patch(application, sync_request(application))


def sync_request(application: Manifest) -> dict[str, Any]:
    """Return the patch that starts a sync of the compared commit; an order keeps what it has."""
    prunes = dig(application, "spec", "syncPolicy", "automated", "prune", default=False)
    prune = bool(prunes) or ORDER_LABEL not in labels_of(application)
    return {"operation": {"sync": {"prune": prune, "revision": _revision(application)}}}


def kubectl_patch(application: Manifest, patch: Manifest) -> str:
    """Return the command with which a person patches an Application."""
    text = json.dumps(patch, separators=(",", ":"))
    name = metadata(application).get("name", "")
    namespace = metadata(application).get("namespace", ARGOCD_NAMESPACE)
    return f"kubectl -n {namespace} patch application {name} --type merge -p '{text}'"
