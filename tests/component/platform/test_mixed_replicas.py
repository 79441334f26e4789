"""
A replica of the service of 0.2.0 and one of this release, on one ledger: a rolling upgrade.

The pack is still that of 0.2.0: it is upgraded when the replicas are. See `test_mixed_releases`.
That this release ends an order is tried there: 0.2.0's embedded Argo CD does not deliver what it
writes (``directory.include``), which a real one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from servedprocess import served_process
from tests.component.platform.test_mixed_releases import old_platform, unpacked

from ground.names import MAIN, OrderId, TeamName
from orderkit.cli.connecting import SECRET_HEADER, connect, load_settings, token
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform, ledger_snapshot, read_text
from orderkit.flows.repeating import until

TEAMS = tuple(f"bay{number}" for number in range(1, 8))
ADA = "user:default/ada"
_S = 240
pytestmark = pytest.mark.soak


@dataclass(frozen=True)
class Replicas:
    """Both, and their platform as this release connects to it."""

    urls: dict[str, str]
    secret: str
    platform: Platform

    def ask(self, release: str, method: str, path: str, **body: Any) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method,
                f"{self.urls[release]}{path}",
                headers={SECRET_HEADER: self.secret},
                json={**body, "requester": ADA} if body else None,
                timeout=_S,
            )

    def place(self, release: str, team: str) -> requests.Response:
        values = {"team_name": team, "stage": "stage1"}
        return self.ask(release, "POST", "/v1/tasks", template="garage", values=values, id=team)

    def change(self, release: str, stage: str) -> requests.Response:
        path = f"/v1/orders/garage-{TEAMS[-1]}/changes"
        return self.ask(release, "POST", path, values={"stage": stage})

    def end(self, release: str, order: str) -> requests.Response:
        return self.ask(release, "POST", f"/v1/orders/{order}/end", confirm=order)

    def orders(self, release: str) -> set[str]:
        return {row["order"] for row in self.ask(release, "GET", "/v1/orders").json()["orders"]}

    def at_once(self, *calls: Any) -> list[requests.Response]:
        """Make calls, given as tuples of a method and its arguments, at the same time."""
        with ThreadPoolExecutor(len(calls)) as threads:
            return [f.result() for f in [threads.submit(*call) for call in calls]]


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    home = tmp_path_factory.mktemp("home")
    site = unpacked(home)
    with old_platform(site, *(f"--team={team}" for team in TEAMS)):
        settings = load_settings(str(site.file))
        with served_process(site.file, home) as new:
            new.wait_until_ready()
            urls = {"old": str(settings.service.url), "new": new.url}
            yield Replicas(urls, token(settings.service), connect(settings))


def test_both_place_orders_and_no_entry_is_lost(replicas: Replicas) -> None:
    *apart, shared = TEAMS
    turns = [("old", "new")[number % 2] for number in range(len(apart))]
    calls = [(replicas.place, release, team) for release, team in zip(turns, apart, strict=True)]

    answers = replicas.at_once(
        *calls, (replicas.place, "old", shared), (replicas.place, "new", shared)
    )

    assert {answer.status_code for answer in answers[:-2]} == {201}, [a.text for a in answers]
    assert 201 in {answer.status_code for answer in answers[-2:]}, "one of both places it"
    for answer in answers[-2:]:  # 503: they met in one file, nothing was written, and it says so
        assert answer.status_code in (200, 201) or "repeat" in answer.json()["error"]["hint"]
    assert replicas.place("new", shared).status_code == 200
    wanted = {f"garage-{team}" for team in TEAMS}
    entries = ledger.entries(ledger_snapshot(replicas.platform).blobs)
    assert {entry.order for entry in entries} == wanted
    assert replicas.orders("old") == replicas.orders("new") == wanted


def test_an_entry_that_the_old_one_wrote_again_is_put_back_by_the_new_one(
    replicas: Replicas,
) -> None:
    """0.2.0 writes an entry that it does not know as it would have written it."""
    team = TEAMS[3]
    path = OrderEntry(TeamName(team), OrderId(f"garage-{team}")).application_path

    def entry() -> str | None:
        return read_text(replicas.platform.forge, replicas.platform.ledger, path, MAIN)

    before = entry()
    assert before is not None
    assert replicas.place("old", team).status_code in (200, 201)
    assert entry() != before, "else this says nothing"

    assert replicas.place("new", team).status_code in (200, 201)

    assert entry() == before


def test_both_propose_one_change_and_there_is_one_pull_request(replicas: Replicas) -> None:
    answers = replicas.at_once(
        (replicas.change, "old", "stage2"), (replicas.change, "new", "stage2")
    )

    assert {answer.status_code for answer in answers} == {201}
    assert {answer.json()["pull"]["number"] for answer in answers} == {1}


def test_the_old_one_ends_what_the_new_one_placed_and_the_new_one_knows(
    replicas: Replicas,
) -> None:
    order = f"garage-{TEAMS[1]}"

    until(
        replicas.platform.clock,
        lambda: replicas.end("old", order).json()["state"],
        lambda state: state == "ended",
        timeout_s=_S,
        goal="the end",
    )

    assert order not in replicas.orders("old")
    shown = replicas.ask("new", "GET", f"/v1/orders/{order}/end").json()
    assert shown["state"] == "ended"
    assert shown["repository"] == "archive"
    refused = replicas.place("new", TEAMS[1])
    assert refused.status_code == 409, refused.text
    assert "the order ended" in refused.json()["error"]["message"]
