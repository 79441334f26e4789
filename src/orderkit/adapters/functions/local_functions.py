"""
Stations of this machine: in confined processes, of other processes, and functions' programs.

`LocalFunctions` has all three. Connections to functions of other processes are kept between calls
and shared: a service plans many times.

`ProgramFunction` is a function's own program as a station: started confined at its first call, and
kept. It is called as Crossplane calls it, by gRPC, over a socket that only this user can reach. A
program that ends is started again once; one that ends again, does not answer in time, or answers
something else, makes a fatal result with its last words, so that nothing that exists is changed. It
ends with this process.

`serve` is the network of such a program: the hosts that a person of this machine granted, and no
other. A program has no network of its own. Its init passes each connection to the port of a proxy
out to this process, which connects it to a granted host. So the program reaches names and ports
that somebody typed, and neither this machine's own services nor what a name of its choice leads to:
a granted name is judged again for each connection, because who owns the name can change its
address. The program has to use the proxy (``HTTPS_PROXY``), as Go's and Python's clients do.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import IO, TYPE_CHECKING

from compositions.function_processes import FunctionProcess
from compositions.python_functions import program_digests
from compositions.station import Station, StationRequest, StationResponse
from ground.errors import InvalidInputError, OrderkitError, RefusedError, UsageError, shorten
from ground.names import Files
from ground.secrets import redact
from orderkit.adapters.folders.confined_stations import confined_stations_from
from orderkit.adapters.functions.program_store import StoredProgram, stored_program
from orderkit.adapters.http import connected, is_loopback, is_near, look_up
from orderkit.adapters.processes.child_process import launch
from orderkit.adapters.processes.confined_program import PORT, READY, pump

if TYPE_CHECKING:
    from orderkit.adapters.functions.remote_function import RemoteFunction

HTTPS_PORT = 443
_AT_ONCE, _HEAD_MAX_BYTES, _CONNECT_S, _IDLE_S = 32, 8192, 10.0, 60.0
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_ASKED = re.compile(rb"CONNECT ([^\s:]+):([0-9]{1,5}) HTTP/1\.[01]\r\n")


def granted_host(text: str) -> str:
    """
    Return a host that a program may reach, with its port.

    Raises:
        InvalidInputError: It is no HOST or HOST:PORT.
    """
    host, colon, port = text.partition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not _HOST.fullmatch(host) or (colon and not 0 < number < 1 << 16):
        raise InvalidInputError(
            "--network", text, "is no host", hint="write HOST or HOST:PORT, one for each option"
        )
    return f"{host.lower()}:{number if colon else HTTPS_PORT}"


def serve(outside: socket.socket, granted: Collection[str]) -> None:
    """Connect what a program's init passes out, until the program ends. Runs in a thread."""
    places = threading.BoundedSemaphore(_AT_ONCE)
    with outside, suppress(OSError):
        while True:
            data, files, _, _ = socket.recv_fds(outside, 1, 1)
            if not data:
                return
            for file in files:
                near = socket.socket(fileno=file)
                if places.acquire(blocking=False):
                    arguments = (near, granted, places)
                    threading.Thread(target=_connect, args=arguments, daemon=True).start()
                else:
                    near.close()


def _connect(
    near: socket.socket, granted: Collection[str], places: threading.BoundedSemaphore
) -> None:
    try:
        with near, suppress(OSError):
            near.settimeout(_IDLE_S)
            wanted = _asked(near)
            if wanted is None:
                near.sendall(b"HTTP/1.1 405 Only CONNECT\r\n\r\n")
            elif wanted not in granted:
                text = f"HTTP/1.1 403 {wanted} is not granted to this function\r\n\r\n"
                near.sendall(text.encode())
            else:
                _carry(near, wanted)
    finally:
        places.release()


def _asked(near: socket.socket) -> str | None:
    """Read what a program asks for; None if it is no CONNECT."""
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < _HEAD_MAX_BYTES:
        data = near.recv(1)  # not a byte more: what follows is for the host
        if not data:
            return None
        head += data
    found = _ASKED.match(head)
    return f"{found[1].decode('latin-1').lower()}:{int(found[2])}" if found else None


