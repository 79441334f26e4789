"""Make a row from an order's sources: phase, reason and parts only."""

from __future__ import annotations

from orderkit.core.argocd.application import applied
from orderkit.core.kit.model import Kit
from orderkit.core.objects.kube_objects import metadata
from orderkit.core.order.ledger import kit_of
from orderkit.core.order.order_state import judge
from orderkit.core.order.order_view import OrderRow, OrderSources, Parts


def summarize(sources: OrderSources, kit: Kit | None) -> OrderRow:
    """Return the row of an order."""
    application = sources.application
    state = judge(application, sources.xr, head=None, ending=sources.ending)
    unready = [part for part in sources.parts if part.reason or part.ready not in ("True", "-")]
    parts = Parts(
        len(sources.parts) - len(unready),
        len(sources.parts),
        unready[0] if unready else None,
    )
    return OrderRow(
        sources.entry.order,
        sources.entry.team,
        kit.name if kit else kit_of(application or {}),
        state.phase,
        state.reason,
        state.advice,
        created=str(metadata(application or {}).get("creationTimestamp") or ""),
        parts=parts,
        revision=str(state.revision or ""),
        delivered=applied(application or {}),
    )
