"""
What comes next in a wave, given what Git and the cluster show. Pure.

Nothing is remembered between two decisions but what Git says and since when the wave has looked
good, so that whoever continues a campaign decides as the one before would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from orderkit.core.campaign.definition import Campaign, StopRule, duration, seconds


class OrderPhase(StrEnum):
    """How far one order of a wave is."""

    TODO = "todo"
    MADE = "made"
    """The commit is on ``main``; the order is not Ready at it, or a gate is shut."""
    PROPOSED = "proposed"
    """A pull request is open."""
    READY = "ready"
    SKIPPED = "skipped"
    """There is nothing to do: it has the values, it matches no more, or it ended."""
    FAILED = "failed"
    BACK = "takenBack"
    KEPT = "kept"
    """It could not be taken back: somebody changed it since."""


SETTLED = (OrderPhase.READY, OrderPhase.SKIPPED, OrderPhase.BACK, OrderPhase.KEPT)


@dataclass(frozen=True, slots=True)
class OrderFact:
    """What is known about one order."""

    order: str
    phase: OrderPhase
    why: str = ""
    commit: str = ""
    """The campaign's commit; empty: there is none on ``main``."""
    age_s: float = 0.0
    """How old the commit is."""
    failing_s: float = 0.0
    """For how long the order has been Failing without a break."""
    was_unready: str = ""
    """Why it was not Ready before the campaign; empty: it was."""


@dataclass(frozen=True, slots=True)
class WaveTimes:
    """The times that count in a wave."""

    now: datetime
    good_since: datetime | None = None
    """Since when all orders of the wave are settled; None: they are not."""
    before_closed: datetime | None = None
    """When the wave before was over; None: there is none."""
    opens: datetime | None = None
    """When the next window opens; None: one is open, or there are none."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do next."""

    action: Literal["apply", "wait", "close", "stop", "takeBack"]
    orders: tuple[str, ...] = ()
    why: str = ""


def judged(campaign: Campaign, facts: Sequence[OrderFact]) -> list[OrderFact]:
    """Return the facts with those orders failed that do not get Ready in time."""
    return [_judged(campaign, fact) for fact in facts]


def _judged(campaign: Campaign, fact: OrderFact) -> OrderFact:
    gates = campaign.gates
    if fact.phase is not OrderPhase.MADE:
        return fact
    is_late = fact.age_s >= seconds(gates.ready)
    if not is_late and fact.failing_s < seconds(gates.failing):
        return fact
    if fact.was_unready:
        why = f"it was not Ready before the campaign either: {fact.was_unready}"
        return replace(fact, phase=OrderPhase.SKIPPED, why=why)
    why = f"not Ready within {gates.ready}: {fact.why}" if is_late else fact.why
    return replace(fact, phase=OrderPhase.FAILED, why=why)


def broken_rule(rule: StopRule, facts: Sequence[OrderFact]) -> str:
    """Return why the campaign stops, by facts that were judged; empty if it goes on."""
    failed = [fact for fact in facts if fact.phase is OrderPhase.FAILED]
    if rule.share is not None:
        if not failed or 100 * len(failed) <= rule.share * len(facts):
            return ""
        bound = f"at most {rule.share} % may fail"
    elif len(failed) < rule.failed:
        return ""
    else:
        bound = "none may fail" if rule.failed == 1 else f"at most {rule.failed - 1} may fail"
    first = failed[0]
    return f"{len(failed)} of {len(facts)} orders failed ({bound}): {first.order}: {first.why}"


def decide(campaign: Campaign, wave: int, facts: Sequence[OrderFact], times: WaveTimes) -> Decision:
    """
    Return what comes next in a wave.

    Args:
        facts: Of every order of the wave, judged.
    """
    if why := broken_rule(campaign.stop, facts):
        takes_back = campaign.stop.then == "takeBack"
        return Decision("takeBack" if takes_back else "stop", why=why)
    todo = [fact.order for fact in facts if fact.phase is OrderPhase.TODO]
    made = [fact for fact in facts if fact.phase is OrderPhase.MADE]
    if todo:
        if why := _too_early(campaign, wave, times):
            return Decision("wait", why=why)
        room = campaign.pace.in_flight - len(made)
        if room > 0:
            return Decision("apply", tuple(todo[:room]))
    if made:
        return Decision("wait", why=f"{made[0].order}: {made[0].why or 'not Ready yet'}")
    return _after_all(campaign, facts, times)


def _after_all(campaign: Campaign, facts: Sequence[OrderFact], times: WaveTimes) -> Decision:
    """Return what comes next when every order of a wave was begun and none is delivered now."""
    proposed = [fact.order for fact in facts if fact.phase is OrderPhase.PROPOSED]
    if proposed:
        return Decision("wait", tuple(proposed), f"{len(proposed)} pull requests are open")
    soak = duration(campaign.gates.soak)
    if soak and any(fact.phase is OrderPhase.READY for fact in facts):
        since = times.good_since or times.now
        if times.now - since < soak:
            return Decision("wait", why=f"all are Ready; it soaks {campaign.gates.soak}")
    return Decision("close")


def _too_early(campaign: Campaign, wave: int, times: WaveTimes) -> str:
    """Return why no order may be changed now; empty if one may."""
    if times.opens is not None:
        return f"the next window opens at {times.opens.isoformat(timespec='minutes')}"
    pause = duration(campaign.waves[wave].pause) if wave < len(campaign.waves) else timedelta(0)
    if pause and times.before_closed and times.now - times.before_closed < pause:
        begins = times.before_closed + pause
        return f"the wave begins at {begins.isoformat(timespec='seconds')}"
    return ""


def needs_approval(campaign: Campaign, wave: int) -> bool:
    """Say whether somebody has to resume the campaign before a wave begins."""
    return wave < len(campaign.waves) and campaign.waves[wave].approve
