"""
Say what blocks the delivery of an Application, down to the object it waits for.

The Application only names that object; this module reads it and, if it is an Application itself,
follows what blocks that one. Nothing is written.
"""

from __future__ import annotations

from dataclasses import replace

from ground.argocd.delivery_hindrances import Hindrance, hindrance
from ground.names import TeamName
from ground.objects.kube_objects import APPLICATION, Manifest, ObjectKey, condition, dig
from orderkit.core.order import ledger, order_state
from orderkit.core.order.order_state import OrderState
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.platform import Platform, get_object

_DEEPEST = 5
"""Bound on nested Applications, in case two wait for each other."""


def obstacle(
    platform: Platform, application: Manifest, commit: str | None = None
) -> Hindrance | None:
    """
    Say why an Application is not delivered at `commit`; None when it is.

    Reads each object once that is waited for.
    """
    return _obstacle(platform, application, commit, _DEEPEST)


def explained(
    platform: Platform, application: Manifest | None, state: OrderState, team: TeamName
) -> OrderState:
    """Return an order's state with the reason why its Application, or the team's, waits."""
    if application is not None:
        if state.phase not in ("Delivering", "Failing"):
            return state
        hindrance = obstacle(platform, application, state.head)
        return (
            replace(state, reason=hindrance.reason, advice=hindrance.advice) if hindrance else state
        )
    if state.phase != "Written":
        return state
    parent = get_object(platform, application_key(ledger.team_application(team)))
    hindrance = obstacle(platform, parent) if parent else None
    if parent is None or hindrance is None:
        return state
    reason = f"{state.reason}; {ledger.team_application(team)}: {hindrance.reason}"
    return replace(state, reason=reason, advice=hindrance.advice)


def _obstacle(
    platform: Platform, application: Manifest, commit: str | None, deeper: int
) -> Hindrance | None:
    first_hindrance = hindrance(application, commit)
    if first_hindrance is None or first_hindrance.waits_for is None or not deeper:
        return first_hindrance
    why = _why_unready(platform, first_hindrance.waits_for, deeper)
    reason = f"{first_hindrance.reason}: {why.reason}" if why.reason else first_hindrance.reason
    return replace(
        first_hindrance,
        reason=reason,
        advice=why.advice or first_hindrance.advice,
        failing=first_hindrance.failing or why.failing,
    )


def _why_unready(platform: Platform, key: ObjectKey, deeper: int) -> Hindrance:
    waited = get_object(platform, key)
    if waited is None:
        return Hindrance("it is not in the cluster")
    if (key.kind.group, key.kind.kind) == (APPLICATION.group, APPLICATION.kind):
        return _obstacle(platform, waited, None, deeper - 1) or _health(waited)
    if dig(waited, "metadata", "deletionTimestamp"):
        finalizers = ", ".join(dig(waited, "metadata", "finalizers", default=()))
        return Hindrance(
            f"it is being deleted, held by {finalizers}" if finalizers else "it is being deleted"
        )
    if condition(waited, "Synced") or condition(waited, "Ready"):
        problem = order_state.xr_failure(waited)
        return Hindrance(problem or order_state.xr_unready(waited), failing=bool(problem))
    return Hindrance(_first_condition(waited))


def _health(application: Manifest) -> Hindrance:
    health = dig(application, "status", "health", default={})
    words = filter(None, (health.get("status"), health.get("message")))
    return Hindrance(": ".join(map(str, words)))


def _first_condition(waited: Manifest) -> str:
    """Return the first condition that does not hold."""
    for entry in dig(waited, "status", "conditions", default=()) or ():
        if entry.get("status") != "True":
            state = f"{entry.get('type')} is {entry.get('status')}"
            return ": ".join(map(str, filter(None, (state, entry.get("message")))))
    return "" if dig(waited, "status") else "it has no status yet"
