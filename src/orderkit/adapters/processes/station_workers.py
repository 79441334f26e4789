"""
Run stations in processes that can be stopped, a bounded number at once.

A request that takes too long, or whose caller has gone, costs its process and nothing else: it is
killed and a fresh one is forked for the next request. One station never holds every place, so a
station that hangs delays its own orders, not those of the others.

The processes are forked by ``forking_parent``.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import threading
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from ground.errors import OrderkitError
from orderkit.adapters.processes.child_process import LENGTH, launch
from orderkit.adapters.processes.forking_parent import COMMAND, FORK, KILL

_ENTRY = "orderkit.adapters.functions.station_answers:load_answers"
_PARENT = "orderkit.adapters.processes.forking_parent"
_READY = b"ready"
_START_S = 60.0
"""How long importing the stations may take."""
_COMMAND_S = 30.0


class StoppedError(OrderkitError):
    """The station gave no answer: it took too long, or its process ended."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one request may take."""

    at_once: int = 4
    """Requests that run at the same time; more wait."""
    answer_s: float = 10.0
    memory_bytes: int = 512 << 20
    """Data memory of one process, 0: any."""

    @property
    def of_one_station(self) -> int:
        return max(1, self.at_once - 1)


@dataclass(frozen=True, slots=True)
class _Worker:
    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, data: bytes) -> bytes:
        """Send a request, return the answer; IncompleteReadError if the process ends first."""
        self.writer.write(LENGTH.pack(len(data)) + data)
        await self.writer.drain()
        (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
        return await self.reader.readexactly(length)


class Workers:
    """The processes of one server. Made and used on one event loop."""

    def __init__(self, stations: Path, limits: CallLimits) -> None:
        self._stations, self._limits = stations, limits
        self._idle: list[_Worker] = []
        self._places = asyncio.Semaphore(limits.at_once)
        self._of_station = weakref.WeakValueDictionary[str, asyncio.Semaphore]()
        self._parent: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._commanding = threading.Lock()

    async def start(self) -> None:
        """
        Load the stations.

        Raises:
            OrderkitError: That failed or took longer than a minute.
        """
        await asyncio.to_thread(self._started)

    async def stop(self) -> None:
        """Stop every process. Safe to call twice."""
        for worker in self._idle:
            worker.writer.close()
        self._idle.clear()
        await asyncio.to_thread(self._stopped)

    async def run(self, station: str, data: bytes) -> bytes:
        """
        Answer one request.

        Raises:
            StoppedError: No answer in time, or the process ended.
        """
        its_own = self._of_station.get(station) or asyncio.Semaphore(self._limits.of_one_station)
        self._of_station[station] = its_own
        # its own place first: a station that hangs keeps none of those that all share
        async with its_own, self._places, self._worker(station) as worker:
            return await asyncio.wait_for(worker.ask(data), self._limits.answer_s)

    @contextlib.asynccontextmanager
    async def _worker(self, station: str) -> AsyncIterator[_Worker]:
        """Lend a process; whoever does not bring it back in order has it killed."""
        worker = self._idle.pop() if self._idle else await self._forked()
        try:
            yield worker
        except TimeoutError as error:
            await self._killed(worker)
            limit = f"{self._limits.answer_s:g} s"
            raise StoppedError(f'station "{station}" gave no answer within {limit}') from error
        except (asyncio.IncompleteReadError, OSError) as error:
            await self._killed(worker)
            raise StoppedError(f'the process of station "{station}" ended') from error
        except BaseException:
            # the caller has gone; the process is ended all the same
            await asyncio.shield(self._killed(worker))
            raise
        self._idle.append(worker)

    async def _forked(self) -> _Worker:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                number = await self._command(FORK, 0, theirs)
            reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        except BaseException:
            ours.close()
            raise
        return _Worker(number, reader, writer)

    async def _killed(self, worker: _Worker) -> None:
        worker.writer.close()
        with contextlib.suppress(OrderkitError):
            await self._command(KILL, worker.number)

    async def _command(
        self, verb: bytes, number: int, connection: socket.socket | None = None
    ) -> int:
        return await asyncio.to_thread(self._commanded, verb, number, connection)

    def _commanded(self, verb: bytes, number: int, connection: socket.socket | None) -> int:
        """Ask the parent."""
        with self._commanding:
            # one that ended is started anew; all its children went with it
            if self._parent is None or self._parent.poll() is not None:
                self._stop()
                self._start()
            return self._exchange(verb, number, connection)

    def _exchange(self, verb: bytes, number: int, connection: socket.socket | None) -> int:
        control = self._control
        if control is None:
            raise StoppedError("the function server is stopping")
        file_descriptors = [connection.fileno()] if connection else []
        try:
            socket.send_fds(control, [COMMAND.pack(verb, number)], file_descriptors)
            reply = control.recv(COMMAND.size, socket.MSG_WAITALL)
        except OSError as error:
            self._stop()  # an answer that comes late would be taken for that of the next command
            raise StoppedError(f"no process for a station: {error}") from error
        if len(reply) < COMMAND.size:
            raise StoppedError("no process for a station: their parent ended")
        return int(COMMAND.unpack(reply)[1])

    def _started(self) -> None:
        with self._commanding:
            self._start()

    def _stopped(self) -> None:
        with self._commanding:
            self._stop()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            folder = str(self._stations.resolve())
            arguments = (_ENTRY, folder, str(self._limits.memory_bytes))
            environment = {"PYTHONUNBUFFERED": "1"}
            self._parent = launch(_PARENT, arguments, theirs, environment, is_isolated=True)
        self._control = ours
        ours.settimeout(_START_S)
        try:
            greeting = ours.recv(len(_READY), socket.MSG_WAITALL)
        except TimeoutError as error:
            self._parent.kill()
            self._stop()
            raise OrderkitError(
                f"{self._stations}: importing the stations takes longer than {_START_S:g} s"
            ) from error
        if greeting != _READY:
            self._stop()
            raise OrderkitError(
                f"{self._stations}: importing the stations ended the process",
                hint="import the module yourself to see why: python -c 'import stations'",
            )
        ours.settimeout(_COMMAND_S)

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        self._control = None
        if self._parent is not None:
            try:
                self._parent.wait(_COMMAND_S)
            except subprocess.TimeoutExpired:
                self._parent.kill()
                self._parent.wait()
        self._parent = None
