"""One row of the live model, with its JSON made once for all who read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ground.objects.kube_objects import ObjectKey
from orderkit.core.order.order_view import OrderRow


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A row and its JSON."""

    row: OrderRow
    data: bytes
    """What ``GET /v1/orders`` and ``GET /v1/stream`` send of it."""

    @classmethod
    def of(cls, row: OrderRow, xr: ObjectKey | None, *, is_ready: bool) -> LiveRow:
        """Make a row with the fields that ``orderkit list --json`` has, too."""
        content: dict[str, Any] = {
            **row.to_json(),
            "ready": is_ready,
            "advice": row.remedy,
            "head": None,
            "findings": [],
            "xr": xr.to_json() if xr else None,
        }
        return cls(row, json.dumps(content, separators=(",", ":")).encode())
