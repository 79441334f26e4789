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
from dataclasses import dataclass
from typing import Any

from ground.names import CommitSha, OrderId, TeamName
from yamlfiles import yaml11
from yamlfiles.documents import record, record_schema

CONTEXT = "orderkit/approval"
"""The status of a pull request's head: success if everybody who has to agree did."""
BYPASSED = "orderkit.dev/delivered-without-approval"
"""On an Application: what was delivered without an agreement, which its kit lets pass."""
KEPT_MAX = 100
"""Agreements that a file keeps, the newest."""
_TEXT = {"type": "string"}


_WAITING = record_schema(
    "WaitingOrder",
    {
        **dict.fromkeys(
            ("kit", "team", "requester", "proof", "commit", "since", "approval"), _TEXT
        ),
        "account": {"type": "integer"},
    },
    ["kit", "team", "requester", "commit", "since", "approval"],
)
_DIGEST = 10
_AGREEMENT = {
    "type": "object",
    "required": ["repository", "pull", "head", "by", "login", "account", "proof", "when"],
    "properties": {
        **dict.fromkeys(("repository", "head", "by", "login", "proof", "when"), _TEXT),
        "pull": {"type": "integer"},
        "account": {"type": "integer"},
    },
}
_APPROVALS = record_schema(
    "Approvals", {"approvals": {"type": "array", "items": _AGREEMENT}}, ["approvals"]
)


@dataclass(frozen=True, slots=True)
class WaitingOrder:
    """An order that is written and proposed, and not delivered."""

    order: OrderId
    team: TeamName
    kit: str
    requester: str
    commit: CommitSha
    """The commit of its repository that is proposed, and nothing else is delivered."""
    since: str
    approval: str
    """Who has to agree, and why."""
    proof: str = ""
    """What proves the requester; empty: a claim."""
    account: int = 0
    """The requester's id on the forge; 0: nobody there has that login."""

    @property
    def branch(self) -> str:
        """The branch of the ledger that proposes it."""
        digest = hashlib.sha256(f"{self.order}\0{self.commit}\0{self.since}".encode()).hexdigest()
        return f"{_branch_prefix(self.order)}{digest[:_DIGEST]}"

    def to_yaml(self) -> str:
        """Write the file."""
        spec = {
            "team": self.team,
            "kit": self.kit,
            "requester": self.requester,
            "account": self.account,
            "commit": self.commit,
            "since": self.since,
            "approval": self.approval,
        }
        if self.proof:
            spec["proof"] = self.proof
        return yaml11.dump(record("WaitingOrder", str(self.order), spec))


def proposes(branch: str, order: OrderId) -> bool:
    """Say whether a branch of the ledger has the name of one that proposes an order."""
    prefix = _branch_prefix(order)
    return branch.startswith(prefix) and len(branch) == len(prefix) + _DIGEST


def _branch_prefix(order: OrderId) -> str:
    return f"orderkit/{order}-"


@dataclass(frozen=True, slots=True)
class Agreement:
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

    def to_json(self) -> dict[str, Any]:
        """Return it as in the file."""
        return {name: getattr(self, name) for name in _AGREEMENT["required"]}

    def is_same(self, other: Agreement) -> bool:
        """Say whether both are one person's agreement to one head."""
        return (self.repository, self.pull, self.head, self.account) == (
            other.repository,
            other.pull,
            other.head,
            other.account,
        )


def approvals_file(order: OrderId, agreements: Sequence[Agreement]) -> str:
    """Write the file of agreements, without the oldest ones."""
    kept = [agreement.to_json() for agreement in agreements[-KEPT_MAX:]]
    return yaml11.dump(record("Approvals", str(order), {"approvals": kept}))


def parse_waiting(data: str | bytes, *, name: str) -> WaitingOrder:
    """
    Read the file of a waiting order; `name` is what messages call it.

    Raises:
        InvalidInputError: The schema refuses it.
    """
    document = yaml11.load(data, name=name, schema=_WAITING)
    spec = document["spec"]
    return WaitingOrder(
        order=OrderId(document["metadata"]["name"]),
        team=TeamName(spec["team"]),
        kit=spec["kit"],
        requester=spec["requester"],
        commit=CommitSha(spec["commit"]),
        since=spec["since"],
        approval=spec["approval"],
        proof=spec.get("proof", ""),
        account=spec.get("account", 0),
    )


def parse_approvals(data: str | bytes, *, name: str) -> tuple[Agreement, ...]:
    """
    Read the file of agreements.

    Raises:
        InvalidInputError: The schema refuses it.
    """
    entries = yaml11.load(data, name=name, schema=_APPROVALS)["spec"]["approvals"]
    return tuple(
        Agreement(**{key: entry[key] for key in _AGREEMENT["required"]}) for entry in entries
    )
