"""
Say how an order is doing, from what Argo CD and Crossplane wrote about it.

No single field tells: a ComparisonError leaves health Healthy and the revision a branch name
(observed on Argo CD 3.2.11); Ready keeps its last value when a pipeline fails (observed on
Crossplane 2.3.4). So *delivered* is Synced at the very commit by an operation that succeeded,
and *ready* is delivered plus Synced and Ready, both observed at the current generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orderkit.core.names import CommitSha
from orderkit.core.objects import Manifest, condition, dig, metadata

Phase = Literal["Registered", "Delivering", "Assembling", "Ready", "Failing", "Ending", "Ended"]

_ERROR_CONDITIONS = ("InvalidSpecError", "ComparisonError", "SyncError", "DeletionError")


@dataclass(frozen=True, slots=True)
class OrderState:
    """`reason` is for a person; `revision` is what Argo CD compared last, `head` what Git has."""

    phase: Phase
    reason: str
    head: CommitSha | None = None
    revision: str | None = None

    @property
    def ready(self) -> bool:
        return self.phase == "Ready"


def judge(
    application: Manifest | None, xr: Manifest | None, *, head: CommitSha | None, ending: bool
) -> OrderState:
    """
    Judge one order.

    Args:
        application: Its Application, None if the cluster has none.
        xr: Its composite resource, None if the cluster has none.
        head: The commit it shall be at; None to accept whatever Argo CD compared last.
        ending: The ledger holds its end mark.
    """
    revision = dig(application, "status", "sync", "revision")
    phase, reason = _judge(application, xr, head or revision, ending=ending)
    return OrderState(phase, reason, head, revision)


def _judge(
    application: Manifest | None, xr: Manifest | None, commit: str | None, *, ending: bool
) -> tuple[Phase, str]:
    if ending:
        return "Ending", "its end is under way; repeat 'orderkit destroy' to finish it"
    if application is None:
        return "Registered", "Argo CD has no Application for it yet"
    failure = delivery_failure(application)
    waiting = undelivered(application, commit)
    if waiting:
        return ("Failing", failure) if failure else ("Delivering", waiting)
    if xr is None:
        return "Assembling", "its composite resource is not in the cluster"
    problem = xr_failure(xr)
    if problem:
        return "Failing", problem
    unready = xr_unready(xr)
    return ("Assembling", unready) if unready else ("Ready", "")


def undelivered(application: Manifest, commit: str | None) -> str:
    """Say why the Application is not delivered at `commit`; empty when it is."""
    sync = dig(application, "status", "sync", default={})
    operation = dig(application, "status", "operationState", default={})
    revision = sync.get("revision")
    if not revision or sync.get("status") == "Unknown":
        return "Argo CD has not read the repository yet"
    if commit and revision != commit:
        return f"Git is at {short(commit)}, Argo CD has seen {short(revision)}"
    if "operation" in application or operation.get("phase") == "Running":
        return f"Argo CD is applying {short(revision)}"
    if sync.get("status") != "Synced":
        return f"the cluster differs from {short(revision)}"
    if operation and operation.get("phase") != "Succeeded":
        return f"the last sync ended as {operation.get('phase')}"
    return ""


def delivery_failure(application: Manifest) -> str:
    """Return the first reason Argo CD gives for not delivering, or nothing."""
    for wanted in _ERROR_CONDITIONS:
        for entry in dig(application, "status", "conditions", default=()):
            if entry.get("type") == wanted:
                return str(entry.get("message", wanted))
    operation = dig(application, "status", "operationState", default={})
    failed = operation.get("phase") in ("Failed", "Error")
    if not failed and not operation.get("retryCount"):
        return ""
    for resource in dig(operation, "syncResult", "resources", default=()):
        if resource.get("status") == "SyncFailed":
            return f"{resource.get('kind')} {resource.get('name')}: {resource.get('message', '')}"
    return str(operation.get("message", "")) if failed else ""


def xr_failure(xr: Manifest) -> str:
    """Return why Crossplane cannot assemble the XR, or nothing."""
    synced = condition(xr, "Synced")
    if synced and synced.get("status") == "False":
        return str(synced.get("message") or synced.get("reason") or "Synced is False")
    return ""


def xr_unready(xr: Manifest) -> str:
    """Return what the XR still waits for; empty when Synced and Ready hold for this generation."""
    generation = metadata(xr).get("generation")
    for type_ in ("Synced", "Ready"):
        found = condition(xr, type_)
        if found is None or found.get("observedGeneration", generation) != generation:
            return "Crossplane has not looked at the newest values yet"
        if found.get("status") != "True":
            return str(found.get("message") or found.get("reason") or f"{type_} is not True")
    return ""


def short(revision: str) -> str:
    """Cut a commit id for people; a branch name stays whole."""
    is_commit = len(revision) == 40 and all(c in "0123456789abcdef" for c in revision)  # noqa: PLR2004 - SHA-1 in hex
    return revision[:8] if is_commit else revision
