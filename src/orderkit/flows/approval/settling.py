"""
Settle orders that wait: deliver what everybody agreed to, withdraw what was closed.

Called by the service when it hears of the ledger, and each minute, and by ``deciding``.
"""

from __future__ import annotations

import logging

from orderkit.core.errors import OrderkitError
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.end.destroying import EndRequest, destroy
from orderkit.flows.order.order_proposals import Settled, proposal_of
from orderkit.flows.platform import Platform, ledger_snapshot

_PATIENCE_S = 30.0

logger = logging.getLogger(__name__)


def settle(platform: Platform, entry: OrderEntry, *, patience_s: float = 0.0) -> Settled | None:
    """
    Bring an order that waits for approval as far as it may go. Idempotent, resumable.

    Args:
        patience_s: For how long the process that orders it may take to propose it.

    Returns:
        None: It does not wait, or is being proposed.

    Raises:
        OrderkitError: The forge, or what `flows.end.destroying.destroy` raises.
    """
    proposal = proposal_of(platform, entry, patience_s=patience_s)
    settled = proposal.settle() if proposal else None
    if proposal and settled and settled.state == "closed":
        withdraw(platform, entry, proposal.waiting.requester, proposal.waiting.proof)
        return Settled("withdrawn", pull=settled.pull)
    return settled


def settle_all(platform: Platform) -> None:
    """Settle every order that waits, as far as that is possible now. Idempotent."""
    for entry in ledger.waiting_orders(ledger_snapshot(platform).blobs):
        try:
            settle(platform, entry, patience_s=_PATIENCE_S)
        except OrderkitError as error:
            logger.warning("%s waits for approval and cannot be settled: %s", entry.order, error)


def withdraw(
    platform: Platform, entry: OrderEntry, requester: str, proof: str = "", reason: str = ""
) -> None:
    """
    Withdraw an order that waits: close its proposal and clean up. Idempotent, resumable.

    Raises:
        What `flows.end.destroying.destroy` raises.
    """
    request = EndRequest(entry.order, requester, proof=proof, reason=reason)
    destroy(platform, request, on_step=lambda *_: None)
