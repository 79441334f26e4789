"""
Determine the state of an order from what Argo CD and Crossplane wrote about it.

No single field is enough: ``ground.argocd.delivery_obstacles`` explains this for Argo CD, and
Ready keeps its last value when a pipeline fails (observed on Crossplane 2.3.4). *Delivered* means:
Synced at exactly this commit by an operation that succeeded. *Ready* means: delivered, plus Synced
and Ready observed at the current generation. Responsive must be observed there too: Crossplane sets
it when a reconcile begins, and a reconcile that began before a change writes Synced and Ready for
the new generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from compositions.paused import PAUSED, annotate_command, how_to_resume, is_paused
from compositions.python_functions import is_not_run
from ground.argocd.delivery_obstacles import Obstacle, delivers_nothing, obstacle_of, short
from ground.argocd.sync_rules import steering_annotations
from ground.names import CommitSha
from ground.objects.kube_objects import Kind, Manifest, condition, dig, metadata
from orderkit.core.unserved_kinds import advice_on

__all__ = ["OrderState", "Phase", "delivery_failure", "judge", "short", "undelivered"]

Phase = Literal[
    "Waiting",
    "Written",
    "Delivering",
    "Assembling",
    "Ready",
    "Attention",
    "Failing",
    "Ending",
    "Ended",
]
SENTENCES: Mapping[Phase, str] = {
    "Waiting": "It waits for approval; nothing of it is delivered.",
    "Written": "It is in the ledger, and Argo CD has no Application for it yet.",
    "Delivering": "Git is ahead of the cluster: Argo CD applies the newest commit.",
    "Assembling": "Crossplane composes its parts, and not all of them are ready.",
    "Ready": "Its newest commit is delivered, and its parts are as it asks.",
    "Attention": "It is delivered, but somebody should look at it.",
    "Failing": "Something is wrong that does not pass by itself.",
    "Ending": "Its end is under way.",
    "Ended": "It has ended; the ledger keeps its tombstone.",
}
"""What each phase means. ``docs/exit-codes.md`` has the same table."""
REMEDIES: Mapping[Phase, str] = {
    "Waiting": "an approver decides: orderkit approve ORDER",
    "Attention": "make the change that is offered, or do what the reason says",
    "Failing": "see which part fails and why: orderkit trace ORDER",
    "Ending": "if it does not finish: orderkit destroy ORDER",
}
"""What to do in a bad phase if nothing better is known; ORDER stands for the order's id."""


@dataclass(frozen=True, slots=True)
class OrderState:
    """`reason` is for a person; `revision` is what Argo CD last compared, `head` what Git has."""

    phase: Phase
    reason: str
    head: CommitSha | None = None
    revision: str | None = None
    advice: str = ""
    """What a person can do about `reason`; empty if nothing is known or needed."""
    throttled: bool = False
    """Crossplane's circuit breaker is open: whatever the phase, it looks every 30 s only."""
    paused: bool = False
    """Crossplane leaves the XR as it is, so nothing is known about the newest values."""

    is_held: bool = False
    """It is delivered only when a maintenance window opens."""

    @property
    def lacks_function(self) -> bool:
        """Whether a function of its pipeline does not run on this platform."""
        return self.phase == "Failing" and is_not_run(self.reason)

    @property
    def ready(self) -> bool:
        """Whether waiting for it is over: what people should look at may be Ready as well."""
        return self.phase in ("Ready", "Attention") and not self.paused


def judge(
    application: Manifest | None,
    xr: Manifest | None,
    *,
    head: CommitSha | None,
    ending: bool,
    approval: str = "",
) -> OrderState:
    """
    Return the state of one order.

    Args:
        application: Its Application, None if the cluster has none.
        xr: Its composite resource, None if the cluster has none.
        head: The expected commit; None to accept the one that Argo CD last compared.
        ending: The ledger records its end.
        approval: Who has to agree before it is delivered, and why; empty: nobody.
    """
    if approval and not ending:
        return OrderState("Waiting", f"waits for approval by {approval}", head)
    revision = dig(application, "status", "sync", "revision")
    phase, why = _judge(application, xr, head or revision, ending=ending)
    throttled = xr is not None and is_throttled(xr)
    is_held = phase == "Attention"
    advice = why.advice or (advice_on(why.reason) if phase == "Failing" else "")
    if phase == "Ready" and xr is not None:
        for found in steering_annotations(xr):  # somebody pushed it: what Git has is delivered so
            reason = f"metadata.annotations: {found}"
            return OrderState("Attention", reason, head, revision, found.hint, throttled)
    return OrderState(phase, why.reason, head, revision, advice, throttled, is_held)


def with_undelivered(state: OrderState, why: Obstacle | None) -> OrderState:
    """
    Return the state of an order whose protected ``main`` may be ahead of what is delivered.

    Argo CD says nothing of it, and it does not pass by itself.
    """
    if why is None or state.phase in ("Waiting", "Written", "Ending", "Ended"):
        return state
    return replace(state, phase="Failing", reason=why.reason, advice=why.advice)


