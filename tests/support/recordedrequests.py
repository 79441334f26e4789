"""Requests that a pack's scenarios send to its stations, and random ones made from them."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compositions.station import Station, StationRequest, StationResponse
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.adapters.folders.station_process import load_stations
from orderkit.core.kit.pack import read_pack
from orderkit_workshop.check.scenario import read_scenario
from orderkit_workshop.stories.try_scenario import prepare
from yamlfiles import yaml11

_MAP = {"type": "object"}
_ODD: tuple[Any, ...] = (
    None,
    "",
    0,
    -1,
    5.0,
    0.1,
    2**53,
    True,
    "5.0",
    "null",
    "naïve 🚗\n${{ x }}",
    [],
    {},
    [1, "two", {"three": 3}],
    {"a": {"b": None}},
)


def recorded(pack: Path) -> list[StationRequest]:
    """Run all scenarios of a pack and return what its stations were asked, in order."""
    seen: list[StationRequest] = []

    def listening(station: Station) -> Station:
        def run(request: StationRequest) -> StationResponse:
            seen.append(copy.deepcopy(request))
            return station(request)

        return run

    stations = {name: listening(found) for name, found in load_stations(pack).items()}
    room, files = pack / "tests/kits", read_pack(read_folder(pack))
    values_file = room / "values.yaml"
    values: Mapping[str, str] = (
        yaml11.load(values_file.read_bytes(), name="values.yaml", schema=_MAP)
        if values_file.is_file()
        else {}
    )
    for kit in files.kit_names:
        trial = prepare(files, kit, stations, values)
        for folder in sorted(p for p in (room / kit).glob("*") if p.is_dir()):
            scenario = read_scenario((folder / "scenario.yaml").read_bytes(), name=folder.name)
            trial.run(scenario, case=folder.name)
    return seen


def varied(
    seen: list[StationRequest], chance: random.Random, count: int
) -> Iterator[StationRequest]:
    """Yield the recorded requests, then variations of them with odd values, `count` in all."""
    for number in range(count):
        request = copy.deepcopy(seen[number % len(seen)])
        if number >= len(seen):
            request = _changed(request, chance)
        yield request


def _changed(request: StationRequest, chance: random.Random) -> StationRequest:
    """Change one to four values; what names the station is left alone three times in four."""
    observed, desired = request.observed, request.desired
    targets: list[Any] = [
        observed.composite.resource,
        desired.composite.resource,
        request.context,
        *(found.resource for found in observed.resources.values()),
        *(found.resource for found in desired.resources.values()),
        *(item for items in request.required.values() for item in items),
    ]
    if chance.random() < 1 / 4:
        targets = [request.input]
    for _ in range(chance.randint(1, 4)):
        _poke(chance.choice(targets), chance)
    if chance.random() < 1 / 5 and observed.resources:
        observed.resources.pop(chance.choice(sorted(observed.resources)))
    if chance.random() < 1 / 5 and request.required:
        gone = chance.choice(sorted(request.required))
        kept = {name: found for name, found in request.required.items() if name != gone}
        return replace(request, required={**kept, gone: ()} if chance.random() < 1 / 2 else kept)
    return request


def _poke(value: Any, chance: random.Random) -> None:
    """Descend at random and set, remove or add one entry."""
    while True:
        keys: list[Any] = sorted(value) if isinstance(value, dict) else list(range(len(value)))
        inner = [key for key in keys if isinstance(value[key], dict | list) and value[key]]
        if not inner or chance.random() < 1 / 4:
            break
        value = value[chance.choice(inner)]
    if keys and chance.random() < 3 / 4:
        key = chance.choice(keys)
        if isinstance(value, dict) and chance.random() < 1 / 3:
            del value[key]
        else:
            value[key] = copy.deepcopy(chance.choice(_ODD))
    elif isinstance(value, dict):
        value[f"odd{chance.randint(0, 9)}"] = copy.deepcopy(chance.choice(_ODD))