def _carry(near: socket.socket, wanted: str) -> None:
    host, _, port = wanted.rpartition(":")
    try:
        # judged for each connection: who owns a granted name can change its address
        far = connected(_judged(host, int(port)), int(port), _CONNECT_S)
    except RefusedError as error:
        near.sendall(f"HTTP/1.1 403 {error}\r\n\r\n".encode())
        return
    except (OSError, UnicodeError):
        near.sendall(b"HTTP/1.1 502 The host does not answer\r\n\r\n")
        return
    with far:
        far.settimeout(_IDLE_S)
        near.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        back = threading.Thread(target=pump, args=(far, near), daemon=True)
        back.start()
        pump(near, far)
        back.join()


def _judged(host: str, port: int) -> list[str]:
    """
    Return the addresses of a granted host.

    Raises:
        RefusedError: Its name leads to this machine or its link, and no address was granted.
        OSError, UnicodeError: The name is not known, or is none.
    """
    addresses = look_up(host, port)
    near = [str(address) for address in addresses.values() if is_near(address)]
    # an address was typed by a person, who meant it; a name may lead anywhere
    if near and host not in addresses and not is_loopback(host):
        raise RefusedError(
            f"{host} leads to {near[0]}, which is this machine or its link",
            hint=f"if it is meant: orderkit functions add ... --network {near[0]}:{port}",
        )
    return list(addresses)


CALL_S = 20.0
START_S = 30.0
_MODULE = "orderkit.adapters.processes.confined_program"
_WORDS, _LINE_MAX_BYTES = 6, 4096
_TRIES = 2


class ProgramError(OrderkitError):
    """A program could not be started, or ended."""


_lock = threading.Lock()
_programs: dict[str, ProgramFunction] = {}


def program_functions(files: Files) -> dict[str, Station]:
    """
    Return the functions of a pack whose programs are on this machine, by their names.

    Nothing is started yet.

    Raises:
        ManifestError: A file of ``gitops/functions`` is malformed.
    """
    found = {name: program_function(digest) for name, digest in program_digests(files).items()}
    return {name: function for name, function in found.items() if function is not None}


def program_function(digest: str) -> Station | None:
    """Return a program of this machine, shared by all who call it; None if it was not added."""
    with _lock:
        if digest not in _programs:
            program = stored_program(digest)
            if program is None:
                return None
            _programs[digest] = ProgramFunction(program)
        return _programs[digest]


class ProgramFunction:
    """A station. Safe to call from several threads."""

    def __init__(self, program: StoredProgram) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def __call__(self, request: StationRequest) -> StationResponse:
        """
        Call the program.

        Raises:
            OpaqueError: It needs data that only a cluster has.
            ValueError, TypeError: Request or answer contain data that cannot be converted.
        """
        if importlib.util.find_spec("crossplane") is None:
            return _fatal(request, "needs gRPC to be called: pip install 'orderkit[functions]'")
        from orderkit.adapters.functions.remote_function import FunctionCallError, SilenceError

        why = ""
        for _ in range(_TRIES):
            try:
                running = self._started()
            except (ProgramError, OSError) as error:
                return _fatal(request, str(error))
            try:
                return running.remote(request)
            except FunctionCallError as error:
                return _fatal(request, f"answered with an error: {error}")
            except SilenceError:
                why = running.ended()
                if not why:  # it hangs, and would again
                    return _fatal(request, f"did not answer within {CALL_S:g} s")
        return _fatal(request, why)

    def _started(self) -> _Running:
        with self._lock:
            if self._running is None or self._running.process.poll() is not None:
                self._running = None
                self._running = _Running(self._program)
            return self._running


def _fatal(request: StationRequest, text: str) -> StationResponse:
    response = StationResponse.to(request)
    response.fatal(f"the program of the function {text}")
    return response


