"""What an end is asked for, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ground.names import TeamName
from orderkit.core.order.end_record import EndRecord, Phase, Survivor
from orderkit.ports.forge import REASON_TRAILER, agent_notes

OnStep = Callable[[Phase, str], None]
"""Told of each phase that is over, and what was seen."""


@dataclass(frozen=True, slots=True)
class EndRequest:
    """What to end, for whom, and what becomes of the repository."""

    order: str
    requester: str
    repository: Survivor | None = None
    """What becomes of the repository. None: as the kit says."""
    timeout_s: float = 300.0
    proof: str = ""
    """What proves the requester; empty: a claim."""
    reason: str = ""
    take: tuple[str, ...] = ()
    """Resources to remove that would survive, by the kit's names (``end.survives``)."""
    only_waiting: bool = False
    """End it only while it waits for approval: what is delivered meanwhile stays."""
    agent: str = ""
    """The AI agent that asks on behalf of the requester."""

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """The trailers of the commits besides the requester."""
        reason = " ".join(self.reason.split()).replace("-->", "→")
        return (*(((REASON_TRAILER, reason),) if reason else ()), *agent_notes(self.agent))


@dataclass(frozen=True, slots=True)
class Ended:
    """The tombstone, and whether this call wrote it."""

    record: EndRecord
    team: TeamName
    changed: bool
