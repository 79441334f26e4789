"""
The stations of a pack in confined processes, the only way in which Orderkit runs them itself.

A process is started anew by ``exec``, with an empty environment, no files but the pack's stations
and the Python installation, no network, and limits of time and memory (``adapters.processes``). It
loads the stations once and is kept; requests and answers are messages. A station that is too slow,
ends its process or answers something else is stopped, and its answer is a fatal result.

Stations of one pack share their processes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from compositions.station import Station, StationRequest, StationResponse
from ground.names import Files
from orderkit.adapters.folders.station_process import (
    FOLDER,
    BadAnswerError,
    BrokenStation,
    ObservedStates,
    RequestWriter,
    errors_of,
    folders_of_stations,
    response_of,
)
from orderkit.adapters.processes.child_process import SocketChild
from orderkit.ports.processes import ChildEndedError, ChildTimeoutError, ProcessLimits

CALL_S = 10.0
"""How long a station may take for one answer, as in Crossplane."""
MEMORY_BYTES = 1 << 30
ANSWER_BYTES = 8 << 20
_ENTRY = "orderkit.adapters.folders.station_process:serve_stations"
_LOAD_S = 60.0
_CPU_S = 60
_KEPT_S = 30.0
"""A process that was waited for so long is replaced, well before its processor time is used up."""
_AT_ONCE = 2
_REFUSED_S = 60.0
"""How long a request that stopped a process is not tried again: a plan asks the same many times."""
_REMEMBERED, _REMEMBERED_BYTES = 500, 64 << 10
_STOPPED = (ChildEndedError, ChildTimeoutError, BadAnswerError)


@dataclass(frozen=True, slots=True)
class ConfinedStation:
    """A station in another process."""

    name: str
    processes: _Processes
    reads_only: ClassVar[bool] = True

    def __call__(self, request: StationRequest) -> StationResponse:
        """Ask the process; one that was stopped refuses, so that nothing that exists is deleted."""
        try:
            return self.processes.ask(self.name, request)
        except _STOPPED as error:
            response = StationResponse.to(request)
            response.fatal(f'station "{self.name}" was stopped: {error}')
            return response


def confined_stations(pack: Path) -> Mapping[str, Station]:
    """
    Return the stations of a pack's folder by name, broken ones as `BrokenStation`.

    Loads anew on every call. A pack without ``stations`` has none.
    """
    root = pack / FOLDER
    return _loaded(root, folders_of_stations(root))


def confined_stations_from(files: Files, *, remembers: bool = False) -> Mapping[str, Station]:
    """
    Return the stations of a pack that is in no folder, as `confined_stations` does.

    Args:
        remembers: Answer a request that was answered before without asking again: equal requests
            have equal answers, and one plan after the other asks the same of the same order.
    """
    copy = _Copy()
    for path, data in files.items():
        if path.is_relative_to(FOLDER):
            (copy.path / path).parent.mkdir(parents=True, exist_ok=True)
            (copy.path / path).write_bytes(data)
    root = copy.path / FOLDER
    return _loaded(root, folders_of_stations(root), copy, remembers=remembers)


class _Copy:
    """A temporary folder, removed with this object: a station may import late."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="orderkit-stations-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _loaded(
    root: Path, folders: Sequence[str], copy: _Copy | None = None, *, remembers: bool = False
) -> dict[str, Station]:
    """Load folders together; if that ends the process, each alone, to find the one that does it."""
    if not folders:
        return {}
    processes = _Processes(root, folders, copy, remembers=remembers)
    try:
        errors = processes.load()
    except _STOPPED as error:
        if len(folders) > 1:
            alone = [_loaded(root, [folder], copy, remembers=remembers) for folder in folders]
            return {name: station for found in alone for name, station in found.items()}
        return {folders[0]: BrokenStation(folders[0], f"importing it was stopped: {error}")}
    return {
        name: BrokenStation(name, error) if error else ConfinedStation(name, processes)
        for name, error in errors.items()
    }


