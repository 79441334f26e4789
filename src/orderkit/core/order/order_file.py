"""
``.orderkit/order.yaml``: who ordered what from which pack, as originally placed.

Written once by the skeleton, and compared when the same order is placed again. It is never read as
state: the current values are in ``manifests/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from ground.names import OrderId, TeamName
from ground.shapes import Shape
from orderkit.core.documents import read_document

PATH = PurePosixPath(".orderkit", "order.yaml")
MANIFESTS = PurePosixPath("manifests")
"""The folder of an order's repository that is delivered."""


class OrderFile(Shape, frozen=True):
    """The record of an order as it was placed."""

    order: OrderId
    kit: str
    team: TeamName
    requester: str
    ordered: Mapping[str, Any]
    pack_commit: str = ""
    lease: Mapping[str, Any] = {}

    def same_order(self, other: OrderFile) -> bool:
        """Say whether both are the same order, regardless of requester and pack version."""
        return (self.order, self.kit, self.team, self.ordered) == (
            other.order,
            other.kit,
            other.team,
            other.ordered,
        )


def parse(data: bytes, *, name: str) -> OrderFile:
    """
    Read the record; `name` is what messages call the file.

    Raises:
        InvalidInputError: It is unreadable or incomplete.
    """
    return read_document(OrderFile, data, name=name, kinds=("Order",), named="order")
