"""Say that an order waits for a maintenance window of its kit, and until when."""

from __future__ import annotations

from dataclasses import replace

from orderkit.core.kit.model import Kit
from orderkit.core.order.maintenance import opens_at
from orderkit.core.order.order_state import OrderState
from orderkit.flows.platform import Platform


def held_by_window(platform: Platform, kit: Kit | None, state: OrderState) -> OrderState:
    """Return an order's state, with the time until which a window of its kit holds it back."""
    if state.phase != "Delivering" or kit is None or not kit.windows:
        return state
    opening = opens_at(kit.windows, platform.clock.now())
    if opening is None:
        return state
    text = f"{opening:%a %Y-%m-%d %H:%M} {opening.tzinfo}"
    reason = f"waits for the maintenance window of kit {kit.name}, which opens {text}"
    return replace(state, reason=reason, advice="nothing to do: it is delivered then", is_held=True)
