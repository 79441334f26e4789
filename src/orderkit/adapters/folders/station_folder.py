"""
Load the stations of a pack folder.

``stations/<name>/station.py`` defines ``station``; or ``stations``, a mapping by name, and each is
then called ``<folder>/<name>``. A folder is imported as a package under a private name, so two
packs (or two versions of one) never meet in ``sys.modules``. A station runs as part of this process
with all its rights, so only processes that are confined call this, and tests of packs.

A folder that cannot be loaded does not affect the others: its station is a `BrokenStation`, which
refuses every order of that kit with the reason.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import itertools
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from compositions.station import Station, StationRequest, StationResponse, place_of
from ground.errors import OrderkitError

FOLDER, MODULE, FUNCTION, SEVERAL = "stations", "station", "station", "stations"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_loads = itertools.count(1)


class StationLoadError(OrderkitError):
    """A station's folder holds no usable station."""


@dataclass(frozen=True, slots=True)
class BrokenStation:
    """Stands in for a station that could not be loaded and says why."""

    name: str
    error: str

    def __call__(self, request: StationRequest) -> StationResponse:
        """Refuse, so that no existing resource is deleted."""
        response = StationResponse.to(request)
        response.fatal(f'station "{self.name}" cannot be loaded: {self.error}')
        return response


def load_stations(pack: Path) -> Mapping[str, Station]:
    """
    Return the stations of a pack by name, broken ones as `BrokenStation`.

    Loads anew on every call. A pack without ``stations`` has none.
    """
    return stations_in(pack / FOLDER)


def stations_in(root: Path, names: Collection[str] | None = None) -> Mapping[str, Station]:
    """Return the stations of a folder of stations, or of some of its folders."""
    load = next(_loads)
    stations: dict[str, Station] = {}
    for name in folders_of_stations(root) if names is None else names:
        stations |= _stations(root / name, load)
    return stations


def folders_of_stations(root: Path) -> list[str]:
    """Return the names of the folders in which stations are looked for, sorted."""
    folders = root.iterdir() if root.is_dir() else ()
    return sorted(f.name for f in folders if f.is_dir() and not f.name.startswith((".", "_")))


def _stations(folder: Path, load: int) -> dict[str, Station]:
    try:
        return _loaded(folder, f"_orderkit_pack_{load}_{folder.name.replace('-', '_')}")
    except StationLoadError as error:
        return {folder.name: BrokenStation(folder.name, str(error))}


def _loaded(folder: Path, name: str) -> dict[str, Station]:
    if not (folder / f"{MODULE}.py").is_file():
        raise StationLoadError(f"{FOLDER}/{folder.name}/{MODULE}.py is missing")
    try:
        sys.modules[name] = _package(folder, name)
        module = importlib.import_module(f"{name}.{MODULE}")
    except Exception as error:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise StationLoadError(f"{type(error).__name__}: {text}{place_of(error)}") from error
    return _defined(folder.name, module)


def _defined(folder: str, module: ModuleType) -> dict[str, Station]:
    """Return what a module offers: one station, or several by name."""
    stations_by_name: object = getattr(module, SEVERAL, None)
    if stations_by_name is None:
        station_function = getattr(module, FUNCTION, None)
        if not callable(station_function):
            raise StationLoadError(f"{FOLDER}/{folder}/{MODULE}.py defines no {FUNCTION}()")
        return {folder: station_function}
    if not isinstance(stations_by_name, Mapping) or not stations_by_name:
        raise StationLoadError(f"{FOLDER}/{folder}/{MODULE}.py: {SEVERAL} is not a mapping by name")
    for name, station in stations_by_name.items():
        if not isinstance(name, str) or not _NAME.match(name) or not callable(station):
            raise StationLoadError(
                f"{FOLDER}/{folder}/{MODULE}.py: {SEVERAL}[{name!r}] is not a plainly named station"
            )
    return {f"{folder}/{name}": station for name, station in stations_by_name.items()}


def _package(folder: Path, name: str) -> ModuleType:
    """Return an empty package over the folder; its ``__init__.py`` may only document it."""
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    importlib.invalidate_caches()
    return importlib.util.module_from_spec(spec)
