"""
Settle orders that wait: deliver what everybody agreed to, withdraw what was closed.

To settle one order takes some twenty requests, so what the service hears settles only what it is
about.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from ground.errors import OrderkitError
from orderkit.core.order import ledger
from orderkit.core.order.approval import proposes
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.order.ledger_records import begun_end
from orderkit.flows.order.order_proposals import Proposal, Settled, proposal_of
from orderkit.flows.platform import Platform, RepositorySnapshot, ledger_snapshot

_PATIENCE_S = 30.0
_INTERRUPTED = timedelta(minutes=2)

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
    if proposal and settled and settled.state == "waiting" and _was_merged(platform, proposal):
        return settle(platform, entry)
    return settled


def _was_merged(platform: Platform, proposal: Proposal) -> bool:
    """Say whether somebody merged a proposal while it was judged: that is not a refusal."""
    if proposal.pull.state != "open":
        return False
    now = platform.forge.pull(platform.ledger, proposal.pull.number)
    return now is not None and now.state == "merged"


def settle_all(platform: Platform) -> None:
    """Settle every order that waits, as far as that is possible now. Idempotent."""
    paths = ledger_snapshot(platform).blobs
    _settle_each(platform, ledger.waiting_orders(paths))
    # interrupted withdrawals: nobody repeats one that began on the forge
    for entry in ledger.ending_orders(paths):
        if entry.application_path not in paths:
            _try(entry, partial(_finish_withdrawal, platform))


def settle_touched(platform: Platform, before: RepositorySnapshot | None) -> RepositorySnapshot:
    """
    Settle the orders that wait of teams whose files in the ledger are not as in `before`.

    Args:
        before: The ledger as it was settled last; None: every order that waits is settled.

    Returns:
        The ledger that was looked at.

    Raises:
        OrderkitError: The ledger cannot be read.
    """
    now = ledger_snapshot(platform)
    waiting = ledger.waiting_orders(now.blobs)
    if before is not None:
        changed = {path for path, _ in before.blobs.items() ^ now.blobs.items()}
        teams = {ledger.team_of(path) for path in changed}
        waiting = [entry for entry in waiting if entry.team in teams]
    _settle_each(platform, waiting)
    return now


def settle_pull(platform: Platform, number: int) -> None:
    """
    Settle the order that a pull request of the ledger proposes; nothing if it proposes none.

    Raises:
        OrderkitError: The ledger or the pull request cannot be read.
    """
    pull = platform.forge.pull(platform.ledger, number)
    waiting = ledger.waiting_orders(ledger_snapshot(platform).blobs)
    _settle_each(platform, [e for e in waiting if pull and proposes(pull.head, e.order)])


def _settle_each(platform: Platform, waiting: Iterable[OrderEntry]) -> None:
    for entry in waiting:
        _try(entry, lambda entry: settle(platform, entry, patience_s=_PATIENCE_S))


def _try(entry: OrderEntry, act: Callable[[OrderEntry], object]) -> None:
    try:
        act(entry)
    except OrderkitError as error:
        logger.warning("%s cannot be settled: %s", entry.order, error)


def _finish_withdrawal(platform: Platform, entry: OrderEntry) -> None:
    record = begun_end(platform, entry)
    if record is None or not record.is_withdrawal:
        return
    age = platform.clock.now() - datetime.fromisoformat(record.started_at)
    if age > _INTERRUPTED:  # whoever began it is gone
        withdraw(platform, entry, record.requester)


def withdraw(
    platform: Platform, entry: OrderEntry, requester: str, proof: str = "", reason: str = ""
) -> None:
    """
    Withdraw an order that waits: close its proposal and clean up. Idempotent, resumable.

    Raises:
        NotFoundError: It does not wait any more: somebody agreed meanwhile.
        Besides, what `flows.end.destroying.destroy` raises.
    """
    request = EndRequest(entry.order, requester, proof=proof, reason=reason, only_waiting=True)
    destroy(platform, request, on_step=lambda *_: None)
