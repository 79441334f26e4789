"""Keep the values of Secrets out of what stations and providers say about an order."""

from __future__ import annotations

from dataclasses import replace

from ground.objects.kube_objects import Manifest, dig
from orderkit.core.order.order_state import OrderState
from orderkit.flows.composing.on_demand import order_secrets
from orderkit.flows.platform import Platform

CROSSPLANES_OWN = ("Unready resources: ", "Unsynced resources: ")
"""How texts begin that no station wrote, and that most orders have for a while."""


def without_secrets(platform: Platform, xr: Manifest | None, state: OrderState) -> OrderState:
    """Return an order's state without the values of its Secrets in the reason."""
    messages = {entry.get("message") for entry in dig(xr, "status", "conditions") or ()}
    if xr is None or state.reason not in messages or state.reason.startswith(CROSSPLANES_OWN):
        return state
    return replace(state, reason=order_secrets(platform, xr).redact(state.reason))
