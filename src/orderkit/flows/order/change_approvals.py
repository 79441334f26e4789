"""
What a change of a living order needs before it is delivered.

Judged from the commit that is delivered, not from ``main``: what somebody wrote to ``main`` past
Orderkit would be delivered together with the next change. Called where a change is written, judged
or merged, and where what is on ``main`` is registered.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from ground.errors import OrderkitError, RefusedError
from ground.names import MAIN, CommitSha
from ground.objects.kube_objects import Manifest, annotations_of
from orderkit.core.kit.approval_rules import Need, sentence
from orderkit.core.order import ledger, team_limits
from orderkit.core.order.approval import BYPASSED
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.commit_pinning import application_at, pinned_commit
from orderkit.flows.order import cost_limit
from orderkit.flows.order.approval_needs import Asking, change_needs
from orderkit.flows.order.live_order import LiveOrder, XrFile, read_xr
from orderkit.flows.platform import Platform
from yamlfiles.manifests import ManifestError

_DELIVERIES_MAX = 500
"""Deliveries that are searched for what was delivered at a time."""


def may_need_approval(live: LiveOrder) -> bool:
    """Say whether a change of an order can need approval at all."""
    return bool(live.kit.approval.rules) or live.team.limits.over == "ask"


def needs_of_step(
    platform: Platform,
    live: LiveOrder,
    new: Manifest,
    asking: Asking,
    *,
    current: XrFile | None = None,
) -> tuple[Need, ...]:
    """
    Return the agreements that delivering a new XR of an order needs.

    Args:
        current: The newest XR of ``main``, if it was read already.

    Raises:
        OrderkitError: What is delivered now cannot be read, or the forge or cluster fails.
    """
    if not may_need_approval(live):
        return ()
    commit = pinned_commit(platform, live.entry)
    if commit is None:
        commit = current.commit if current else platform.forge.head(live.repository)
    if commit is None:
        return ()
    delivered = current if current and current.commit == commit else read_xr(platform, live, commit)
    return change_needs(
        platform, live, delivered.xr, new, asking, stood=partial(_delivered_ago, platform, live)
    )


def _delivered_ago(platform: Platform, live: LiveOrder, ago: timedelta) -> Manifest:
    """
    Return the XR that was delivered some time ago; of a younger order, its first.

    By the ledger, which says since when which commit is delivered: only the platform writes there,
    while whoever pushes to an order chooses the dates of their commits. Empty if it cannot be
    known; then conditions over it cannot be evaluated, and count.
    """
    entry, since = live.entry, platform.clock.now() - ago
    history = platform.forge.commits(
        platform.ledger, path=entry.application_path, limit=_DELIVERIES_MAX
    )
    then = next((c for c in history if datetime.fromisoformat(c.when) <= since), None)
    if then is None and len(history) < _DELIVERIES_MAX:
        then = history[-1] if history else None
    with suppress(OrderkitError):
        commit = ledger.delivered_commit(application_at(platform, entry, then.id)) if then else None
        return read_xr(platform, live, commit).xr if commit else {}
    return {}


def refuse_bypass(platform: Platform, live: LiveOrder, head: CommitSha, asking: Asking) -> str:
    """
    Check that a commit of ``main`` may be delivered although Orderkit did not write it.

    Returns:
        Which agreement it lacks, if the kit lets that pass with a report; else empty.

    Raises:
        RefusedError: It needs an agreement, and its kit refuses what bypasses one; or it is above
            a limit of its team.
    """
    pinned = pinned_commit(platform, live.entry)
    if pinned is None or pinned == head:
        return ""
    refuse_excess(platform, live, pinned, head)
    needs = needs_of_step(platform, live, read_xr(platform, live, head).xr, asking)
    if not needs or live.kit.approval.bypass == "report":
        return sentence(needs)
    order = live.entry.order
    raise RefusedError(
        f"{order}: {MAIN} is at {short(head)}, which bypassed Orderkit and needs approval"
        f" by {sentence(needs)}",
        hint=f"take it back: orderkit revert {order} {short(head)}; then ask for it with"
        f" 'orderkit change {order}'",
    )


def refuse_excess(
    platform: Platform, live: LiveOrder, delivered: CommitSha, head: CommitSha
) -> None:
    """
    Check that delivering a commit of ``main`` exceeds no limit of the team, unless it may ask.

    Raises:
        RefusedError: It does.
    """
    team, order = live.team, live.entry.order
    if team.limits.over == "ask" or not (team.limits.cost or team.limits.fields):
        return
    old, new = (read_xr(platform, live, commit).xr for commit in (delivered, head))
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    excess = cost_limit.change_excess(platform, live, old, new)
    excesses = [
        *team_limits.value_excesses(team, live.kit, spec, before=before),
        *([excess] if excess else []),
    ]
    if excesses:
        raise RefusedError(
            f"{order}: {MAIN} is at {short(head)}, which is not delivered:"
            f" {'; '.join(map(str, excesses))}",
            hint=f"take it back: orderkit revert {order} {short(head)}; or {excesses[0].hint}",
        )


def noted_bypass(platform: Platform, live: LiveOrder, head: CommitSha, asking: Asking) -> str:
    """
    Return what the ledger notes of a delivery without an agreement, if it still holds.

    It holds until what is delivered needs no agreement beside what was delivered before it; of an
    order to which nobody agreed at all, until its end.

    Raises:
        OrderkitError: The forge or the cluster fails.
    """
    entry = live.entry
    note = annotations_of(application_at(platform, entry) or {}).get(BYPASSED, "")
    noted_at: CommitSha | None = None
    for commit in (
        platform.forge.commits(platform.ledger, path=entry.application_path) if note else ()
    ):
        try:
            application = application_at(platform, entry, commit.id)
        except ManifestError:  # nothing was delivered by it
            continue
        delivered = ledger.delivered_commit(application)
        if BYPASSED in annotations_of(application or {}):
            noted_at = delivered
            continue
        if delivered is None or delivered == noted_at:  # the order itself lacked an agreement
            return note
        old, new = (read_xr(platform, live, at).xr for at in (delivered, head))
        return note if change_needs(platform, live, old, new, asking) else ""
    return note
