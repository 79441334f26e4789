"""
Processes that run stations: one parent that has loaded them, and children that answer.

The parent imports the pack's stations once and then only forks, so a child costs a millisecond
and shares the parent's memory. It never runs a station itself and therefore never hangs: asked
to, it stops a child whatever that is doing, and it stops all of them when its owner is gone.
A child answers one request after the other, from its socket to its socket; what a station prints
goes to standard error.

Wire between owner and parent, over a Unix socket: ``f`` with a socket forks a child for it and
answers its process id; ``k`` and a process id stops that child. Between owner and child: frames
of a length (4 bytes) and as many bytes, request in, answer out.

Not for platforms without fork. Run as ``python -m orderkit.adapters.functions.nursery`` by
``workers``.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import struct
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from orderkit.adapters.folders.station_folder import stations_in
from orderkit.adapters.functions.function_messages import answered
from orderkit.core.crossplane.station import Station, station_runner

COMMAND = struct.Struct("!cI")
LENGTH = struct.Struct("!I")
READY = b"ready"
FORK, KILL = b"f", b"k"


def main(arguments: list[str]) -> None:
    """Load the stations of a folder, say so, fork on request until the owner is gone."""
    number, folder, memory = int(arguments[0]), Path(arguments[1]), int(arguments[2])
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    os.dup2(2, 1)
    run = station_runner(stations_in(folder))
    gc.collect()
    gc.freeze()  # children share these pages as long as nobody counts in them
    with socket.socket(fileno=number) as owner:
        owner.sendall(READY)
        _Nursery(owner, run, memory).serve()


class _Nursery:
    def __init__(self, owner: socket.socket, run: Station, memory_bytes: int) -> None:
        self._owner, self._run, self._memory_bytes = owner, run, memory_bytes
        self._children: set[int] = set()

    def serve(self) -> None:
        try:
            while self._command():
                pass
        finally:
            for child in tuple(self._children):
                self._stop(child)

    def _command(self) -> bool:
        data, sockets, _, _ = socket.recv_fds(self._owner, COMMAND.size, 1)
        if len(data) < COMMAND.size:
            return False
        verb, number = COMMAND.unpack(data)
        self._reap()
        if verb == FORK:
            number = self._fork(sockets[0])
            self._children.add(number)
        else:
            self._stop(number)
        self._owner.sendall(COMMAND.pack(verb, number))
        return True

    def _fork(self, descriptor: int) -> int:
        child = os.fork()
        if child == 0:
            self._owner.close()
            _child(descriptor, self._run, self._memory_bytes)
        os.close(descriptor)
        return child

    def _reap(self) -> None:
        """Forget children that ended by themselves; until then their numbers are not reused."""
        for child in tuple(self._children):
            if os.waitpid(child, os.WNOHANG)[0]:
                self._children.discard(child)

    def _stop(self, child: int) -> None:
        if child in self._children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self._children.discard(child)


def _child(descriptor: int, run: Station, memory_bytes: int) -> NoReturn:
    """Answer until the owner closes the socket; never return into the parent's loop."""
    code = 0
    try:
        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        with socket.socket(fileno=descriptor) as owner:
            _answer(owner, run)
    except BaseException:  # noqa: BLE001 - a station may raise SystemExit, too
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)


def _answer(owner: socket.socket, run: Station) -> None:
    while True:
        head = _read(owner, LENGTH.size)
        if len(head) < LENGTH.size:
            return
        reply = answered(run, _read(owner, LENGTH.unpack(head)[0]))
        owner.sendall(LENGTH.pack(len(reply)) + reply)


def _read(owner: socket.socket, wanted: int) -> bytes:
    """Read so many bytes; fewer only if the other side is gone."""
    data = bytearray()
    while len(data) < wanted:
        part = owner.recv(min(wanted - len(data), 1 << 20))
        if not part:
            break
        data += part
    return bytes(data)


if __name__ == "__main__":
    main(sys.argv[1:])
