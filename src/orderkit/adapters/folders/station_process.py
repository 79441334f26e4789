"""
Load a pack's stations, and run them in a process that talks with its owner.

`load_stations` loads those of a pack folder. ``stations/<name>/station.py`` defines ``station``; or
``stations``, a mapping by name, and each is then called ``<folder>/<name>``. A folder is imported
as a package under a private name, so two packs (or two versions of one) never meet in
``sys.modules``. A station runs as part of this process with all its rights, so only processes that
are confined call this, and tests of packs. A folder that cannot be loaded does not affect the
others: its station is a `BrokenStation`, which refuses every order of that kit with the reason.

`serve_stations` is the entry of an isolated child (``adapters.processes``), the process in which a
pack's stations run. Requests are marshalled: the owner is trusted, and both are one Python. Answers
are JSON, and `response_of` checks them: stations are not trusted. Neither side repeats what the
other has: the observed state, which is the same for every step, is sent once, and an answer leaves
out resources that the station did not change.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.machinery
import importlib.util
import itertools
import json
import marshal
import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from compositions.station import (
    Condition,
    Ready,
    Resource,
    Result,
    Selector,
    Severity,
    State,
    Station,
    StationRequest,
    StationResponse,
    place_of,
    run_station,
)
from ground.errors import OrderkitError, shorten
from ground.objects.kube_objects import Manifest
from ground.objects.values import NotPlainError, copied

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
    reads_only: ClassVar[bool] = True

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
    # else a folder that was written just now may not be found (importlib)
    importlib.invalidate_caches()
    return importlib.util.module_from_spec(spec)


OBSERVED_MAX = 8
_ResourceTuple = tuple[Manifest, int, dict[str, bytes]]
_StateTuple = tuple[_ResourceTuple, dict[str, _ResourceTuple]]
_STATUSES = ("True", "False", "Unknown")
_SYSTEM = ("open", "os.", "socket.", "subprocess.", "ctypes.", "signal.", "shutil.")
_RULE = ": stations have no files, network or processes"
_last_events = [""]


class BadAnswerError(ValueError):
    """What a process answered is no response of a station."""


# --- the process's side


def serve_stations(setup: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Load folders of stations; answer each station's name with its error, then requests."""
    root, folders = json.loads(setup)
    # the kernel's refusal does not name what a station tried
    sys.addaudithook(_note)
    stations = stations_in(Path(root), folders)
    errors = {name: _error(station) for name, station in stations.items()}
    return json.dumps(errors).encode(), _Desk(stations).answer


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(_SYSTEM):
        first = repr(arguments[0]) if arguments and isinstance(arguments[0], str | int) else ""
        _last_events[0] = f"{event}({first})"


def _error(station: Station) -> str:
    if not isinstance(station, BrokenStation):
        return ""
    return station.error + (_RULE if station.error.startswith("PermissionError") else "")


@dataclass(slots=True)
class _Desk:
    """Answers requests one after the other."""

    stations: Mapping[str, Station]
    observed: deque[tuple[bytes, _StateTuple]] = field(
        default_factory=lambda: deque(maxlen=OBSERVED_MAX)
    )
    """The states that the owner knows to be here, and copies that were lent to stations."""

    def answer(self, message: bytes) -> bytes:
        place, rest = marshal.loads(message)  # noqa: S302 - from the process that started us
        name, desired, *others = marshal.loads(rest)  # noqa: S302 - as above
        if isinstance(place, bytes):
            self.observed.append((place, marshal.loads(place)))  # noqa: S302 - as above
            place = len(self.observed) - 1
        original, lent = self.observed[place]
        # a station may have changed it: each sees the state as it was observed
        if _dumped(lent) != original:
            lent = marshal.loads(original)  # noqa: S302 - as above
            self.observed[place] = (original, lent)
        before = {key: _dumped(resource) for key, resource in desired[1].items()}
        try:
            request = StationRequest(_state(lent), _state(desired), *others)
            explained = partial(_explained, self.stations[name])
            return _answer(run_station(name, explained, request), before)
        except Exception as error:  # noqa: BLE001 - a station may return whatever it likes
            problem = str(error) if isinstance(error, NotPlainError) else repr(error)
            response = StationResponse()
            response.fatal(f'station "{name}" returned data that cannot be sent: {problem}')
            return _answer(response, {})


def _explained(station: Station, request: StationRequest) -> StationResponse:
    try:
        return station(request)
    except PermissionError as error:
        raise PermissionError(f"{error} at {shorten(_last_events[0])}{_RULE}") from error


def _state(fields: _StateTuple) -> State:
    composite, resources = fields
    return State(
        _lent_resource(composite),
        {name: _lent_resource(resource) for name, resource in resources.items()},
    )


def _lent_resource(fields: _ResourceTuple) -> Resource:
    manifest, ready, details = fields
    return Resource(manifest, Ready(ready), dict(details))


