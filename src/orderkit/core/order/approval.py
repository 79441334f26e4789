"""
What the ledger records of approvals: which orders wait, and who agreed to what.

    data/<team>/<order>/waiting.yaml     an order that was proposed and is not delivered yet
    data/<team>/<order>/approvals.yaml   agreements that were given through Orderkit

Agreements that people give on the forge itself are the forge's reviews. Only the platform's own
people write the ledger, so both files can be believed. Pure; ``flows.approval`` writes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ground.names import CommitSha, OrderId, TeamName
from ground.shapes import Shape
from orderkit.core.documents import read_document, write_document

CONTEXT = "orderkit/approval"
"""The status of a pull request's head: success if every approver has approved it."""
BYPASSED = "orderkit.dev/delivered-without-approval"
"""On an Application: what was delivered without an agreement, which its kit lets pass."""
KEPT_MAX = 100
"""Agreements that a file keeps, the newest."""
_DIGEST = 10


class WaitingOrder(Shape, frozen=True, kw_only=True):
    """An order that is written and proposed, and not delivered."""

    order: OrderId
    team: TeamName
    kit: str
    requester: str
    account: int = 0
    """The requester's id on the forge; 0: nobody there has that login."""
    commit: CommitSha
    """The commit of its repository that is proposed, and nothing else is delivered."""
    since: str
    approval: str
    """Who has to agree, and why."""
    proof: str = ""
    """What proves the requester; empty: a claim."""
    agent: str = ""
    """The AI agent that ordered it on behalf of the requester; empty: the person did."""

    @property
    def branch(self) -> str:
        """The branch of the ledger that proposes it."""
        digest = hashlib.sha256(f"{self.order}\0{self.commit}\0{self.since}".encode()).hexdigest()
        return f"{_branch_prefix(self.order)}{digest[:_DIGEST]}"

    def to_yaml(self) -> str:
        """Write the file."""
        return write_document("WaitingOrder", self, named="order")


def proposes(branch: str, order: OrderId) -> bool:
    """Say whether a branch of the ledger has the name of one that proposes an order."""
    prefix = _branch_prefix(order)
    return branch.startswith(prefix) and len(branch) == len(prefix) + _DIGEST


def _branch_prefix(order: OrderId) -> str:
    return f"orderkit/{order}-"


class Agreement(Shape, frozen=True):
    """Somebody's agreement to a pull request, given through Orderkit and proved by it."""

    repository: str
    pull: int
    head: CommitSha
    by: str
    login: str
    account: int
    """Their id on the forge: a login can change and pass to somebody else."""
    proof: str
    when: str

    def is_same(self, other: Agreement) -> bool:
        """Say whether both are one person's agreement to one head."""
        return (self.repository, self.pull, self.head, self.account) == (
            other.repository,
            other.pull,
            other.head,
            other.account,
        )


class _Approvals(Shape, frozen=True):
    order: OrderId
    approvals: tuple[Agreement, ...]


def approvals_file(order: OrderId, agreements: Sequence[Agreement]) -> str:
    """Write the file of agreements, without the oldest ones."""
    kept = _Approvals(order, tuple(agreements[-KEPT_MAX:]))
    return write_document("Approvals", kept, named="order")


def parse_waiting(data: str | bytes, *, name: str) -> WaitingOrder:
    """
    Read the file of a waiting order; `name` is what messages call it.

    Raises:
        InvalidInputError: The schema refuses it.
    """
    return read_document(WaitingOrder, data, name=name, kinds=("WaitingOrder",), named="order")


def parse_approvals(data: str | bytes, *, name: str) -> tuple[Agreement, ...]:
    """
    Read the file of agreements.

    Raises:
        InvalidInputError: The schema refuses it.
    """
    return read_document(_Approvals, data, name=name, kinds=("Approvals",), named="order").approvals
