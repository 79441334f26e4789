"""Two teams register the same id at the same moment; one of the writers may be stopped midway."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import roguery
import rogues

from ground.errors import AlreadyOrderedError, OrderkitError
from ground.names import OrderId, TeamName
from orderkit.core.order import ledger, ledger_applications
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.install import doctor_checks
from orderkit.flows.order import placing
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import Platform, ledger_snapshot, write_ledger
from orderkit.ports.forge import Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running
from yamlfiles import yaml11

TEAMS = (TeamName("ae86"), TeamName("rx7"))


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with kit locker and teams ae86 and rx7."""
    folder = tmp_path_factory.mktemp("races")
    pack = rogues.rogue_pack(folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), TEAMS)
    with running(request, on_step=lambda *_: None) as started:
        yield started.platform


def holders(platform: Platform, order: str) -> list[TeamName]:
    """Return the teams for which the ledger delivers an order."""
    blobs = ledger_snapshot(platform).blobs
    return [team for team in TEAMS if order in ledger.living_orders(blobs, team)]


def outcome_of(platform: Platform, team: str, name: str) -> str:
    values = {"team": team, "name": name, "serial": "first"}
    request = placing.TaskRequest("locker", values, Requester(roguery.REQUESTER))
    try:
        placing.order(platform, request, wait_s=None)
    except OrderkitError as error:
        return str(error)
    return "ordered"


def test_an_id_that_two_teams_order_at_once_is_one_teams(platform: Platform) -> None:
    start = Barrier(2)

    def at_once(team: str) -> str:
        start.wait()
        return outcome_of(platform, team, "both")

    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(zip(TEAMS, pool.map(at_once, TEAMS), strict=True))

    first, second = sorted(TEAMS, key=lambda team: outcomes[team] != "ordered")
    assert outcomes[first] == "ordered"
    assert "locker-both is taken" in outcomes[second]
    assert holders(platform, "locker-both") == [first]

    # The same, where the second writer is stopped before it takes its entry back.
    entry = OrderEntry(second, OrderId("locker-both"))
    application = ledger_applications.order_application(
        entry, kit="locker", forge_url=platform.forge.base_url
    )
    operation = Operation(f"register-{entry.order}", roguery.REQUESTER, "locker-both: ordered")
    write_ledger(platform, {entry.application_path: yaml11.dump(application)}, operation)
    finding = next(f for f in doctor_checks.check(platform) if f.check == "ledger")
    assert finding.detail == "several teams have the same order: locker-both"
    assert not register(platform, registration(first)).changed
    with pytest.raises(AlreadyOrderedError, match="locker-both is taken"):
        register(platform, registration(second))
    assert holders(platform, "locker-both") == [first]


def registration(team: TeamName) -> Registration:
    return Registration(OrderId("locker-both"), "locker", team, roguery.REQUESTER)
