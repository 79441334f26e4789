"""
Which rows an answer shows: those of the caller's teams that the query asks for.

Called by the handlers of ``GET /v1/orders`` and ``GET /v1/stream``.
"""

from __future__ import annotations

from collections.abc import Callable

from orderkit.core.order.order_view import OrderRow
from orderkit.web.operations import ServiceRequest

COMPLETE_S = 10.0
"""How long an answer waits for the live model to be complete, right after a start."""


def selection(call: ServiceRequest) -> Callable[[OrderRow], bool]:
    """
    Return what says whether a row is shown.

    Raises:
        RefusedError: The caller may read the orders of no team.
    """
    teams = call.who.teams("read")
    asked = [(name, call.query[name]) for name in ("team", "kit", "order") if name in call.query]

    def is_shown(row: OrderRow) -> bool:
        return (teams is None or row.team in teams) and all(
            getattr(row, name) == value for name, value in asked
        )

    return is_shown
