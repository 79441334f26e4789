"""Read and write what the ledger records of approvals (``core.order.approval``)."""

from __future__ import annotations

from orderkit.core.order.approval import (
    Agreement,
    WaitingOrder,
    approvals_file,
    parse_approvals,
    parse_waiting,
)
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.lost_races import in_rounds
from orderkit.flows.platform import Platform, read_text
from orderkit.ports.forge import FileChange, Operation


def waiting_order(platform: Platform, entry: OrderEntry, ref: str = "main") -> WaitingOrder | None:
    """
    Return the record of an order that waits for approval; None if it does not wait.

    Raises:
        InvalidInputError: The record is broken.
    """
    text = read_text(platform, platform.ledger, entry.waiting_path, ref)
    return None if text is None else parse_waiting(text, name=str(entry.waiting_path))


def agreements(platform: Platform, entry: OrderEntry) -> tuple[Agreement, ...]:
    """
    Return the agreements to an order and its changes that were given through Orderkit.

    Raises:
        InvalidInputError: The record is broken.
    """
    text = read_text(platform, platform.ledger, entry.approvals_path, "main")
    return () if text is None else parse_approvals(text, name=str(entry.approvals_path))


def record_agreement(platform: Platform, entry: OrderEntry, agreement: Agreement) -> bool:
    """
    Make sure that an agreement is in the ledger. Idempotent. True if it was not.

    Raises:
        ConflictError: Others won every round.
    """
    path = entry.approvals_path

    def attempt() -> bool:
        file = platform.forge.read(platform.ledger, path, "main")
        known = parse_approvals(file.data, name=str(path)) if file else ()
        if any(agreement.is_same(other) for other in known):
            return False
        text = approvals_file(entry.order, (*known, agreement))
        change = FileChange(path, text.encode(), file.sha if file else None)
        operation = Operation(
            f"approve-{entry.order}-{agreement.pull}-{agreement.head[:12]}-{agreement.account}",
            agreement.by,
            f"{entry.order}: {agreement.login} approves #{agreement.pull}",
            agreement.proof,
        )
        platform.forge.write(platform.ledger, [change], operation)
        return True

    return in_rounds(attempt)
