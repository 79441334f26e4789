"""Who registered which order, as the history of the ledger says."""

from __future__ import annotations

from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Commit

_NEWEST_COMMITS = 200
REGISTER, REFUSE = "register-", "refuse-"
"""Prefixes of the operations that enter an order into the ledger, and take it back."""


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


def registered_owners(platform: Platform) -> dict[str, str]:
    """Return who registered which order, by the newest changes of the ledger: not all of them."""
    owners: dict[str, str] = {}
    ends: list[str] = []
    for commit in platform.forge.commits(platform.ledger, limit=_NEWEST_COMMITS):
        action, _, rest = commit.operation.partition("-")
        order = rest.rpartition("-on-")[0]
        if f"{action}-" == REFUSE or action == "end":
            ends.append(f"{rest}-")
        elif f"{action}-" == REGISTER and not any(end.startswith(f"{order}-") for end in ends):
            owners[order] = commit.requester  # the oldest of this life, as `registered_by` says
    return owners


def was_taken_back(commit: Commit, entry: OrderEntry) -> bool:
    """Say whether a commit of the ledger took out an order for which there was no place."""
    return commit.operation.startswith(f"{REFUSE}{entry.order}-on-")
