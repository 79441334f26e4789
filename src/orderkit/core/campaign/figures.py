"""Campaigns in figures, for monitoring: states, waves, and what became of orders. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from orderkit.core.campaign.deciding import OrderPhase
from orderkit.core.campaign.record import CampaignRecord, State
from orderkit.core.campaign.view import NOT_STARTED

UNREADABLE = "unreadable"
STATES = (NOT_STARTED, *get_args(State), UNREADABLE)
_OUTCOMES = frozenset(map(str, OrderPhase))


@dataclass(frozen=True, slots=True)
class CampaignFigures:
    """How many of what there are."""

    states: Counter[str] = field(default_factory=Counter)
    """Campaigns by state."""
    waves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the campaign's state, and ``over`` or ``open``."""
    orders: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the campaign's state and the order's outcome; ``open``: none is recorded."""

    @classmethod
    def of(cls, record: CampaignRecord | None) -> CampaignFigures:
        """Return the figures of one campaign; without a record it was not started."""
        if record is None:
            return cls(Counter([NOT_STARTED]))
        state, found = record.state, cls(Counter([record.state]))
        for wave in record.waves:
            found.waves[state, "over" if wave.closed else "open"] += 1
            for order in wave.orders:
                outcome = wave.outcomes.get(order)
                result = "open" if outcome is None else outcome.result
                # a record is a file: another word in it must not become a label
                known = result if result in _OUTCOMES or result == "open" else "other"
                found.orders[state, known] += 1
        return found

    @classmethod
    def unreadable(cls) -> CampaignFigures:
        """Return the figures of a campaign whose record cannot be read."""
        return cls(Counter([UNREADABLE]))

    @classmethod
    def total(cls, each: Iterable[CampaignFigures]) -> CampaignFigures:
        """Return the sums."""
        found = cls()
        for one in each:
            found.states.update(one.states)
            found.waves.update(one.waves)
            found.orders.update(one.orders)
        return found
