"""
Say how an order is doing, from what Argo CD and Crossplane wrote about it.

No single field tells: ``core.argocd.application`` says so of Argo CD's, and Ready keeps its last
value when a pipeline fails (observed on Crossplane 2.3.4). So *delivered* is Synced at the very
commit by an operation that succeeded, and *ready* is delivered plus Synced and Ready, both
observed at the current generation. Responsive, too: it is said when a round begins, and a round
that began before a change says Synced and Ready of the changed generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from orderkit.core.argocd.application import Hindrance, delivers_nothing, hindrance, short
from orderkit.core.names import CommitSha
from orderkit.core.objects.kube_objects import Manifest, condition, dig, metadata

__all__ = ["OrderState", "Phase", "delivery_failure", "judge", "short", "undelivered"]

Phase = Literal["Registered", "Delivering", "Assembling", "Ready", "Failing", "Ending", "Ended"]


@dataclass(frozen=True, slots=True)
class OrderState:
    """`reason` is for a person; `revision` is what Argo CD compared last, `head` what Git has."""

    phase: Phase
    reason: str
    head: CommitSha | None = None
    revision: str | None = None
    advice: str = ""
    """What a person can do about `reason`; empty where nothing is known or needed."""

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
    phase, why = _judge(application, xr, head or revision, ending=ending)
    return OrderState(phase, why.reason, head, revision, why.advice)


def _judge(
    application: Manifest | None, xr: Manifest | None, commit: str | None, *, ending: bool
) -> tuple[Phase, Hindrance]:
    if ending:
        why = Hindrance("its end is under way", "repeat 'orderkit destroy' to finish it")
        return "Ending", why
    if application is None:
        return "Registered", Hindrance("Argo CD has no Application for it yet")
    obstacle = hindrance(application, commit)
    if obstacle:
        return ("Failing" if obstacle.failing else "Delivering"), obstacle
    if xr is None:
        return ("Failing", _NOTHING) if delivers_nothing(application) else ("Assembling", _ABSENT)
    problem = xr_failure(xr)
    if problem:
        return "Failing", Hindrance(problem)
    unready = xr_unready(xr)
    advice = _THROTTLED if unready and is_throttled(xr) else ""
    return "Assembling" if unready else "Ready", Hindrance(unready, advice)


_ABSENT = Hindrance("its composite resource is not in the cluster")
_NOTHING = Hindrance(
    "Argo CD finds no object in its repository",
    "a file without apiVersion, kind and metadata is passed over in silence: look into manifests/",
)


_THROTTLED = (
    "Crossplane took the order's events for a loop and looks at it every 30 s only, for five "
    "minutes: start it with --circuit-breaker-burst=1000 (docs/functions.md)"
)


def undelivered(application: Manifest, commit: str | None) -> str:
    """Say why the Application is not delivered at `commit`; empty when it is."""
    obstacle = hindrance(application, commit)
    return obstacle.reason if obstacle else ""


def delivery_failure(application: Manifest) -> str:
    """Return what is wrong with the delivery, or nothing: it is done or under way."""
    obstacle = hindrance(application)
    return obstacle.reason if obstacle and obstacle.failing else ""


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
        type_condition = condition(xr, type_)
        if (
            type_condition is None
            or type_condition.get("observedGeneration", generation) != generation
        ):
            return "Crossplane has not looked at the newest values yet"
        if type_condition.get("status") != "True" or _is_half_written(type_condition):
            return str(
                type_condition.get("message")
                or type_condition.get("reason")
                or f"{type_} is not True"
            )
    responsive = condition(xr, "Responsive") or {}
    if responsive.get("observedGeneration", generation) != generation:
        return "Crossplane has not looked at the newest values yet"
    return ""


def _is_half_written(true_condition: Mapping[str, Any]) -> bool:
    """
    Say whether a True condition still carries the message of its False.

    Crossplane writes an XR's status twice in a round, and the first time with conditions of the
    round before: for a moment Ready is True again, with the message of what is unready.
    """
    return str(true_condition.get("message") or "").startswith("Unready resources")


def object_unready(obj: Manifest) -> str:
    """
    Return what is wrong with anything an order is made of; empty when nothing is known to be.

    What keeps no condition Synced (kagent's Agents, Kyverno's Policies) is judged by Ready alone.
    """
    if condition(obj, "Synced"):
        return xr_failure(obj) or xr_unready(obj)
    ready = condition(obj, "Ready")
    if ready is None or ready.get("status") == "True":
        return ""
    return str(ready.get("message") or ready.get("reason") or "Ready is not True")


def is_throttled(xr: Manifest) -> bool:
    """Say whether Crossplane's circuit breaker is open: events of this XR's parts are dropped."""
    return (condition(xr, "Responsive") or {}).get("status") == "False"
