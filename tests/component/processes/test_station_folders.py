"""Folders of stations: one station or several, and what stands in for those that are broken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from compositions.station import State, StationRequest
from orderkit.adapters.folders.station_process import BrokenStation, load_stations

SEVERAL = """
from compositions.station import StationResponse
from .told import word


def first(request):
    response = StationResponse.to(request)
    response.merge_status({"word": word()})
    return response


stations = {"first": first, "second-one": first}
"""


def written(pack: Path, folder: str, **files: str) -> Path:
    for name, text in files.items():
        path = pack / "stations" / folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return pack


def test_a_folder_with_several_stations_gives_each_a_name_below_its_own(tmp_path: Path) -> None:
    pack = written(tmp_path, "line", station=SEVERAL, told='def word():\n    return "hello"\n')
    written(pack, "single", station="def station(request):\n    return None\n")

    found = load_stations(pack)

    assert sorted(found) == ["line/first", "line/second-one", "single"]
    response = found["line/first"](StationRequest(State()))
    assert response.desired.composite.resource["status"] == {"word": "hello"}


@dataclass(frozen=True)
class Case:
    reason: str
    text: str
    told: str


CASES = [
    Case("a mapping that is empty offers nothing", "stations = {}\n", "is not a mapping by name"),
    Case("a list has no names", "stations = [len]\n", "is not a mapping by name"),
    Case("a name with a slash could be another folder's", "stations = {'a/b': len}\n", "'a/b'"),
    Case("what cannot be called is not a station", "stations = {'a': 1}\n", "'a'"),
    Case("a station of another name is none", "def other(request): ...\n", "no station()"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_broken_folder_refuses_and_hurts_no_other(case: Case, tmp_path: Path) -> None:
    pack = written(tmp_path, "bad", station=case.text)
    written(pack, "good", station="def station(request):\n    return None\n")

    found = load_stations(pack)

    assert sorted(found) == ["bad", "good"]
    assert isinstance(found["bad"], BrokenStation)
    assert case.told in found["bad"](StationRequest(State())).results[0].message
