"""
What an order becomes before its end begins, and what outlives it: kit.yaml's ``end``.

What would outlive it and is asked for (``end.survives`` with a name) is set first in the same way.

No function of Crossplane runs for an XR that is being deleted, so whatever its stations have to do
last (``end.first``) is done by a change like any other, delivered and waited for while the order
still lives. Killed in between, a repetition finds the fields set and waits again. An order that
nothing delivers, or whose repository is gone, has nothing to be done for it.

Called by ``flows.end.destroying``, before the end is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orderkit.core.errors import InvalidInputError, NotFoundError
from orderkit.core.kit.model import First, How, Kit
from orderkit.core.names import CommitSha
from orderkit.core.objects.kube_objects import Manifest, ObjectKey, dig, metadata
from orderkit.core.objects.values import same, shown
from orderkit.core.order import order_state
from orderkit.core.order.change import FieldEdit
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.order.live_order import XrFile, find_living, read_xr
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.waiting import until
from orderkit.ports.requesters import Requester


def first_of(kit: Kit, take: Sequence[str]) -> tuple[First, ...]:
    """
    Return what an end sets first: what its kit says, and what takes along what would stay.

    Raises:
        InvalidInputError: There is nothing of that name that can be asked for.
    """
    survivors = {survivor.name: survivor for survivor in kit.end.survives if survivor.name}
    for name in take:
        if name not in survivors:
            offered = f"it has: {', '.join(survivors)}" if survivors else f"kit {kit.name} has none"
            raise InvalidInputError(
                "take", name, "is nothing that an end takes along", hint=offered
            )
    taken_along = tuple(
        First(survivors[name].unless, why=survivors[name].ask, requested=True)
        for name in sorted(set(take))
    )
    return (*((kit.end.first,) if kit.end.first else ()), *taken_along)


def make_first(
    platform: Platform, order: str, first: First, xr: ObjectKey, *, requester: str, timeout_s: float
) -> str:
    """
    Set what an end sets first, and wait until the XR's status says so. Idempotent.

    Returns what was done, in words; empty if there was nothing to do.

    Raises:
        RefusedError: The kit's own rules forbid it.
        IncompleteError: It is set and did not come about in time.
    """
    xr_file = _written(platform, order)
    if xr_file is None:
        return ""
    edits = tuple(
        FieldEdit(path, "set", value)
        for path, value in first.set.items()
        if not same(dig(xr_file.xr, "spec", *path.split(".")), value)
    )
    commit = xr_file.commit
    if edits:
        request = ChangeRequest(
            order=order,
            edits=edits,
            requester=Requester(requester),
            reason=first.why or "the order ends",
            how=How.DIRECT,
            accept_loss=first.requested,
            ends=first.requested,
        )
        commit = change(platform, request).commit or commit
    _await(platform, order, xr=xr, commit=commit, first=first, timeout_s=timeout_s)
    values = ", ".join(f"{path} is {shown(value)}" for path, value in first.set.items())
    return f"{values}: {first.why}" if first.why else values


def survivors(platform: Platform, order: str, kit: Kit) -> tuple[str, ...]:
    """Return what outlives this order, by what its XR says in Git; all that may if it says none."""
    xr_file = _written(platform, order)
    spec: dict[str, Any] = (xr_file.xr.get("spec") if xr_file else None) or {}
    return tuple(survivor.text for survivor in kit.end.survives if survivor.holds(spec))


def _written(platform: Platform, order: str) -> XrFile | None:
    try:
        live = find_living(platform, order)
        head = platform.forge.head(live.repository)
        return read_xr(platform, live, head) if head else None
    except NotFoundError:
        return None


def _await(
    platform: Platform,
    order: str,
    *,
    xr: ObjectKey,
    commit: CommitSha,
    first: First,
    timeout_s: float,
) -> None:
    def why_not() -> str:
        application = get_object(platform, application_key(order))
        if application is None:
            return ""
        return order_state.undelivered(application, commit) or _missing(
            get_object(platform, xr), first
        )

    until(
        platform.clock,
        why_not,
        lambda reason: not reason,
        timeout_s=timeout_s,
        goal=f"{order}: what comes before its end",
        why_not=lambda reason: reason,
    )


def _missing(xr: Manifest | None, first: First) -> str:
    """Say what of the XR's status is not as wanted yet; empty if all is, or it is not there."""
    if xr is None:
        return ""
    conditions = dig(xr, "status", "conditions", default=())
    synced: Manifest = next((entry for entry in conditions if entry.get("type") == "Synced"), {})
    if synced.get("status") != "True":
        return f"Crossplane says: {synced.get('message') or 'nothing yet'}"
    if synced.get("observedGeneration") != metadata(xr).get("generation"):
        return "Crossplane has not looked at it since"
    for path, value in first.until.items():
        actual = dig(xr, "status", *path.split("."))
        if not same(actual, value):
            return f"status.{path} is {shown(actual)}, not {shown(value)}"
    return ""
