"""
``.orderkit/order.yaml``: who ordered what from which pack, as originally placed.

Written once by the skeleton, and compared when the same order is placed again. It is never read as
state: the current values are in ``manifests/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ground.names import OrderId, TeamName
from yamlfiles import yaml11
from yamlfiles.documents import record_schema

PATH = PurePosixPath(".orderkit", "order.yaml")
MANIFESTS = PurePosixPath("manifests")
"""The folder of an order's repository that is delivered."""

_SCHEMA = record_schema(
    "Order",
    {
        **{key: {"type": "string"} for key in ("kit", "team", "packCommit", "requester")},
        **{key: {"type": "object"} for key in ("lease", "ordered")},
    },
    ["kit", "team", "requester", "ordered"],
)


@dataclass(frozen=True, slots=True)
class OrderFile:
    """The record of an order as it was placed."""

    order: OrderId
    kit: str
    team: TeamName
    requester: str
    pack_commit: str
    ordered: Mapping[str, Any]

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
    record = yaml11.load(data, name=name, schema=_SCHEMA)
    spec = record["spec"]
    return OrderFile(
        order=OrderId(record["metadata"]["name"]),
        kit=spec["kit"],
        team=TeamName(spec["team"]),
        requester=spec["requester"],
        pack_commit=spec.get("packCommit", ""),
        ordered=spec["ordered"],
    )
