"""The gRPC server answers what the in-process runner answers, for every station of every pack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chances import Chances
from functionwire import Authority, Client, FunctionServer, normal, piped
from recordedrequests import recorded, varied

from compositions.station import station_runner
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.folders.station_process import load_stations

ROOT = Path(__file__).parents[3]
PACKS = [reference_pack(), *sorted(p.parent for p in (ROOT / "packs").glob("*/stations"))]
SHORT, FULL = 20, 1000


@pytest.fixture(scope="module", params=PACKS, ids=lambda pack: pack.name)
def pack(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture(scope="module")
def client(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("function")
    authority = Authority()
    certificates = authority.mounted(folder / "server", "function-orderkit")
    crossplane = authority.mounted(folder / "client", "crossplane")
    arguments = ("--pack", str(pack), "--tls-certs-dir", str(certificates))
    with (
        FunctionServer(folder / "log", *arguments) as server,
        Client.trusted(server.address, crossplane) as client,
    ):
        yield client


def test_the_wire_changes_no_answer(pack: Path, client: Client, chances: Chances) -> None:
    """Recorded requests of the pack's scenarios, then variations with odd values, over TLS."""
    seen = recorded(pack)
    run = station_runner(load_stations(pack))
    asked = {str(request.input["name"]) for request in seen}
    count = chances.count(SHORT, FULL)
    answers = set()

    for request in varied(seen, chances.random(f"wire {pack.name}"), max(count, len(seen))):
        here = normal(run(piped(request)))
        assert client.ask(request) == here
        answers.add(repr(here))

    assert asked == set(load_stations(pack))
    assert len(answers) > len(asked), "variations change answers"
