"""Campaigns carried out by Jobs, a coordinator and one a wave: killed, failed, paused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

import container
import pytest
from bays import EVE
from commands import Command
from jobroom import furnish, runner_of
from jobrunner import JOB, Attempt, JobRunner
from tests.component.campaigns.conftest import Desk, NewDesk

from orderkit.core.campaign.cluster_jobs import SHARDS_MAX, shard_of
from orderkit.core.portal.runner_job import NAMESPACE
from orderkit.flows.campaign import starting
from orderkit.flows.repeating import until
from orderkit_standins.serve_platform import Running

_WHY = container.reason_not_possible()
pytestmark = pytest.mark.skipif(bool(_WHY), reason=f"no containers here: {_WHY}")
BREAKS = {"set": {"pit": {"bays": 99}}}
"""The station refuses this, and no schema does."""
QUICK = {"ready": "40s", "failing": "1s"}


@pytest.fixture(scope="module")
def room(site: Running) -> Running:
    furnish(site)
    return site


@dataclass
class Floor:
    """Runs the Jobs of one campaign as they appear."""

    site: Running
    desk: Desk
    folder: Path
    on_start: Callable[[int, Popen[bytes]], None] = lambda *_: None
    ends: dict[str, dict[int, list[Attempt]]] = field(default_factory=dict)
    """Of the Jobs of waves."""
    _threads: list[threading.Thread] = field(default_factory=list)

    def carry_out(self) -> list[Attempt]:
        """Run the newest coordinator to its end, and the Jobs that it starts."""
        coordinator = self.names("c-")[-1]
        outcome: list[Attempt] = []
        runner = runner_of(self.site, self.folder / "coordinator")
        main = threading.Thread(target=lambda: outcome.extend(runner.run(NAMESPACE, coordinator)))
        main.start()
        while main.is_alive():
            for name in self.names("w"):
                if name not in self.ends:
                    self.ends[name] = {}
                    thread = threading.Thread(target=self._wave, args=(name,))
                    thread.start()
                    self._threads.append(thread)
            time.sleep(0.1)
        for thread in self._threads:
            thread.join()
        return outcome

    def _wave(self, name: str) -> None:
        runner: JobRunner = runner_of(self.site, self.folder / "waves", self.on_start)
        self.ends[name] = runner.run_indexes(NAMESPACE, name)

    def names(self, step: str) -> list[str]:
        """Return the campaign's Jobs of a kind, oldest first."""
        found = self.site.platform.cluster.list(JOB, namespace=NAMESPACE).items
        prefix = f"campaign-{self.desk.name}-{self.desk.record().id[-8:]}-{step}"
        made = [each["metadata"] for each in found if each["metadata"]["name"].startswith(prefix)]
        return [
            meta["name"] for meta in sorted(made, key=lambda meta: int(meta["resourceVersion"]))
        ]


@pytest.fixture
def floor(room: Running, tmp_path: Path) -> Callable[..., Floor]:
    return lambda desk, **more: Floor(room, desk, tmp_path / "jobs", **more)


def test_each_order_is_changed_once_by_the_job_of_its_wave(
    desk: NewDesk, orderkit: Command, floor: Callable[..., Floor]
) -> None:
    mine = desk(5)
    file = mine.file(waves=[{"name": "canary", "count": 1}], pace={"inFlight": 4})

    begun = orderkit("campaign", "start", str(file), "--in-cluster", "--shards", "3")

    assert begun.code == 0, begun.err
    assert f"orderkit campaign status {mine.name}" in begun.out
    here = floor(mine)
    (attempt,) = here.carry_out()
    assert attempt.code == 0, attempt.output
    assert mine.record().state == "done"
    assert mine.results() == dict.fromkeys(mine.orders, "ready")
    for bay in mine.bays:
        (commit,) = mine.commits(bay)
        assert bay.spec()["stage"] == "stage2"
        assert commit.requester.startswith("user:default/")
    assert [len(ends) for ends in here.ends.values()] == [1, 3], (
        "a canary of one, then three shards"
    )
    assert [[e.code for e in tries] for ends in here.ends.values() for tries in ends.values()] == [
        [0]
    ] * 4


def test_pods_that_are_killed_change_nothing_twice(
    desk: NewDesk, orderkit: Command, floor: Callable[..., Floor]
) -> None:
    mine, killed = desk(4), []

    def kill_the_first(attempt: int, process: Popen[bytes]) -> None:
        if attempt == 1:
            time.sleep(1.0)
            killed.append(process.pid)
            container.kill(process)

    file = mine.file(pace={"inFlight": 4})
    assert orderkit("campaign", "start", str(file), "--in-cluster", "--shards", "2").code == 0
    here = floor(mine, on_start=kill_the_first)

    (attempt,) = here.carry_out()

    assert attempt.code == 0, attempt.output
    assert len(killed) == 2
    assert mine.results() == dict.fromkeys(mine.orders, "ready")
    assert [len(mine.commits(bay)) for bay in mine.bays] == [1] * 4


