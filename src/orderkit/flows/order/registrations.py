"""Who registered which order, as the history of the ledger says."""

from __future__ import annotations

import re

from orderkit.core.order.end_record import STEPS
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Commit

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
