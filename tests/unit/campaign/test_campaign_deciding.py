"""What comes next in a campaign: tables, and random worlds in which anything happens meanwhile."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError
from orderkit.core.campaign.deciding import (
    OrderFact,
    OrderPhase,
    WaveTimes,
    broken_rule,
    decide,
    judged,
)
from orderkit.core.campaign.definition import (
    Campaign,
    FieldValues,
    Gates,
    Pace,
    StopRule,
    Wave,
    What,
    Which,
    turn,
)
from orderkit.core.campaign.record import assigned, late, sampled

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
TODO, MADE, READY, FAILED = (OrderPhase(p) for p in ("todo", "made", "ready", "failed"))
PROPOSED, SKIPPED = OrderPhase.PROPOSED, OrderPhase.SKIPPED


def campaign(**more: Any) -> Campaign:
    which = more.pop("which", Which(kit="garage"))
    what = What(fields=FieldValues(set={"stage": "stage2"}))
    return Campaign(name="mend", reason="because", what=what, which=which, **more)


def facts(*phases: OrderPhase) -> list[OrderFact]:
    return [OrderFact(f"o{number}", phase, "why") for number, phase in enumerate(phases)]


NOON = WaveTimes(NOW)


@dataclass(frozen=True)
class Case:
    reason: str
    phases: Sequence[OrderPhase]
    action: str
    orders: Sequence[str] = ()
    campaign: Campaign = field(default_factory=campaign)
    times: WaveTimes = NOON


CASES = [
    Case("orders are begun as far as there is room", [MADE, TODO, TODO, TODO], "apply",
         ["o1"], campaign(pace=Pace(in_flight=2))),
    Case("what is in flight is waited for", [MADE, MADE, TODO], "wait", (),
         campaign(pace=Pace(in_flight=2))),
    Case("one failure stops before anything else is begun", [FAILED, TODO], "stop"),
    Case("a failure takes the wave back if the file says so", [FAILED, TODO], "takeBack", (),
         campaign(stop=StopRule(then="takeBack"))),
    Case("a tolerated failure does not stop", [FAILED, TODO], "apply", ["o1"],
         campaign(stop=StopRule(failed=2))),
    Case("a share of failures is tolerated", [FAILED, READY, READY, READY], "close", (),
         campaign(stop=StopRule(share=25))),
    Case("more than the share is not", [FAILED, FAILED, READY, READY], "stop", (),
         campaign(stop=StopRule(share=25))),
    Case("no order is begun outside of the windows", [TODO], "wait", (), campaign(),
         WaveTimes(NOW, opens=NOW + timedelta(hours=1))),
    Case("but what is in flight is judged there", [MADE], "wait", (), campaign(),
         WaveTimes(NOW, opens=NOW + timedelta(hours=1))),
    Case("a wave waits for its pause", [TODO], "wait", (),
         campaign(waves=(Wave(pause="1h"),)), WaveTimes(NOW, before_closed=NOW)),
    Case("and begins after it", [TODO], "apply", ["o0"],
         campaign(waves=(Wave(pause="1h"),)),
         WaveTimes(NOW, before_closed=NOW - timedelta(hours=1))),
    Case("open pull requests are waited for", [PROPOSED, READY], "wait", ["o0"]),
    Case("a wave soaks", [READY], "wait", (), campaign(gates=Gates(soak="5m")),
         WaveTimes(NOW, good_since=NOW - timedelta(minutes=4))),
    Case("and is over then", [READY], "close", (), campaign(gates=Gates(soak="5m")),
         WaveTimes(NOW, good_since=NOW - timedelta(minutes=5))),
    Case("where nothing was done nothing soaks", [SKIPPED], "close", (),
         campaign(gates=Gates(soak="5m"))),
    Case("an empty wave is over", [], "close"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_the_next_step_of_a_wave(case: Case) -> None:
    decision = decide(case.campaign, 0, facts(*case.phases), case.times)
    assert (decision.action, decision.orders) == (case.action, tuple(case.orders))


def test_an_order_fails_when_it_is_late_or_fails_for_long() -> None:
    gates = campaign(gates=Gates(ready="10m", failing="1m"))
    orders = [
        OrderFact("young", MADE, "Assembling", age_s=599),
        OrderFact("late", MADE, "Assembling", age_s=600),
        OrderFact("flapping", MADE, "Failing: x", failing_s=59),
        OrderFact("failing", MADE, "Failing: x", failing_s=60),
        OrderFact("broken before", MADE, "Failing: x", failing_s=60, was_unready="Failing: y"),
    ]
    verdicts = judged(gates, orders)
    assert [fact.phase for fact in verdicts] == [MADE, FAILED, MADE, FAILED, SKIPPED]
    assert verdicts[1].why == "not Ready within 10m: Assembling"
    assert "not Ready before the campaign either: Failing: y" in verdicts[4].why


def test_a_stop_names_the_first_order_and_its_reason() -> None:
    why = broken_rule(StopRule(failed=2), facts(FAILED, READY, FAILED))
    assert why == "2 of 3 orders failed (at most 1 may fail): o0: why"


# --- waves


ORDERS = st.sets(st.text("abcdef", min_size=1, max_size=4), max_size=60)
WAVES = st.lists(
    st.one_of(
        st.builds(Wave, count=st.integers(1, 20)),
        st.builds(Wave, share=st.integers(1, 100)),
        st.just(Wave()),
    ),
    max_size=4,
)


@given(orders=ORDERS, waves=WAVES)
def test_every_order_is_in_exactly_one_wave(orders: set[str], waves: list[Wave]) -> None:
    found = assigned(campaign(waves=tuple(waves)), orders)
    assert sorted(order for wave in found for order in wave.orders) == sorted(orders)
    for wave, record in zip(waves, found, strict=False):
        assert wave.count is None or len(record.orders) <= wave.count


@given(orders=ORDERS, seed=st.integers(0, 10**6).map(random.Random), share=st.integers(1, 100))
def test_the_waves_of_a_campaign_are_the_same_wherever_they_are_worked_out(
    orders: set[str], seed: Any, share: int
) -> None:
    mixed = list(orders)
    seed.shuffle(mixed)
    part = campaign(which=Which(kit="garage", share=share))
    assert sampled(part, mixed) == sampled(part, sorted(orders))
    assert len(sampled(part, mixed)) == -(-share * len(orders) // 100)


def test_named_orders_are_in_their_wave_and_strangers_are_refused() -> None:
    canary = campaign(waves=(Wave(name="canary", orders=("b",)), Wave(share=50)))
    found = assigned(canary, ["a", "b", "c"])
    assert [(wave.name, len(wave.orders)) for wave in found] == [
        ("canary", 1), ("wave 2", 2),
    ]  # fmt: skip
    assert found[0].orders == ("b",)
    with pytest.raises(InvalidInputError, match="'b' is named by a wave"):
        assigned(canary, ["a", "c"])


def test_only_an_open_campaign_takes_orders_that_come_later() -> None:
    waves = assigned(campaign(), ["a", "b"])
    assert late(campaign(), ["a", "b", "c"], waves) == ["c"]
    for which in (Which(kit="garage", orders=("a", "b")), Which(kit="garage", share=50)):
        assert late(campaign(which=which), ["a", "b", "c"], waves) == []


# --- pace


@given(
    per_minute=st.integers(1, 20),
    wanted=st.lists(st.tuples(st.integers(0, 30), st.floats(0, 40)), max_size=40),
)
def test_no_minute_has_more_orders_than_the_pace(
    per_minute: int, wanted: list[tuple[int, float]]
) -> None:
    now, begun = 0.0, [0.0][:0]
    for count, pause in wanted:
        now += pause
        allowed = turn(Pace(per_minute=per_minute), begun, now)
        begun += [now] * min(count, allowed.count)
        if allowed.count == 0:
            later = turn(Pace(per_minute=per_minute), begun, now + allowed.wait_s + 0.001)
            assert later.count > 0
    for begin in begun:
        assert sum(begin <= other < begin + 60 for other in begun) <= per_minute


# --- whole campaigns in a world where anything happens


@dataclass
class World:
    """Orders as Git and the cluster have them, and whoever works on them by `decide`."""

    campaign: Campaign
    orders: list[str]
    bad: set[str]
    dice: Any
    commits: dict[str, int] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    age: dict[str, float] = field(default_factory=dict)
    stopped: str = ""
    is_over: bool = False

    def facts(self) -> list[OrderFact]:
        return judged(self.campaign, [self._fact(order) for order in self.orders])

    def _fact(self, order: str) -> OrderFact:
        if order in self.ended:
            return OrderFact(order, SKIPPED)
        if order not in self.commits:
            return OrderFact(order, TODO)
        age = self.age[order]
        if order in self.bad:
            return OrderFact(order, MADE, "Failing", "c", age, age)
        return OrderFact(order, MADE if age < 3 else READY, "", "c", age)

    def work(self) -> None:
        """One step of one process, which may be killed in the middle of it."""
        found = self.facts()
        decision = decide(self.campaign, 0, found, WaveTimes(NOW))
        if decision.action == "apply":
            for order in decision.orders[: self.dice.randint(0, len(decision.orders))]:
                if order not in self.commits:  # what `work_on` looks for in Git
                    self.commits[order] = self.commits.get(order, 0) + 1
                    self.age[order] = 0.0
        elif decision.action in ("stop", "takeBack"):
            self.stopped = decision.why
        elif decision.action == "close":
            self.is_over = True

    def pass_time(self) -> None:
        for order in self.age:
            self.age[order] += self.dice.choice([0.5, 1.0, 20.0])
        if self.dice.random() < 0.1:
            self.ended.add(self.dice.choice(self.orders))


@given(
    count=st.integers(1, 25),
    bad=st.integers(0, 4),
    failed=st.integers(1, 3),
    in_flight=st.integers(1, 6),
    dice=st.integers(0, 10**6).map(random.Random),
)
def test_every_order_is_changed_once_or_the_campaign_has_stopped(
    count: int, bad: int, failed: int, in_flight: int, dice: Any
) -> None:
    """Whatever ends, fails or is killed: a bad change meets few orders."""
    orders = [f"o{number}" for number in range(count)]
    rules = campaign(
        stop=StopRule(failed=failed),
        pace=Pace(in_flight=in_flight),
        gates=Gates(ready="30s", failing="10s"),
    )
    world = World(rules, orders, set(dice.sample(orders, min(bad, count))), dice)
    for _ in range(400):
        if world.stopped or world.is_over:
            break
        world.work()
        world.pass_time()
    assert world.stopped or world.is_over
    assert set(world.commits.values()) <= {1}
    met = {order for order in world.commits if order in world.bad}
    assert len(met - world.ended) <= failed + in_flight - 1
    if world.is_over:
        assert all(o in world.commits or o in world.ended for o in orders)
        assert len(met - world.ended) < failed