class _Processes:
    """Processes that have loaded the same folders; each answers one request at a time."""

    def __init__(
        self, root: Path, folders: Sequence[str], copy: _Copy | None, *, remembers: bool
    ) -> None:
        self._root, self._copy, self._remembers = root.resolve(), copy, remembers
        self._answers: dict[bytes, bytes] = {}
        self._remembering = threading.Lock()
        self._writer = RequestWriter()
        self._setup = json.dumps([str(self._root), folders]).encode()
        self._idle: list[_Process] = []
        self._places = threading.Semaphore(_AT_ONCE)
        self._refused: dict[bytes, float] = {}
        """Requests that stopped a process, and until when they are not tried again."""
        weakref.finalize(self, _stop, self._idle)

    def load(self) -> dict[str, str]:
        """
        Start a process and return the errors of stations, by all their names.

        Raises:
            ChildEndedError, ChildTimeoutError, BadAnswerError: Importing the stations ended it.
        """
        with self._lent() as process:
            return process.errors

    def ask(self, name: str, request: StationRequest) -> StationResponse:
        """
        Return a station's answer.

        Raises:
            ChildEndedError, ChildTimeoutError, BadAnswerError: It was stopped, or was before.
        """
        observed, key, rest = self._writer.written(name, request)
        now_s = time.monotonic()
        if self._refused.get(key, now_s) > now_s:
            # a plan asks the same of the same order many times
            raise ChildEndedError("the same request has stopped it before")
        if (known := self._answers.get(key)) is not None:
            return response_of(known, request)
        try:
            with self._lent() as process:
                answer = process.ask(observed, rest)
                response = response_of(answer, request)
        except _STOPPED:
            recent = {k: until for k, until in self._refused.items() if until > now_s}
            self._refused = {**recent, key: now_s + _REFUSED_S}
            raise
        self._remember(key, answer)
        return response

    def _remember(self, key: bytes, answer: bytes) -> None:
        with self._remembering:
            if self._remembers and len(answer) < _REMEMBERED_BYTES:
                self._answers[key] = answer
            if len(self._answers) > _REMEMBERED:
                del self._answers[next(iter(self._answers))]

    @contextmanager
    def _lent(self) -> Iterator[_Process]:
        with self._places:
            try:
                process = self._idle.pop()
            except IndexError:
                process = _Process(self._root, self._setup)
            try:
                yield process
            except BaseException:
                # its late answer would be taken for that to the next request
                process.child.stop()
                raise
            if process.waited_s < _KEPT_S:
                self._idle.append(process)
            else:
                process.child.stop()


class _Process:
    """One process with the stations."""

    def __init__(self, root: Path, setup: bytes) -> None:
        limits = ProcessLimits(
            address_bytes=MEMORY_BYTES,
            cpu_s=_CPU_S,
            answer_bytes=ANSWER_BYTES,
            is_isolated=True,
            hash_seed=os.environ.get("PYTHONHASHSEED", ""),
            folder=str(root),
        )
        self.child = SocketChild(_ENTRY, limits)
        self.waited_s = 0.0
        self._observed = ObservedStates()
        try:
            self.errors = errors_of(self._exchanged(setup, _LOAD_S))
        except BaseException:
            self.child.stop()
            raise

    def ask(self, observed: bytes, rest: bytes) -> bytes:
        """Return the answer to a request; raises as `_Processes.ask`."""
        return self._exchanged(self._observed.message(observed, rest), CALL_S)

    def _exchanged(self, message: bytes, limit_s: float) -> bytes:
        begun_s = time.monotonic()
        self.child.send(message, limit_s)
        answer = self.child.receive(limit_s)
        self.waited_s += time.monotonic() - begun_s
        return answer


def _stop(idle: list[_Process]) -> None:
    for process in idle:
        process.child.stop()
