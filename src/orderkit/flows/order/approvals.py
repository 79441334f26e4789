"""
Which agreements an order or a change needs, and whether anybody could give them.

`order_needs` and `change_needs` go by the rules of the order's kit, and by the limits of its team.
They are asked again whenever somebody is to agree, so that a kit or a limit that changed meanwhile
counts.

`needs_of_step` says what a change of a living order needs before it is delivered. It judges from
the commit that is delivered, not from ``main``: what somebody wrote to ``main`` past Orderkit would
be delivered together with the next change.

`foreseen` says beforehand who will have to approve, and whether anyone could. It is foresight only:
what counts in the end, ``flows.order.agreements`` judges by who did approve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from ground.errors import AccessError, OrderkitError, RefusedError
from ground.names import MAIN, CommitSha
from ground.objects.kube_objects import Manifest, annotations_of
from orderkit.core.durations import parse_duration
from orderkit.core.kit.approval_rules import Need, Subjects, needs_of, reads_cost, sentence
from orderkit.core.order import ledger, team_limits
from orderkit.core.order.approval import BYPASSED, WaitingOrder
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.commit_pinning import application_at, pinned_commit
from orderkit.flows.composing.on_demand import cost_of
from orderkit.flows.order import cost_limit
from orderkit.flows.order.agreements import forge_user, is_let_in, organisation_problem
from orderkit.flows.order.live_order import LiveOrder, XrFile, delivered_xr, read_xr
from orderkit.flows.platform import Platform, RepositorySnapshot, published_pack
from orderkit.ports.forge import ForgeUser
from yamlfiles.manifests import ManifestError

PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks for an order or a change."""

    requester: str
    proof: str = ""
    """What proves them; empty: a claim."""
    agent: str = ""
    """The AI agent that asks on their behalf."""
    person: ForgeUser | None = None
    """Who they are on the forge; None: that was not asked yet."""


def asking_of(waiting: WaitingOrder) -> Asking:
    """Return who asked for an order that waits."""
    return Asking(waiting.requester, waiting.proof, waiting.agent)


def order_needs(
    platform: Platform,
    live: LiveOrder,
    xr: Manifest,
    asking: Asking,
    ledger_files: RepositorySnapshot,
) -> tuple[Need, ...]:
    """
    Return the agreements that a new order needs.

    Raises:
        RemoteError: The forge or the cluster.
    """
    team, entry, kit = live.team, live.entry, live.kit
    needs = _needs_by_rules(platform, live, None, xr, asking)
    if asking.agent and team.agents != "write":
        because = f"the AI agent '{asking.agent}' ordered it for {asking.requester}"
        needs += (Need(("team", PLATFORM), 1, because),)
    if team.limits.over != "ask":
        return needs
    delivered, paths = delivered_xr(live, xr), ledger_files.blobs
    orders = (order for order in ledger.living_orders(paths, entry.team) if order != entry.order)
    excesses = [
        team_limits.count_excess(team, kit.name, orders, published_pack(platform).kit_names),
        cost_limit.new_excess(platform, team, entry, delivered, paths),
        *team_limits.value_excesses(team, kit, xr.get("spec") or {}),
    ]
    return (*needs, *_needs_of_platform(excesses))


def change_needs(
    platform: Platform,
    live: LiveOrder,
    old: Manifest,
    new: Manifest,
    asking: Asking,
    *,
    stood: Callable[[timedelta], Manifest] | None = None,
) -> tuple[Need, ...]:
    """
    Return the agreements that a change needs.

    Args:
        stood: Returns the XR that was delivered so long ago, for rules with a window.

    Raises:
        RemoteError: The forge or the cluster.
    """
    team, before, spec = live.team, old.get("spec") or {}, new.get("spec") or {}
    needs = _needs_by_rules(platform, live, old, new, asking)
    for within in sorted({rule.within for rule in live.kit.approval.rules if rule.within}):
        if stood is None:
            break
        then = stood(parse_duration(within, field="within"))
        summed = _needs_by_rules(platform, live, then, new, asking, within=within)
        needs += tuple(
            replace(need, because=f"{need.because} (counted over {within})")
            for need in summed
            if need not in needs
        )
    if team.limits.over != "ask":
        return needs
    excesses = [
        cost_limit.change_excess(platform, live, old, new),
        *team_limits.value_excesses(team, live.kit, spec, before=before),
    ]
    return (*needs, *_needs_of_platform(excesses))


def _needs_of_platform(excesses: Iterable[OrderkitError | None]) -> Iterator[Need]:
    """Yield the platform team's agreement to each limit that the team exceeds."""
    return (Need((PLATFORM,), 1, str(excess)) for excess in excesses if excess)


def _needs_by_rules(
    platform: Platform,
    live: LiveOrder,
    old: Manifest | None,
    new: Manifest,
    asking: Asking,
    *,
    within: str = "",
) -> tuple[Need, ...]:
    entry, kit = live.entry, live.kit
    subjects = Subjects(
        old=None if old is None else old.get("spec") or {},
        new=new.get("spec") or {},
        requester={
            "ref": asking.requester,
            "name": asking.requester.rpartition("/")[2],
            "proved": bool(asking.proof),
        },
        order={
            "name": str(entry.order),
            "team": str(entry.team),
            "kit": kit.name,
            "isNew": old is None,
        },
        cost=_cost(platform, live, old, new) if reads_cost(kit) else {},
    )
    return needs_of(kit, subjects, within)


