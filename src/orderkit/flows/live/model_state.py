"""How far the live model can be relied on, and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orderkit.core.campaign.figures import CampaignFigures
from orderkit.flows.live.ready_times import Durations


@dataclass(frozen=True, slots=True)
class ModelState:
    """How far the model can be relied on."""

    is_complete: bool
    """Everything was read once."""
    age_s: float
    """For how long rows may be out of date; 0 while every watch is open."""
    orders: int
    restarts: int
    """How many watches broke or expired."""
    waits_for: str
    """What is not read yet, or cannot be; empty if complete."""
    left_out: Mapping[str, str]
    """Kinds of composed objects that may not be read, and why."""
    ledger_commit: str
    """The ledger that rows are from; empty: none was read."""
    rows_due: int = 0
    """Rows that wait to be made again."""
    to_ready: Durations = Durations()  # noqa: RUF009 - frozen
    """How long orders took to their first Ready."""
    campaigns: CampaignFigures = field(default_factory=CampaignFigures)
