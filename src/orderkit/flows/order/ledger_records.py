"""
Read and write what the ledger records of orders: registrations, approvals, ends.

Who registered which order is what the history of the ledger says. Approvals are records of
``core.order.approval``. Of an end that has begun, the record of ``core.order.end_record`` is read
only.
"""

from __future__ import annotations

import re

from ground.names import MAIN
from orderkit.core.order.approval import (
    Agreement,
    WaitingOrder,
    approvals_file,
    parse_approvals,
    parse_waiting,
)
from orderkit.core.order.end_record import STEPS, EndRecord, parse
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform, read_text
from orderkit.flows.repeating import in_rounds
from orderkit.ports.forge import Commit, FileChange, Operation

_NEWEST_COMMITS = 200
REGISTER, REFUSE = "register-", "refuse-"
"""Prefixes of the operations that enter an order into the ledger, and take it back."""
_BEGUN = re.compile(rf"{REGISTER}(.+)-on-.*")
_ENDED = re.compile(rf"end-(.+)-(?:{'|'.join(STEPS)}|tombstone|withdrawn)-.*|{REFUSE}(.+)-on-.*")


def registered_by(platform: Platform, entry: OrderEntry) -> str:
    """
    Return who registered an order, as the ledger says; "" if it does not.

    The order's own repository cannot say it: whoever can push there can rewrite its record.
    """
    requester = ""
    for commit in platform.forge.commits(platform.ledger, path=entry.application_path):
        if commit.operation.startswith("end-") or was_taken_back(commit, entry):
            break  # of an earlier order of this name
        if commit.operation.startswith(f"{REGISTER}{entry.order}-on-"):
            requester = commit.requester
    return requester


def registered_owners(platform: Platform, *, newest: int = _NEWEST_COMMITS) -> dict[str, str]:
    """
    Return who registered which order, by the newest changes of the ledger.

    For orders of versions that did not write it into the Application (`ledger.requester_of`).
    """
    owners: dict[str, str] = {}
    ended: set[str] = set()
    for commit in platform.forge.commits(platform.ledger, limit=newest):
        if end := _ENDED.fullmatch(commit.operation):
            ended.add(end[1] or end[2])
        elif (begin := _BEGUN.fullmatch(commit.operation)) and begin[1] not in ended:
            owners[begin[1]] = commit.requester  # the oldest of this life, as `registered_by` says
    return owners


def was_taken_back(commit: Commit, entry: OrderEntry) -> bool:
    """Say whether a commit of the ledger took out an order for which there was no place."""
    return commit.operation.startswith(f"{REFUSE}{entry.order}-on-")


def waiting_order(platform: Platform, entry: OrderEntry, ref: str = "main") -> WaitingOrder | None:
    """
    Return the record of an order that waits for approval; None if it does not wait.

    Raises:
        InvalidInputError: The record is broken.
    """
    text = read_text(platform.forge, platform.ledger, entry.waiting_path, ref)
    return None if text is None else parse_waiting(text, name=str(entry.waiting_path))


def agreements(platform: Platform, entry: OrderEntry) -> tuple[Agreement, ...]:
    """
    Return the agreements to an order and its changes that were given through Orderkit.

    Raises:
        InvalidInputError: The record is broken.
    """
    text = read_text(platform.forge, platform.ledger, entry.approvals_path, "main")
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


def begun_end(platform: Platform, entry: OrderEntry, ref: str = MAIN) -> EndRecord | None:
    """
    Return the record of an order's end; None if it has not begun, or is over.

    Args:
        ref: The commit or branch of the ledger to read.

    Raises:
        InvalidInputError: The record is broken.
    """
    text = read_text(platform.forge, platform.ledger, entry.end_path, ref)
    return None if text is None else parse(text, name=str(entry.end_path))
