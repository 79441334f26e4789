"""
What people and programs see of a campaign: the same on the command line and in the service.

Campaigns in figures, for monitoring: states, waves, and what became of orders. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from ground.shapes import Answer, Known
from orderkit.core.campaign.deciding import OrderFact, OrderPhase
from orderkit.core.campaign.definition import Campaign
from orderkit.core.campaign.record import CampaignRecord, State, WaveRecord

NOT_STARTED = "not started"
_REASONS_MAX = 20


class ReasonView(Answer, frozen=True):
    """Why orders failed, or were left as they are: each reason once."""

    result: str
    why: str
    orders: tuple[str, ...]


class WaveView(Answer, frozen=True):
    """One wave."""

    name: str
    orders: int
    closed: Known
    """When it was over; empty: it is not."""
    counts: Mapping[str, int]
    """How many orders came to what; those that are missing are not begun."""
    reasons: tuple[ReasonView, ...]


class CampaignView(Answer, frozen=True):
    """A campaign, as the ledger's record says."""

    name: str
    reason: str
    kit: str
    kind: str
    """``fields``, ``template``, ``version``, ..."""
    state: str
    why: Known
    by: Known
    """Who brought it into this state."""
    started: Known
    attempt: int
    waves: tuple[WaveView, ...]

    @property
    def orders(self) -> int:
        """How many orders it has."""
        return sum(wave.orders for wave in self.waves)


def view_of(
    campaign: Campaign, record: CampaignRecord | None, facts: Sequence[OrderFact] = ()
) -> CampaignView:
    """
    Return what is seen of a campaign.

    Args:
        facts: What is known of the orders of its present wave, if somebody looked.
    """
    waves = record.waves if record else ()
    current = record.current if record else None
    return CampaignView(
        name=campaign.name,
        reason=campaign.reason,
        kit=campaign.which.kit,
        kind=campaign.what.kind,
        state=record.state if record else NOT_STARTED,
        why=record.why if record else "",
        by=record.by if record else "",
        started=record.started if record else "",
        attempt=record.attempt if record else 1,
        waves=tuple(
            _wave(wave, facts if number == current else ()) for number, wave in enumerate(waves)
        ),
    )


def _wave(wave: WaveRecord, facts: Sequence[OrderFact]) -> WaveView:
    results = {order: (outcome.result, outcome.why) for order, outcome in wave.outcomes.items()}
    results |= {fact.order: (str(fact.phase), fact.why) for fact in facts}
    names = [result for result, _ in results.values()]
    grouped: dict[tuple[str, str], list[str]] = {}
    for order, (result, why) in sorted(results.items()):
        if why:
            grouped.setdefault((result, why.replace(order, "<order>")), []).append(order)
    reasons = sorted(grouped.items(), key=lambda pair: (pair[0][0] != "failed", -len(pair[1])))
    return WaveView(
        wave.name,
        len(wave.orders),
        wave.closed,
        {name: names.count(name) for name in sorted(set(names))},
        tuple(ReasonView(*key, tuple(orders)) for key, orders in reasons[:_REASONS_MAX]),
    )


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