class _Running:
    """A program that runs."""

    def __init__(self, program: StoredProgram) -> None:
        """
        Start it, and wait until it listens.

        Raises:
            ProgramError: It did not, or this machine cannot confine it.
        """
        from orderkit.adapters.functions.remote_function import RemoteFunction

        self._folder = tempfile.mkdtemp(prefix="orderkit-function-")
        address = f"{self._folder}/socket"
        self._words: deque[str] = deque(maxlen=_WORDS)
        self._undo = weakref.finalize(self, _remove, self._folder)
        root = os.open(program.root, os.O_PATH | os.O_DIRECTORY)
        control, theirs = socket.socketpair()
        outside = self._network(program.start.network)
        with socket.socket(socket.AF_UNIX) as listener, control, theirs:
            listener.bind(address)
            listener.listen()
            start = json.dumps(asdict(program.start))
            passed = str(outside.fileno()) if outside else ""
            self.process = launch(
                _MODULE,
                (str(listener.fileno()), str(root), passed, start),
                theirs,
                {},
                is_isolated=True,
                files=(listener.fileno(), root, *([outside.fileno()] if outside else ())),
                is_piped=True,
            )
            os.close(root)
            # before the first read: our copy of its end would hide that its init has ended
            theirs.close()
            if outside:
                outside.close()
            self._reader = threading.Thread(
                target=_listen, args=(_output(self.process), self._words), daemon=True
            )
            self._reader.start()
            self._undo.detach()
            self._undo = weakref.finalize(self, _remove, self._folder, self.process)
            control.settimeout(START_S)
            try:
                is_ready = control.recv(1) == READY
            except TimeoutError:
                is_ready = False
        if not is_ready:
            why = self._why() or f"did not listen on port {PORT} within {START_S:g} s"
            self._undo()
            raise ProgramError(why + self._last_words())
        process = FunctionProcess("program", f"unix:{address}", timeout_s=CALL_S)
        self.remote: RemoteFunction = RemoteFunction(process)

    @staticmethod
    def _network(granted: Sequence[str]) -> socket.socket | None:
        """Serve the hosts that are granted; return the program's end, None without any."""
        if not granted:
            return None
        ours, theirs = socket.socketpair()
        threading.Thread(target=serve, args=(ours, granted), daemon=True).start()
        return theirs

    def ended(self) -> str:
        """Stop it; return how it ended before, empty if it still ran."""
        why = self._why()
        self._undo()
        return why + self._last_words() if why else ""

    def _why(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f"ended with exit code {self.process.wait(1.0)}"
        return ""

    def _last_words(self) -> str:
        self._reader.join(1.0)
        return f": {' / '.join(self._words)}" if self._words else ""


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise RuntimeError("it was started without a pipe")
    return process.stdout


def _listen(stream: IO[bytes], words: deque[str]) -> None:
    with stream:
        while line := stream.readline(_LINE_MAX_BYTES):
            if text := line.decode(errors="replace").strip():
                words.append(redact(shorten(text)))


def _remove(folder: str, process: subprocess.Popen[bytes] | None = None) -> None:
    if process is not None:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)


_KEPT = 64


@dataclass(frozen=True, slots=True)
class LocalFunctions:
    """`PipelineFunctions` of this machine."""

    def load_stations(self, files: Files) -> Mapping[str, Station]:
        return confined_stations_from(files, remembers=True)

    def load_programs(self, files: Files) -> Mapping[str, Station]:
        return program_functions(files)

    def connect(self, process: FunctionProcess) -> Station:
        return _connected(replace(process, is_asked=False))


@functools.lru_cache(maxsize=_KEPT)
def _connected(process: FunctionProcess) -> Station:
    if importlib.util.find_spec("crossplane") is None:
        raise UsageError(
            f"calling {process.name} at {process.address} needs gRPC, which is not installed",
            hint="pip install 'orderkit[functions]'",
        )
    from orderkit.adapters.functions.remote_function import RemoteFunction

    return RemoteFunction(process)
