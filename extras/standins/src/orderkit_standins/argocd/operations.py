"""
The life of a sync operation: its start, its retries, and its history.

Pure decisions on the Application's own fields (``operation``, ``status.operationState``), with
Argo CD's rules: automated sync acts when OutOfSync; one attempt with its retries per commit, then
only self-heal, and that with growing pauses; a retry keeps the commit it began with unless
``retry.refresh`` is set; ``phase: Terminating`` ends an operation without retry. Never started:
a self-heal that could only delete what is already going or may not be deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ground.objects.kube_objects import Manifest, dig
from orderkit_standins.argocd.compare import ApplicationCondition, ComparedResource, Comparison
from orderkit_standins.argocd.prune import may_prune
from orderkit_standins.argocd.spec import DEFAULT_AUTO_RETRIES, AppSpec, is_deleting, read_retry
from orderkit_standins.argocd.status import Status, parse_stamp, precise_stamp, stamp
from orderkit_standins.argocd.sync import SyncOutcome

_UNFINISHED = ("Running", "Terminating")
_WIPES_OUT = "auto-sync will wipe out all resources"
_FAILED = ("Failed", "Error")
_HEAL_FIRST_S = 0.1
_HEAL_FACTOR = 3.0
_HEAL_LONGEST_S = 300.0
_HEAL_CALM_S = 10.0
"""Pauses between self-heals in a row (Argo CD: 2 s first); calm for this long starts anew."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of automated sync: an operation to begin, a reason, a time for the next look."""

    operation: dict[str, Any] | None = None
    condition: ApplicationCondition | None = None
    again_s: float | None = None


def is_unfinished(app: Manifest) -> bool:
    """Say whether an operation runs, waits for its retry or is being terminated."""
    return dig(app, "status", "operationState", "phase") in _UNFINISHED


def automatic(app: Manifest, spec: AppSpec, comparison: Comparison, now: datetime) -> Decision:
    """Decide whether automated sync begins an operation."""
    auto = spec.automated
    if auto is None or is_deleting(app) or comparison.status != "OutOfSync":
        return Decision()
    open_ = [resource for resource in comparison.resources if resource.status != "Synced"]
    if not auto.prune and all(resource.needs_pruning for resource in open_):
        return Decision()
    sync: dict[str, Any] = {"revision": comparison.revision, "prune": auto.prune}
    sync["syncOptions"] = sorted(spec.options)
    # one attempt with its retries for each commit; after it Argo CD only heals
    if _was_attempted(app, comparison.revision):
        decision = _again(app, spec, comparison, open_, now)
        if decision.operation is None:
            return decision
        sync |= decision.operation
    wipes_out = auto.prune and all(resource.needs_pruning for resource in comparison.resources)
    if wipes_out and not auto.allow_empty:
        text = f"Skipping sync attempt to [{comparison.revision}]: {_WIPES_OUT}"
        return Decision(condition=ApplicationCondition("SyncError", text))
    retry = dig(app, "spec", "syncPolicy", "retry") or {"limit": DEFAULT_AUTO_RETRIES}
    return Decision({"sync": sync, "initiatedBy": {"automated": True}, "retry": retry})


def begin(app: Manifest, operation: dict[str, Any], now: datetime) -> Status:
    """Return the ``operationState`` of an operation that begins."""
    sync = dig(operation, "sync", default={}) or {}
    source = sync.get("source") or dig(app, "spec", "source", default={})
    return {
        "operation": operation,
        "phase": "Running",
        "message": "",
        "startedAt": stamp(now),
        "retryCount": 0,
        "syncResult": {
            "revision": sync.get("revision") or source.get("targetRevision") or "HEAD",
            "source": source,
            "resources": [],
        },
    }


def retry_wait_s(state: Status, now: datetime) -> float:
    """
    Return how long a failed operation still has to wait; 0 if it does not wait.

    Raises:
        InvalidSpecError: Its retry strategy is malformed.
    """
    finished = parse_stamp(state.get("finishedAt"))
    if state.get("phase") != "Running" or finished is None:
        return 0.0
    retry = read_retry(dig(state, "operation", "retry"))
    due = finished + timedelta(seconds=retry.delay_s(int(state.get("retryCount", 1))))
    return max(0.0, (due - now).total_seconds())


def retried(app: Manifest, state: Status) -> Status:
    """Return the state of an operation whose wait is over: results forgotten, count kept."""
    if "finishedAt" not in state or state.get("phase") != "Running":
        return state
    operation = state["operation"]
    note = ""
    # else a retry keeps the commit that it began with
    if dig(operation, "retry", "refresh"):
        sync = {key: value for key, value in operation["sync"].items() if key != "revision"}
        operation, note = {**operation, "sync": sync}, " with latest revisions"
    count = int(state.get("retryCount", 1))
    began = parse_stamp(state.get("startedAt"))
    fresh = begin(app, operation, began) if began else dict(state)
    message = f"Retrying operation{note}. Attempt #{count}"
    return {**fresh, "retryCount": count, "message": message}