def _cost(
    platform: Platform, live: LiveOrder, old: Manifest | None, new: Manifest
) -> Mapping[str, Any]:
    """Return what the rules see of the cost; nothing if a part of it is not known."""
    if old == {}:  # what was delivered then cannot be known
        return {}

    def delivered_cost(xr: Manifest) -> OrderCost | None:
        return cost_of(platform, delivered_xr(live, xr))

    try:
        before = OrderCost("", Decimal(0)) if old is None else delivered_cost(old)
        after = delivered_cost(new)
    except OrderkitError:
        return {}
    if before is None or after is None or before.unknown or after.unknown:
        return {}
    if before.monthly is None or after.monthly is None:
        return {}
    return {
        "before": float(before.monthly),
        "after": float(after.monthly),
        "difference": float(after.monthly - before.monthly),
        "currency": after.currency,
    }


def foreseen(platform: Platform, entry: OrderEntry, needs: Sequence[Need], asking: Asking) -> str:
    """
    Return who will have to approve, and why; empty if no one.

    Raises:
        RemoteError: The forge.
    """
    warning = hopeless(platform, entry, needs, asking)
    return "; ".join(filter(None, (sentence(needs), warning)))


def hopeless(platform: Platform, entry: OrderEntry, needs: Sequence[Need], asking: Asking) -> str:
    """
    Return a warning if no one could give an approval that is needed; empty if someone could.

    Whoever asks does not count.
    """
    mine = asking.person
    if needs and mine is None:
        mine = forge_user(platform, platform.ledger, asking.requester)
    me = mine.login.lower() if mine else ""
    for need in needs:
        try:
            people = set().union(*(_logins(platform, entry, approver) for approver in need.by))
        except (AccessError, RefusedError):
            # who is in a group that we may not see is not known
            continue
        others = people - {me, platform.forge.user().lower()}
        if len(others) < need.count:
            why = f"{', '.join(sorted(others)) or 'no one'} could"
            if me in people and not others:
                why = f"only {me}, who asks for it, is asked"
            return f"no one can give that approval now: {need.count} must, and {why}"
    return ""


def _logins(platform: Platform, entry: OrderEntry, approver: str) -> Iterator[str]:
    """Yield those whom a rule names, as far as the forge says who that is."""
    kind, _, name = approver.partition(":default/")
    if kind == "user":
        person = forge_user(platform, platform.ledger, approver)
        if person is not None and is_let_in(platform, person):
            yield person.login.lower()
    elif not name:
        repo = entry.repository if kind == "team" else platform.ledger
        for target in (repo.owner, repo):
            for grant in platform.forge.foreign_access(target):
                if grant.right != "listen" and ":" not in grant.holder:
                    yield grant.holder.lower()
    elif not organisation_problem(platform, name.partition(":")[0]):
        org, _, team = name.partition(":")
        yield from (member.login.lower() for member in platform.forge.members(org, team))


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

    Empty if it cannot be known; then conditions over it cannot be evaluated, and count.
    """
    entry, since = live.entry, platform.clock.now() - ago
    # the ledger's dates: only the platform writes there, while whoever pushes to an order chooses
    # the dates of their commits
    history = platform.forge.commits(
        platform.ledger, path=entry.application_path, limit=_DELIVERIES_MAX
    )
    then = next((c for c in history if datetime.fromisoformat(c.when) <= since), None)
    # read to its beginning: the order is younger
    if then is None and len(history) < _DELIVERIES_MAX:
        then = history[-1] if history else None
    with suppress(OrderkitError):
        commit = ledger.delivered_commit(application_at(platform, entry, then.id)) if then else None
        return read_xr(platform, live, commit).xr if commit else {}
    return {}


def refuse_bypass(
    platform: Platform, live: LiveOrder, head: CommitSha, asking: Asking, ledger_at: str
) -> str:
    """
    Check that a commit of ``main`` may be delivered although Orderkit did not write it.

    Args:
        ledger_at: The commit of the ledger that says what is delivered now.

    Returns:
        Which agreement it lacks, if the kit lets that pass with a report; else empty.

    Raises:
        RefusedError: It needs an agreement, and its kit refuses what bypasses one; or it is above
            a limit of its team.
    """
    pinned = pinned_commit(platform, live.entry, ledger_at)
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


def noted_bypass(
    platform: Platform, live: LiveOrder, head: CommitSha, asking: Asking, ledger_at: str
) -> str:
    """
    Return what the ledger notes of a delivery without an agreement, if it still holds.

    It holds until what is delivered needs no agreement beside what was delivered before it; of an
    order to which nobody agreed at all, until its end.

    Raises:
        OrderkitError: The forge or the cluster fails.
    """
    entry = live.entry
    note = annotations_of(application_at(platform, entry, ledger_at) or {}).get(BYPASSED, "")
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
