"""One row of the live model, with its JSON made once for all who read it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from msgspec.structs import asdict

from ground.objects.kube_objects import ObjectKey
from ground.shapes import ObjectReference
from orderkit.core.order.order_view import ListedOrder, OrderRow


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A row and its JSON."""

    row: OrderRow
    data: bytes
    """What ``GET /v1/orders`` and ``GET /v1/stream`` send of it."""

    @classmethod
    def of(cls, row: OrderRow, xr: ObjectKey | None, *, is_ready: bool) -> LiveRow:
        """Make a row with the fields that ``orderkit list --json`` has, too."""
        listed = ListedOrder(
            **asdict(row),
            ready=is_ready,
            advice=row.remedy,
            xr=ObjectReference.to(xr) if xr else None,
        )
        return cls(row, json.dumps(listed.to_json(), separators=(",", ":")).encode())
