"""Look closer at parts of orders that assemble: at their events and Pods, which nobody follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ground.objects.kube_objects import ObjectKey
from orderkit.core.order.order_summary import state_of
from orderkit.core.order.order_view import OrderSources, PartState
from orderkit.core.order.part_failures import UNSYNCED
from orderkit.flows.live.row_looks import RowLooks
from orderkit.flows.order.closer_look import closer_state, is_worth_a_look
from orderkit.flows.platform import Platform, get_object

_AT_MOST = 20
"""Parts of one order."""


class RowCauses(RowLooks[tuple[ObjectKey, ...], Mapping[ObjectKey, PartState]]):
    """Why parts fail that do not say it themselves. An order is looked at while it assembles."""

    EVERY_S = 10.0

    def __init__(self, platform: Platform, on_found: Callable[[str], None]) -> None:
        """Take who is called with an order's id once a part fails, or does not any more."""
        super().__init__("live causes", platform, on_found)

    def of(self, order: str, parts: Sequence[PartState]) -> tuple[PartState, ...]:
        """Return the parts of an order that assembles, with what was found out about them."""
        keys = tuple(part.key for part in parts if is_worth_a_look(part))[:_AT_MOST]
        if not keys:
            self.forget(order)
            return tuple(parts)
        found = self._last(order, keys) or {}
        return tuple(found.get(part.key, part) for part in parts)

    def added_to(self, order: str, key: ObjectKey | None, sources: OrderSources) -> OrderSources:
        """Return sources with what events and Pods say about parts of an order that assembles."""
        state = state_of(sources)
        is_unsynced = state.phase == "Failing" and state.reason.startswith(UNSYNCED)
        if key is None or not (is_unsynced or state.phase == "Assembling"):
            self.forget(order)
            return sources
        root = (PartState(key, "False", "-", state.reason),) if is_unsynced else ()
        looked = self.of(order, (*root, *sources.parts))
        own = looked[0] if is_unsynced and looked[0].fails_from else None
        return replace(sources, parts=looked[len(root) :], own=own)

    def _look(self, order: str, target: tuple[ObjectKey, ...]) -> Mapping[ObjectKey, PartState]:  # noqa: ARG002 - of RowLooks
        found: dict[ObjectKey, PartState] = {}
        for key in target:
            manifest = get_object(self._platform, key)
            state = closer_state(self._platform, manifest) if manifest else None
            if state and state.fails_from:
                found[key] = state
        return found

    def _requests(self, target: tuple[ObjectKey, ...]) -> int:
        return len(target)
