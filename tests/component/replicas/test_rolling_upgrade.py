"""Two replicas are replaced one after the other, while clients read, order and change."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import requests
from networks import Balancer
from replicas import Client, Replica, Replicas, ServedPlatform
from tests.component.replicas.conftest import AddTeam, Figures

from orderkit.core.order import ledger
from orderkit.flows.platform import ledger_snapshot

PROPAGATION_S, PRE_STOP_S = 0.2, 0.8
"""After what time the balancer forgets a Pod that ends, and how long the Pod waits for that."""
STAGES = ("stage2", "stage3", "stage1")


@dataclass
class Load:
    """Clients that ask without a pause until it is over, and the answers."""

    client: Client
    answers: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def note(self, what: str, ask: Callable[[], requests.Response]) -> None:
        try:
            answer = ask()
            problem = "" if answer.ok else f"{answer.status_code} {answer.text}"
        except requests.RequestException as error:
            problem = repr(error)
        self.answers[what] += not problem
        if problem:
            self.failed.append(f"{what}: {problem}")

    def read(self, path: str) -> None:
        while not self.over.is_set():
            self.note("read", partial(self.client.ask, "GET", path))

    def place(self, teams: list[str]) -> None:
        for team in teams:
            self.note("order", partial(self.client.place, team))

    def change(self, team: str) -> None:
        number = 0
        while not self.over.is_set():
            stage, key = STAGES[number % len(STAGES)], f"{team}-{number}"
            self.note(team, partial(self.client.change, team, stage, key))
            number += 1


def roll(replicas: Replicas, balancer: Balancer, old: Replica) -> Replica:
    """Replace a replica as a Deployment does; return the new one, which is ready."""
    threading.Timer(PROPAGATION_S, balancer.take_out, (old.url,)).start()
    time.sleep(PRE_STOP_S)
    assert old.end() == 0
    new = replicas.start()
    balancer.add(new.url)
    return new


def test_a_rolling_upgrade_under_load_fails_no_request_and_writes_everything_once(
    platform: ServedPlatform, replicas: Replicas, add: AddTeam, figures: Figures
) -> None:
    changing, ordering = (
        [add(f"{verb}-{n}") for n in range(4)] for verb in ("changing", "ordering")
    )
    balancer = Balancer()
    old = [replicas.start() for _ in range(2)]
    for replica in old:
        balancer.add(replica.url)
    load = Load(Client(balancer.url, replicas.secret))
    load.place(changing)
    with ThreadPoolExecutor() as threads:
        work = [
            *(threads.submit(load.change, team) for team in changing[:2]),
            threads.submit(load.place, ordering),
            threads.submit(load.read, "/v1/orders"),
            threads.submit(load.read, f"/v1/orders/garage-{changing[2]}"),
        ]
        new = [roll(replicas, balancer, replica) for replica in old]
        load.over.set()
        for each in work:
            each.result()
    figures.append(f"rolling upgrade: {load.answers.total()} requests, {len(load.failed)} failed")

    assert load.failed == []
    assert load.answers["read"] > 20
    entries = Counter(
        str(e.order) for e in ledger.entries(ledger_snapshot(platform.platform).blobs)
    )
    for team in (*changing, *ordering):
        assert entries[f"garage-{team}"] == 1
        assert platform.commits(team) == 1 + load.answers[team]
    assert load.answers[changing[0]] > 0
    assert [replica.end() for replica in new] == [0, 0]
    balancer.close()
