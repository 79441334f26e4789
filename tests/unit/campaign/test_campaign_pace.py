"""A campaign whose pace is left open uses what its forge allows. In simulated time, counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.pacing import Clock, ForgePacer
from orderkit.adapters.github.transport import PER_HOUR, PER_MINUTE, Pacer
from orderkit.adapters.gitlab.transport import GitLabPacer
from orderkit.core.campaign.deciding import OrderFact, OrderPhase, WaveTimes, decide
from orderkit.core.campaign.definition import BATCH, Campaign, FieldValues, What, Which, turn
from orderkit.ports.urgency import background

GITLAB_PER_MINUTE = 400
READS = 3
"""Requests for an order besides the one that writes."""
OPEN = Campaign(
    name="tune",
    reason="test",
    what=What(fields=FieldValues(remove=("note",))),
    which=Which("garage"),
)
NOW = datetime(2026, 11, 28, tzinfo=UTC)


@dataclass
class Forge:
    """Counts requests by fixed minutes, says in headers what is left, and refuses more."""

    per_minute: int
    prefix: str
    now: float = 0.0
    at: list[float] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def answer(self) -> ForgeResponse:
        begun = self.now // 60 * 60
        left = self.per_minute - sum(at >= begun for at in self.at[-self.per_minute :])
        assert left > 0, "more than the forge allows"
        self.at.append(self.now)
        self.now += 0.02
        words = {"limit": self.per_minute, "remaining": left - 1, "reset": int(begun + 60)}
        headers = {f"{self.prefix}{word}": str(value) for word, value in words.items()}
        return ForgeResponse(200, headers, b"{}")


@dataclass
class Simulation:
    """The steps of a campaign, as `flows.campaign.running` takes them, with these ports."""

    forge: Forge
    pacer: ForgePacer
    ready_s: float
    """How long an order takes to be Ready."""
    begun_s: list[float] = field(default_factory=list)
    made_s: dict[str, float] = field(default_factory=dict)

    def carry_out(self, orders: int, until_s: float) -> None:
        names = [f"garage-{number:05d}" for number in range(orders)]
        while self.forge.now < until_s:
            facts = [OrderFact(name, self.phase(name)) for name in names]
            decision = decide(OPEN, 0, facts, WaveTimes(NOW))
            if decision.action == "close":
                return
            now = turn(OPEN.pace, self.begun_s, self.forge.now)
            if decision.action == "wait" or not now.count:
                self.forge.sleep(now.wait_s or 1.0)
                continue
            for name in decision.orders[: min(now.count, BATCH)]:
                self.begun_s.append(self.forge.now)
                self.change(name)

    def phase(self, name: str) -> OrderPhase:
        if name not in self.made_s:
            return OrderPhase.TODO
        is_ready = self.forge.now - self.made_s[name] >= self.ready_s
        return OrderPhase.READY if is_ready else OrderPhase.MADE

    def change(self, name: str) -> None:
        with background():
            for number in range(READS + 1):
                creates = number == READS
                self.pacer.send("api", self.forge.answer, creates=creates)
        self.made_s[name] = self.forge.now


def gitlab(ready_s: float) -> Simulation:
    forge = Forge(GITLAB_PER_MINUTE, "ratelimit-")
    return Simulation(forge, GitLabPacer(clock=forge.clock), ready_s)


def test_four_fifths_of_gitlabs_headers_are_used() -> None:
    """GitLab.com: 400 requests a minute; a tenth is left to people."""
    found = gitlab(ready_s=5)
    found.carry_out(550, until_s=300)

    assert len(found.forge.at) >= 0.8 * 5 * GITLAB_PER_MINUTE


def test_four_fifths_of_githubs_limits_are_used_and_no_more_than_they_allow() -> None:
    """80 changes a minute, 500 an hour; whatever other requests an order takes."""
    forge = Forge(10_000, "x-ratelimit-")
    pacer = Pacer(per_minute=PER_MINUTE, per_hour=PER_HOUR, clock=forge.clock)
    found = Simulation(forge, pacer, ready_s=5)
    found.carry_out(1_000, until_s=7_200)

    made = sorted(found.made_s.values())
    for begin, length_s, allowed in ((0, 60, PER_MINUTE), (0, 3_600, PER_HOUR)):
        used = sum(begin <= at < begin + length_s for at in made)
        assert 0.8 * allowed <= used <= allowed
    assert sum(3_600 <= at < 7_200 for at in made) >= 0.8 * PER_HOUR


@pytest.mark.parametrize("ready_s", [60, 120])
def test_orders_that_take_long_are_bound_by_those_in_flight(ready_s: float) -> None:
    """Of which there are never more than the pace says: what docs/campaigns.md tells to raise."""
    found = gitlab(ready_s)
    found.carry_out(220, until_s=600)

    a_minute = len(found.made_s) / 10
    assert a_minute == pytest.approx(OPEN.pace.in_flight * 60 / ready_s, rel=0.15)