def after(state: Status, outcome: SyncOutcome, revision: str, now: datetime) -> Status:
    """
    Return the operation's state after a step, with the next retry or the end decided.

    Raises:
        InvalidSpecError: Its retry strategy is malformed.
    """
    ended = {
        **state,
        "phase": outcome.phase,
        "message": outcome.message,
        "syncResult": {**state["syncResult"], "revision": revision, "resources": outcome.results},
    }
    if outcome.phase == "Running":
        return ended
    count = int(state.get("retryCount", 0))
    ended["finishedAt"] = precise_stamp(now)
    if outcome.phase not in _FAILED:
        return ended
    retry = read_retry(dig(state, "operation", "retry"))
    # Terminating ends an operation without a retry
    if state.get("phase") != "Terminating" and (retry.limit < 0 or count < retry.limit):
        at = now + timedelta(seconds=retry.delay_s(count + 1))
        note = f"{outcome.message}. Retrying attempt #{count + 1} at {stamp(at)}."
        return {**ended, "phase": "Running", "retryCount": count + 1, "message": note}
    if count:
        ended["message"] = f"{outcome.message} (retried {count} times)."
    return ended


def with_history(status: Status, limit: int, now: datetime) -> list[Status]:
    """Return ``status.history`` with the operation that just succeeded, oldest dropped."""
    state = status["operationState"]
    history: list[Status] = list(status.get("history") or ())
    entry = {
        "id": history[-1]["id"] + 1 if history else 0,
        "revision": state["syncResult"]["revision"],
        "deployStartedAt": state["startedAt"],
        "deployedAt": stamp(now),
        "source": state["syncResult"]["source"],
        "initiatedBy": dig(state, "operation", "initiatedBy", default={}),
    }
    return [*history, entry][-limit:] if limit > 0 else []


def _was_attempted(app: Manifest, revision: str) -> bool:
    result = dig(app, "status", "operationState", "syncResult")
    if not result:
        return dig(app, "status", "operationState", "phase") is not None
    is_same_source = bool(result.get("source") == dig(app, "spec", "source"))
    return is_same_source and bool(result.get("revision") == revision)


def _again(
    app: Manifest,
    spec: AppSpec,
    comparison: Comparison,
    open_: list[ComparedResource],
    now: datetime,
) -> Decision:
    """Decide on a commit that was attempted before: report its failure, or heal."""
    state = dig(app, "status", "operationState")
    if state.get("phase") != "Succeeded":
        revision = dig(state, "syncResult", "revision", default=comparison.revision)
        text = f"Failed last sync attempt to [{revision}]: {state.get('message', '')}"
        return Decision(condition=ApplicationCondition("SyncError", text))
    healable = [resource for resource in open_ if _can_heal(resource, spec)]
    if spec.automated is None or not spec.automated.self_heal or not healable:
        return Decision()
    count = int(dig(state, "operation", "sync", "selfHealAttemptsCount", default=0))
    idle_s = _idle_s(state, now)
    pause_s = _heal_pause_s(count)
    if count and idle_s > pause_s + _HEAL_CALM_S:
        count, pause_s = 0, 0.0
    if idle_s < pause_s:
        return Decision(again_s=pause_s - idle_s)
    resources = [_selector(resource) for resource in healable]
    return Decision({"resources": resources, "selfHealAttemptsCount": count + 1})


def _can_heal(resource: ComparedResource, spec: AppSpec) -> bool:
    if not resource.needs_pruning:
        return True
    live = resource.live or {}
    prunes = spec.automated is not None and spec.automated.prune
    # no self-heal that could only delete what is going already, or may not be deleted
    return prunes and not is_deleting(live) and may_prune(live, spec.options)


def _heal_pause_s(count: int) -> float:
    if count == 0:
        return 0.0
    return min(_HEAL_LONGEST_S, _HEAL_FIRST_S * _HEAL_FACTOR ** min(count - 1, 20))


def _idle_s(state: Status, now: datetime) -> float:
    finished = parse_stamp(state.get("finishedAt"))
    return (now - finished).total_seconds() if finished else _HEAL_LONGEST_S


def _selector(resource: ComparedResource) -> dict[str, str]:
    key = resource.key
    return {
        "group": key.kind.group,
        "kind": key.kind.kind,
        "namespace": key.namespace,
        "name": key.name,
    }