def _judge(
    application: Manifest | None, xr: Manifest | None, commit: str | None, *, ending: bool
) -> tuple[Phase, Obstacle]:
    if ending:
        why = Obstacle("the order is ending", "repeat 'orderkit destroy' to finish it")
        return "Ending", why
    if application is None:
        return "Written", Obstacle("Argo CD has no Application for it yet")
    obstacle = obstacle_of(application, commit)
    if obstacle:
        return ("Failing" if obstacle.failing else "Delivering"), obstacle
    if xr is None:
        return ("Failing", _NOTHING) if delivers_nothing(application) else ("Assembling", _ABSENT)
    return _judge_xr(xr)


def _judge_xr(xr: Manifest) -> tuple[Phase, Obstacle]:
    if is_paused(xr):
        return "Attention", paused(xr)
    problem = xr_failure(xr)
    if problem:
        return "Failing", Obstacle(problem)
    unready = xr_unready(xr)
    if is_throttled(xr):
        advice = against_throttling(xr)
        return "Assembling" if unready else "Ready", Obstacle(unready or THROTTLED, advice)
    return "Assembling" if unready else "Ready", Obstacle(unready)


PAUSED_PART = "it is paused"
"""How the reason of a part begins that nobody acts on."""
_ABSENT = Obstacle("its composite resource is not in the cluster")
_NOTHING = Obstacle(
    "Argo CD finds no object in its repository",
    "Argo CD silently ignores files without apiVersion, kind and metadata: check manifests/",
)


THROTTLED = "Crossplane's circuit breaker is open (Responsive=False): it looks only every 30 s"


def against_throttling(xr: Manifest) -> str:
    """
    Return what closes the circuit breaker, and what keeps it closed.

    It closes with the first event of the XR after five minutes; a quiet XR has none by itself
    (observed on Crossplane 2.3.4).
    """
    again = annotate_command(xr, "crossplane.io/reconcile-requested-at=$(date +%s) --overwrite")
    return (
        "start Crossplane with --circuit-breaker-burst=1000 (docs/functions.md); if five minutes "
        f"later it is still open: {again}"
    )


def paused(xr: Manifest) -> Obstacle:
    """Say that a paused XR stays as it is, and how it is resumed."""
    kind = Kind.of(xr).kind
    reason = (
        f"{kind} {metadata(xr).get('name')} is paused (annotation {PAUSED}): Crossplane composes, "
        "changes and deletes nothing until it is resumed"
    )
    git = how_to_resume(xr, in_git=True)
    return Obstacle(reason, f"{git}; if Git has none: {how_to_resume(xr, in_git=False)}")


def undelivered(application: Manifest, commit: str | None) -> str:
    """Return why the Application is not delivered at `commit`; empty if it is."""
    obstacle = obstacle_of(application, commit)
    return obstacle.reason if obstacle else ""


def delivery_failure(application: Manifest) -> str:
    """Return why the delivery failed; empty while it is done or in progress."""
    obstacle = obstacle_of(application)
    return obstacle.reason if obstacle and obstacle.failing else ""


def xr_failure(xr: Manifest) -> str:
    """Return why Crossplane cannot assemble the XR; empty if it can."""
    synced = condition(xr, "Synced")
    if synced and synced.get("status") == "False":
        return str(synced.get("message") or synced.get("reason") or "Synced is False")
    return ""


def xr_unready(xr: Manifest) -> str:
    """Return what the XR waits for; empty if it is Synced and Ready at this generation."""
    generation = metadata(xr).get("generation")
    for type_ in ("Synced", "Ready"):
        type_condition = condition(xr, type_)
        # Ready keeps its last value when a pipeline fails (observed on Crossplane 2.3.4)
        if (
            type_condition is None
            or type_condition.get("observedGeneration", generation) != generation
        ):
            return "Crossplane has not reconciled the newest values yet"
        if type_condition.get("status") != "True" or _is_half_written(type_condition):
            return str(
                type_condition.get("message")
                or type_condition.get("reason")
                or f"{type_} is not True"
            )
    # set when a reconcile begins: one that began before a change writes Synced and Ready for the
    # new generation
    responsive = condition(xr, "Responsive") or {}
    if responsive.get("observedGeneration", generation) != generation:
        return "Crossplane has not reconciled the newest values yet"
    return ""


def _is_half_written(true_condition: Mapping[str, Any]) -> bool:
    """Say whether a True condition still has the message of its False state."""
    # Crossplane writes an XR's status twice per reconcile, first with conditions of the previous
    # one: for a moment Ready is True again, with the message about unready resources
    return str(true_condition.get("message") or "").startswith("Unready resources")


def object_unready(obj: Manifest) -> str:
    """
    Return why an object of an order is unready; empty if no problem is known.

    Kinds without the condition Synced (kagent's Agents, Kyverno's Policies) are judged by Ready.
    """
    if is_paused(obj):
        return f"{PAUSED_PART}: {how_to_resume(obj, in_git=False)}"
    if condition(obj, "Synced"):
        return xr_failure(obj) or xr_unready(obj)
    ready = condition(obj, "Ready")
    if ready is None or ready.get("status") == "True":
        return ""
    return str(ready.get("message") or ready.get("reason") or "Ready is not True")


def is_throttled(xr: Manifest) -> bool:
    """Say whether Crossplane's circuit breaker is open: it then drops events of this XR."""
    return (condition(xr, "Responsive") or {}).get("status") == "False"