def _answer(response: StationResponse, before: Mapping[str, bytes]) -> bytes:
    desired = response.desired
    document = {
        "composite": _fields(desired.composite, "the XR", b""),
        "resources": {
            name: _fields(resource, name, before.get(name, b""))
            for name, resource in desired.resources.items()
        },
        "context": copied(response.context, "context"),
        "results": [[int(r.severity), str(r.message), str(r.reason)] for r in response.results],
        "conditions": [[c.type, c.status, c.reason, c.message] for c in response.conditions],
        "requirements": {
            name: [s.api_version, s.kind, s.name, dict(s.labels), s.namespace]
            for name, s in response.requirements.items()
        },
        "ttl_s": float(response.ttl_s),
    }
    return json.dumps(document, allow_nan=False).encode()


def _fields(resource: Resource, path: str, before: bytes) -> list[Any] | None:
    """Return a resource as JSON, or None if it is as it was before."""
    if before:
        with suppress(ValueError):  # it holds something that is not plain
            if _dumped(_resource_tuple(resource)) == before:
                return None
    details = {
        key: base64.b64encode(value).decode() for key, value in resource.connection_details.items()
    }
    return [copied(resource.resource, path), int(Ready(resource.ready)), details]


# --- the owner's side


def errors_of(data: bytes) -> dict[str, str]:
    """
    Read what a process says after loading: the errors of stations, by their names.

    Raises:
        BadAnswerError: It says something else.
    """
    try:
        return {_text(name): _text(error) for name, error in json.loads(data).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadAnswerError("it answered with something that is no list of stations") from error


class RequestWriter:
    """Writes requests as bytes; equal requests give equal bytes."""

    def __init__(self) -> None:
        self._last = (State(), b"", b"")

    def written(self, name: str, request: StationRequest) -> tuple[bytes, bytes, bytes]:
        """Return the observed state, a digest of everything, and the rest."""
        desired = _state_tuple(request.desired)
        rest = _dumped((name, desired, request.context, request.input, dict(request.required)))
        # the steps of one pipeline read the same state, which nobody changes (`Reader`)
        state, observed, digest = self._last
        if state is not request.observed:
            observed = _dumped(_state_tuple(request.observed))
            digest = hashlib.sha256(observed).digest()
            self._last = (request.observed, observed, digest)
        return observed, hashlib.sha256(digest + rest).digest(), rest


class ObservedStates:
    """The observed states that one process was sent, in the same order as it has them."""

    def __init__(self) -> None:
        self._sent: deque[bytes] = deque(maxlen=OBSERVED_MAX)

    def message(self, observed: bytes, rest: bytes) -> bytes:
        """Write a message; it must be sent before the next one is written."""
        if observed in self._sent:
            return _dumped((self._sent.index(observed), rest))
        self._sent.append(observed)
        return _dumped((observed, rest))


def response_of(data: bytes, request: StationRequest) -> StationResponse:
    """
    Read the response to a request; each value has the type that it must have, down to manifests.

    Raises:
        BadAnswerError: It is none.
    """
    try:
        return _response(json.loads(data), request.desired)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        problem = shorten(f"{type(error).__name__}: {error}")
        raise BadAnswerError(
            f"it answered with something that is no response: {problem}"
        ) from error


def _dumped(value: Any) -> bytes:
    """Return the same bytes for the same value, and other bytes for 1, 1.0 and True."""
    # version 3 writes references, and where it does depends on who else holds an object
    return marshal.dumps(value, 2)


def _state_tuple(state: State) -> _StateTuple:
    return (
        _resource_tuple(state.composite),
        {name: _resource_tuple(resource) for name, resource in state.resources.items()},
    )


def _resource_tuple(resource: Resource) -> _ResourceTuple:
    return resource.resource, int(resource.ready), resource.connection_details


def _response(document: Any, desired: State) -> StationResponse:
    return StationResponse(
        desired=State(
            _resource(document["composite"]),
            {
                name: desired.resources[name] if found is None else _resource(found)
                for name, found in document["resources"].items()
            },
        ),
        context=_map(document["context"]),
        results=[
            Result(Severity(severity), _text(message), _text(reason))
            for severity, message, reason in document["results"]
        ],
        conditions=[
            Condition(_text(name), _status(status), _text(reason), _text(message))
            for name, status, reason, message in document["conditions"]
        ],
        requirements={
            name: Selector(
                _text(api_version),
                _text(kind),
                _text(match_name),
                {key: _text(value) for key, value in labels.items()},
                None if namespace is None else _text(namespace),
            )
            for name, (api_version, kind, match_name, labels, namespace) in document[
                "requirements"
            ].items()
        },
        ttl_s=float(document["ttl_s"]),
    )


def _resource(fields: Any) -> Resource:
    manifest, ready, details = fields
    return Resource(
        _map(manifest),
        Ready(ready),
        {key: base64.b64decode(value, validate=True) for key, value in details.items()},
    )


def _map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} in place of a map")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} in place of text")
    return value


def _status(value: Any) -> Any:
    if value not in _STATUSES:
        raise ValueError(f"status {value!r}")
    return value
