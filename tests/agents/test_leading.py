"""Leader election: one at a time, whatever the clocks say, and nobody waits for one that left."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from rivals import Rival

from ground.errors import UnreachableError
from ground.objects.kube_objects import ObjectKey
from orderkit.controllers import LEASE, Candidate, LeaderElection, Loop
from orderkit.ports.clock import SystemClock

KEY = ObjectKey(LEASE, "dataset-watcher-datasets", "whisperops")
DURATION_S = 15
DEADLINE_S = 90


def candidate(shop: Any, name: str, cluster: Any = None) -> LeaderElection:
    return LeaderElection(cluster or shop.cluster, shop.clock, Candidate(KEY, name, DURATION_S))


def holder(shop: Any) -> dict[str, Any]:
    found: dict[str, Any] = shop.cluster.get(KEY)["spec"]
    return found


def test_the_first_leads_and_the_second_waits(shop: Any) -> None:
    one, two = candidate(shop, "one"), candidate(shop, "two")

    assert [one.try_acquire(), two.try_acquire(), one.try_acquire(), two.try_acquire()] == [
        True,
        False,
    ] * 2
    assert (one.is_leader(), two.is_leader()) == (True, False)
    assert holder(shop)["leaseTransitions"] == 0


def test_a_leader_that_is_gone_is_followed_after_its_time(shop: Any) -> None:
    one, two = candidate(shop, "one"), candidate(shop, "two")
    one.try_acquire()
    two.try_acquire()
    shop.clock.sleep(DURATION_S)
    early = two.try_acquire()
    shop.clock.sleep(1)

    assert not early
    assert two.try_acquire()
    assert not one.is_leader()
    assert holder(shop) == {**holder(shop), "holderIdentity": "two", "leaseTransitions": 1}
    assert not one.try_acquire()


def test_a_clock_that_is_wrong_takes_no_lease_away(shop: Any) -> None:
    """What the Lease says of times is never compared with our own clock."""
    two = candidate(shop, "two")
    lease = {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "spec": {
            "holderIdentity": "one",
            "leaseDurationSeconds": DURATION_S,
            "renewTime": "1999-01-01T00:00:00.000000Z",
        },
    }
    shop.cluster.create(lease, owner="one")

    assert not two.try_acquire()


def test_a_leader_that_leaves_lets_the_next_one_in_at_once(shop: Any) -> None:
    one, two = candidate(shop, "one"), candidate(shop, "two")
    one.try_acquire()
    two.try_acquire()

    one.release()
    one.release()

    assert not one.is_leader()
    assert two.try_acquire()


def test_leaving_takes_nothing_from_another(shop: Any) -> None:
    one, two = candidate(shop, "one"), candidate(shop, "two")
    one.try_acquire()
    two.try_acquire()
    shop.clock.sleep(DURATION_S + 1)
    two.try_acquire()

    one.release()

    assert holder(shop)["holderIdentity"] == "two"


@dataclass
class Failing:
    """A cluster that does not answer."""

    calls: list[str] = field(default_factory=list)

    def get(self, _: object) -> None:
        self.calls.append("get")
        raise UnreachableError("nobody answers")


def test_a_leader_that_cannot_renew_stops_before_another_may_begin(shop: Any) -> None:
    one = candidate(shop, "one")
    one.try_acquire()
    one._cluster = Failing()  # type: ignore[assignment]  # noqa: SLF001  the API server goes away
    shop.clock.sleep(DURATION_S - 1)

    before = (one.try_acquire(), one.is_leader())
    shop.clock.sleep(1)

    assert before == (True, True)
    assert not one.is_leader()
    assert not one.try_acquire()


def test_of_many_that_begin_together_one_leads(cluster: Any) -> None:
    clock, barrier = SystemClock(), threading.Barrier(8)
    taken = []

    def begin(name: str) -> None:
        leadership = LeaderElection(cluster, clock, Candidate(KEY, name, 60))
        barrier.wait(DEADLINE_S)
        taken.append(leadership.try_acquire())

    threads = [threading.Thread(target=begin, args=(f"candidate-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)

    assert sorted(taken) == [False] * 7 + [True]


def test_a_loop_works_only_while_it_leads_and_gives_the_lease_back(cluster: Any) -> None:
    clock = SystemClock()
    cluster_lock = LeaderElection(cluster, clock, Candidate(KEY, "first", 60))
    cluster_lock.try_acquire()
    turns: list[bool] = []
    leadership = LeaderElection(cluster, clock, Candidate(KEY, "loop", 60))
    loop = Loop(
        lambda may_continue: turns.append(may_continue()),
        clock,
        interval_s=0.01,
        election=leadership,
    )
    thread = threading.Thread(target=loop.run)
    thread.start()
    _wait(loop.ready)
    assert turns == []

    cluster_lock.release()
    assert leadership.try_acquire(), "its own thread would try in 20 s"
    _wait(lambda: len(turns) > 2)
    loop.stop_requested.set()
    thread.join(DEADLINE_S)

    assert all(turns)
    assert cluster.get(KEY)["spec"]["holderIdentity"] == ""


def test_a_pass_with_a_bug_is_logged_and_the_next_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns: list[int] = []

    def work(_: object) -> None:
        turns.append(1)
        if len(turns) < 3:
            raise ZeroDivisionError("a bug")
        loop.stop_requested.set()

    loop = Loop(work, SystemClock(), interval_s=0.001)
    loop.run()

    assert len(turns) == 3
    assert "a bug ended this pass" in caplog.text
    assert loop.alive()


def _wait(probe: Any) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not probe():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.005)


def test_a_lease_that_goes_while_it_is_renewed_makes_nobody_leader(shop: Any) -> None:
    candidate(shop, "one").try_acquire()
    rival: Any = Rival(shop.cluster, "replace", lambda: shop.cluster.delete(KEY))

    one = candidate(shop, "one", rival)

    assert not one.try_acquire()
    assert not one.is_leader()
    assert one.try_acquire(), "the next try makes another"


def test_a_lease_that_cannot_be_given_up_is_left_to_expire(
    shop: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rival: Any = Rival(shop.cluster, "replace", lambda: shop.cluster.delete(KEY))
    one = candidate(shop, "one", rival)
    assert one.try_acquire()

    one.release()

    assert not one.is_leader()
    assert "is left to expire" in caplog.text
