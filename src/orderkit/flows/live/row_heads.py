"""
Look whether the protected ``main`` of orders is ahead of what is delivered.

Argo CD delivers the commit in the ledger and knows of no other one. The forge's webhook brings a
look at once; without it, the turn of an order comes by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from ground.argocd.delivery_hindrances import Hindrance
from ground.names import CommitSha
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import undelivered
from orderkit.flows.live.row_looks import RowLooks
from orderkit.flows.platform import Platform

_SURE_AFTER_S = 2.0
"""Orderkit writes ``main`` first and the ledger then: between them, nothing is wrong."""

_Pinned = tuple[OrderEntry, CommitSha]


class RowHeads(RowLooks[_Pinned, tuple[CommitSha, Hindrance | None]]):
    """Why what is on a protected ``main`` is not delivered."""

    EVERY_S = 60.0

    def __init__(self, platform: Platform, on_found: Callable[[str], None]) -> None:
        """Take who is called with an order's id once its main is ahead, or not any more."""
        super().__init__("live heads", platform, on_found)
        self._suspected: dict[str, Hindrance] = {}

    def of(self, entry: OrderEntry, pinned: CommitSha | None) -> Hindrance | None:
        """
        Return why an order's main is not delivered; None: it is, or nobody knows yet.

        Args:
            entry: The order.
            pinned: The commit that its Application names; None: it follows the branch.
        """
        if pinned is None:
            self.forget(entry.order)
            return None
        commit, why = self._last(entry.order, (entry, pinned)) or (pinned, None)
        return why if commit == pinned else None

    def _look(self, order: str, target: _Pinned) -> tuple[CommitSha, Hindrance | None]:
        entry, pinned = target
        head = self._platform.forge.head(entry.repository)
        why = None if head == pinned else undelivered(self._platform, entry, head)
        if why is None:
            self._suspected.pop(order, None)
        elif self._suspected.get(order) != why:
            self._suspected[order] = why
            self.look_again(order, in_s=_SURE_AFTER_S)
            return pinned, None
        return pinned, why