def test_the_stop_rule_ends_the_wave_and_takes_it_back(
    desk: NewDesk, orderkit: Command, floor: Callable[..., Floor]
) -> None:
    mine = desk(3)
    before = [bay.spec() for bay in mine.bays]
    file = mine.file(BREAKS, how="direct", gates=QUICK, stop={"then": "takeBack"})
    assert orderkit("campaign", "start", str(file), "--in-cluster", "--shards", "2").code == 0
    here = floor(mine)

    attempts = here.carry_out()

    assert attempts[-1].code == 4, attempts[-1].output
    assert mine.record().state == "stopped"
    assert "orders failed (none may fail)" in mine.record().why
    assert [bay.spec() for bay in mine.bays] == before
    assert here.names("w") == [], "the Job of the wave is gone before it is taken back"


def test_a_campaign_that_is_paused_goes_on_in_another_job(
    desk: NewDesk, orderkit: Command, floor: Callable[..., Floor]
) -> None:
    mine = desk(2)
    file = mine.file(waves=[{"count": 1}, {"approve": True}])
    assert orderkit("campaign", "start", str(file), "--in-cluster").code == 0
    here = floor(mine)

    (first,) = here.carry_out()
    assert (first.code, mine.record().state) == (0, "paused")
    assert orderkit("campaign", "resume", mine.name, "--in-cluster").code == 0
    (second,) = here.carry_out()

    assert (second.code, mine.record().state) == (0, "done")
    assert len(here.names("c-")) == 2
    assert [len(mine.commits(bay)) for bay in mine.bays] == [1, 1]


def test_the_rest_of_a_wave_that_was_paused_goes_to_another_job(
    desk: NewDesk, orderkit: Command, floor: Callable[..., Floor]
) -> None:
    mine = desk(4)
    file = mine.file(pace={"perMinute": 2})
    words = ("--in-cluster", "--shards", "1")
    assert orderkit("campaign", "start", str(file), *words).code == 0
    here = floor(mine)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(here.carry_out)
        until(
            mine.platform.clock,
            lambda: [len(mine.commits(bay)) for bay in mine.bays],
            lambda counts: sum(counts) == 2,
            timeout_s=60,
            goal="two orders changed in the first minute",
        )
        starting.pause(mine.platform, mine.name, EVE, "lunch")
        assert [attempt.code for attempt in first.result()] == [0]
    assert orderkit("campaign", "resume", mine.name, *words).code == 0

    (second,) = here.carry_out()

    assert (second.code, mine.record().state) == (0, "done"), second.output
    assert len(here.names("w")) == 2
    assert [len(mine.commits(bay)) for bay in mine.bays] == [1] * 4


def test_more_shards_than_the_policy_allows_are_refused(desk: NewDesk, orderkit: Command) -> None:
    policy = (Path(__file__).parents[3] / "day2/job/policies.yaml").read_text()
    assert f"parallelism.orValue(1) <= {SHARDS_MAX} &&" in policy
    assert f"completions.orValue(1) <= {SHARDS_MAX} &&" in policy
    mine = desk(0)
    many = f"--shards={SHARDS_MAX + 1}"

    for words in (("carry", "x"), ("start", str(mine.file()), "--in-cluster")):
        refused = orderkit("campaign", *words, many)
        assert (refused.code, "--shards 50, or fewer" in refused.err) == (2, True), refused.err
    assert mine.ledger_commits() == []


def test_starting_twice_makes_one_coordinator(
    desk: NewDesk, orderkit: Command, floor: Callable[..., Floor]
) -> None:
    mine = desk(1)
    file = mine.file()

    for _ in range(2):
        assert orderkit("campaign", "start", str(file), "--in-cluster").code == 0

    assert len(floor(mine).names("c-")) == 1
    starting.stop(mine.platform, mine.name, EVE, "enough")


def test_an_order_without_work_is_passed_over(
    desk: NewDesk, orderkit: Command, floor: Callable[..., Floor]
) -> None:
    mine = desk(3)
    file = mine.file({"set": {"stage": "stage1"}})
    assert orderkit("campaign", "start", str(file), "--in-cluster").code == 0

    (attempt,) = floor(mine).carry_out()

    assert attempt.code == 0, attempt.output
    assert mine.results() == dict.fromkeys(mine.orders, "skipped")


def test_shards_have_parts_of_all_orders() -> None:
    orders = [f"garage-bay-{number}" for number in range(1000)]
    dealt = [[o for o in orders if shard_of(o, 8) == shard] for shard in range(8)]

    assert sorted(order for part in dealt for order in part) == sorted(orders)
    assert all(90 < len(part) < 160 for part in dealt)
