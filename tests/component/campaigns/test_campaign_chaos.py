"""Two processes run one campaign, are killed and lose answers, while people change orders."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from bays import EVE, Bay, ask, merge, new_bay, set_
from commands import Command
from faultproxy import FAULTS_OF_A_BAD_LINE, Seeded, open_proxy
from pusher import Pusher
from tests.component.campaigns.conftest import Desk, NewDesk

from ground.errors import ConflictError, IncompleteError, OrderkitError
from orderkit.adapters.forges import answers
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import token
from orderkit.core.campaign.definition import STEP_TRAILER
from orderkit.flows.campaign import starting
from orderkit.flows.campaign.running import run
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import MergeStyle
from orderkit_standins.serve_platform import Running

if TYPE_CHECKING:
    from chances import Chances

TEAM = "chaos-bays"
_WRITES = ("write", "ensure_branch", "open_pull", "update_pull")


class KilledError(BaseException):
    """The process ended here."""


@dataclass
class MortalForge:
    """A forge whose client is killed before or after one of its next writes."""

    forge: Any
    dice: random.Random
    left: int
    is_dead: bool = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.forge, name)
        if name not in _WRITES:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.is_dead or self.left == 0:
                was_dead, self.is_dead = self.is_dead, True
                if not was_dead and self.dice.random() < 0.5:
                    found(*arguments, **named)  # carried out, and nobody learns of it
                raise KilledError
            return found(*arguments, **named)

        return call


@dataclass
class Worker:
    """Somebody who starts the campaign again and again until it is over."""

    desk: Desk
    platform: Platform
    dice: random.Random
    lives: int
    deaths: int = 0
    errors: list[str] = field(default_factory=list)

    def work(self) -> None:
        while True:
            platform = self.platform
            if self.deaths < self.lives:
                mortal: Any = MortalForge(platform.forge, self.dice, self.dice.randint(1, 5))
                platform = replace(platform, forge=mortal)
            try:
                run(platform, self.desk.name, EVE, timeout_s=90)
            except KilledError:
                self.deaths += 1
            except IncompleteError:  # only people can go on
                time.sleep(0.2)
            except OrderkitError as error:
                self.errors.append(str(error))
                if len(self.errors) > 40:
                    return
            else:
                return


@contextmanager
def two_at_work(mine: Desk, site: Running, chances: Chances) -> Iterator[list[Worker]]:
    """Let two processes work on a campaign, one through a bad line, until it is over."""
    with open_proxy(site.settings.forge.url) as proxy:
        dice = chances.random("campaign")
        proxy.plan = Seeded(dice, FAULTS_OF_A_BAD_LINE, write_rate=0.15, read_rate=0.0)
        forge = GiteaForge(
            proxy.url,
            token=token(site.settings.forge),
            signatures=site.platform.signatures,
        )
        behind = replace(site.platform, forge=forge)
        lives = chances.count(4, 20)
        workers = [
            Worker(mine, platform, chances.random(f"worker {number}"), lives)
            for number, platform in enumerate((site.platform, behind))
        ]
        threads = [threading.Thread(target=worker.work) for worker in workers]
        for thread in threads:
            thread.start()
        yield workers
        for thread in threads:
            thread.join()
        forge.close()


@pytest.mark.timeout(300)
def test_each_order_gets_the_change_exactly_once(
    desk: NewDesk,
    site: Running,
    orderkit: Command,
    chances: Chances,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 0.01)
    mine = desk(chances.count(6, 30), team=TEAM)
    mine.start(
        {"compute": {"laps": "has(spec.laps) ? spec.laps * 2 : 3"}, "set": {"note": "done"}},
        which={"kit": "garage", "teams": [TEAM]},
        waves=[{"name": "canary", "count": 2}],
        pace={"inFlight": 3},
    )
    added = new_bay(mine.platform, TEAM)
    with two_at_work(mine, site, chances) as workers:
        budgets = _people(mine, orderkit, chances.random("people"))
    record = mine.record()
    assert record.state == "done", (record.why, [worker.errors[-3:] for worker in workers])
    assert sum(worker.deaths for worker in workers) > 0
    ended = mine.bays[-1].order
    for bay in (*mine.bays[:-1], added):
        _judge(mine, bay)
        if bay in budgets:
            assert bay.spec()["budget"] == budgets[bay]
    results = mine.results()
    assert {r for order, r in results.items() if order != ended} == {"ready"}
    assert sorted(record.orders) == sorted({*mine.orders, added.order})


def _people(mine: Desk, orderkit: Command, dice: random.Random) -> dict[Bay, int]:
    """Change orders, and end the last one, while the campaign goes on."""
    budgets: dict[Bay, int] = {}
    for budget in range(1, 5):
        bay = dice.choice(mine.bays[:-1])
        ask(bay, set_("budget", budget))
        budgets[bay] = budget
        if budget == 1:
            with suppress(ConflictError):  # the campaign was first
                ask(mine.bays[0], set_("laps", 50))
    assert orderkit("destroy", mine.bays[-1].order, "--yes").code == 0
    return budgets


def _judge(mine: Desk, bay: Bay) -> None:
    """Check that an order has one commit of the campaign, which did what its file says."""
    (commit,) = mine.commits(bay)
    assert commit.trailers[STEP_TRAILER].endswith(".1")
    before, after = bay.spec(commit.parents[0]), bay.spec(commit.id)
    assert after["laps"] == (before["laps"] * 2 if "laps" in before else 3)
    assert after["note"] == "done"


FATES = ("merge", "rebase", "squash", "close", "push")
"""What people do with a pull request; before it is merged, if it is not closed."""


@pytest.mark.timeout(300)
def test_each_order_is_proposed_once_whatever_people_do_with_it(
    desk: NewDesk,
    site: Running,
    chances: Chances,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 0.01)
    mine = desk(chances.count(5, 25))
    mine.start({"set": {"colour": "red"}})
    fates = {bay: FATES[number % len(FATES)] for number, bay in enumerate(mine.bays)}
    with two_at_work(mine, site, chances) as workers:
        for bay, fate in fates.items():
            _meet(bay, fate, tmp_path, token(site.settings.forge))
    record = mine.record()
    assert record.state == "done", (record.why, [worker.errors[-3:] for worker in workers])
    assert sum(worker.deaths for worker in workers) > 0
    for bay, fate in fates.items():
        pulls = list(bay.platform.forge.pulls(bay.repo, state="all"))
        assert len(pulls) == 1, fate
        assert bay.spec().get("colour") == (None if fate == "close" else "red"), fate
    outcomes = mine.record().waves[0].outcomes
    for bay, fate in fates.items():
        outcome = outcomes[bay.order]
        assert outcome.result == ("skipped" if fate == "close" else "ready"), (fate, outcome)

    starting.revert(mine.platform, mine.name, EVE)
    assert mine.run().state == "reverted"
    outcomes = mine.record().waves[0].outcomes
    for bay, fate in fates.items():
        outcome = outcomes[bay.order]
        assert outcome.result == ("skipped" if fate == "close" else "kept"), (fate, outcome)
        is_by_hand = "rebased or squashed: revert its commits by hand" in outcome.why
        assert is_by_hand == (fate in ("rebase", "squash")), (fate, outcome)


def _meet(bay: Bay, fate: str, folder: Path, password: str) -> None:
    """Do with a pull request what people do."""
    forge = bay.platform.forge
    (pull,) = until(
        SystemClock(), lambda: list(forge.pulls(bay.repo)), bool,
        timeout_s=90, goal=f"a pull request in {bay.repo}",
    )  # fmt: skip
    if fate == "close":
        forge.close_pull(bay.repo, pull.number)
        return
    if fate == "rebase":
        ask(bay, set_("laps", 7))
        (folder / bay.name).mkdir()
        url = f"{forge.base_url}/{bay.repo}.git"
        pusher = Pusher.cloned(folder / bay.name, url, forge.user(), password)
        pusher.git("checkout", "--quiet", pull.head)
        (pusher.clone / ".git/info/attributes").write_text("*.yaml merge=union\n")
        pusher.git("rebase", "--quiet", "origin/main")
        pusher.git("push", "--quiet", "--force", "origin", pull.head)
    if fate == "push":
        bay.put({PurePosixPath("NOTES.md"): "mine too\n"}, branch=pull.head)
    merge(bay, pull.number, MergeStyle.SQUASH if fate == "squash" else MergeStyle.MERGE)
