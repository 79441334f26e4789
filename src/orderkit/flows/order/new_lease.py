"""The lease of an order that enters the ledger. Called where it is registered, or agreed to."""

from __future__ import annotations

from collections.abc import Mapping

from ground.errors import InvalidInputError
from ground.objects.kube_objects import dig
from orderkit.core.order.lease import EXPIRES_AT, grant, policy_of
from orderkit.flows.order.expiry_note import try_note_expiry
from orderkit.flows.order.live_order import LiveOrder, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import Requester


def new_lease(platform: Platform, live: LiveOrder, requester: str) -> dict[str, str]:
    """
    Return the lease of a new order, as annotations; none if it lives without an expiry.

    Raises:
        InvalidInputError: It asks for a longer one than its kit grants.
    """
    kit, path = live.kit, live.kit.lease.term_field
    policy = policy_of(kit.lease, live.entry.team)
    if policy is None:
        return {}
    head = platform.forge.head(live.repository) if path else None
    xr = read_xr(platform, live, head).xr if head else {}
    asked = dig(xr, "spec", *path.split(".")) if path else None
    try:
        granted = grant(policy, platform.clock.now(), asked, by=requester)
    except InvalidInputError as error:
        name = kit.parameter(path) if path else "lease"
        raise InvalidInputError(name, error.value, error.rule, hint=error.hint) from error
    return granted.annotations() if granted else {}


def note_expiry(
    platform: Platform, live: LiveOrder, requester: str, proof: str, lease: Mapping[str, str]
) -> None:
    """Write the expiry into the order's own file, for people, if that is possible now."""
    if expires := lease.get(EXPIRES_AT):
        try_note_expiry(platform, live, expires, Requester(requester, proof))
