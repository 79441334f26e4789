"""Stations are found in a pack's folder; a broken one hurts only its own kit."""

from __future__ import annotations

from pathlib import Path

import pytest

from compositions.station import Resource, State, StationRequest
from orderkit.adapters.folders.station_process import BrokenStation, load_stations

GOOD = """
from compositions.station import StationResponse
from .words import GREETING

def station(request):
    response = StationResponse.to(request)
    response.merge_status({"greeting": GREETING})
    return response
"""


def write(pack: Path, name: str, text: str, **modules: str) -> None:
    folder = pack / "stations" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "station.py").write_text(text)
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


def greeting(pack: Path, name: str) -> object:
    request = StationRequest(State(Resource({"metadata": {"name": "x"}})))
    response = load_stations(pack)[name](request)
    return response.desired.composite.resource["status"]["greeting"]


def test_a_station_may_have_modules_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, "hello", GOOD, words="GREETING = 'hi'")

    assert greeting(tmp_path, "hello") == "hi"


def test_each_load_reads_the_folder_anew(tmp_path: Path) -> None:
    write(tmp_path, "hello", GOOD, words="GREETING = 'hi'")
    old = load_stations(tmp_path)["hello"]
    write(tmp_path, "hello", GOOD, words="GREETING = 'good morning'")

    assert greeting(tmp_path, "hello") == "good morning"
    assert old is not load_stations(tmp_path)["hello"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def station(:", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("other = 1", "stations/broken/station.py defines no station()"),
    ],
    ids=["syntax", "import", "exception", "no function"],
)
def test_a_broken_station_refuses_with_the_reason_and_the_others_work(
    tmp_path: Path, text: str, reason: str
) -> None:
    write(tmp_path, "broken", text)
    write(tmp_path, "hello", GOOD, words="GREETING = 'hi'")

    broken = load_stations(tmp_path)["broken"]

    assert isinstance(broken, BrokenStation)
    message = broken(StationRequest(State())).results[0].message
    assert message.startswith('station "broken" cannot be loaded: ')
    assert reason in message
    assert greeting(tmp_path, "hello") == "hi"


def test_a_folder_without_a_station_is_told_and_a_pack_without_folder_has_none(
    tmp_path: Path,
) -> None:
    assert load_stations(tmp_path) == {}
    (tmp_path / "stations" / "empty").mkdir(parents=True)
    (tmp_path / "stations" / "__pycache__").mkdir()

    found = load_stations(tmp_path)

    assert list(found) == ["empty"]
    assert isinstance(found["empty"], BrokenStation)
