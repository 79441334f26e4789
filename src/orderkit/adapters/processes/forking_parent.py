"""
Processes that run stations: one parent that has loaded them, and children that answer.

The parent imports the pack's stations once and then only forks, so a child costs a millisecond
and shares the parent's memory. It never runs a station itself and therefore never hangs: asked
to, it stops a child whatever that is doing, and it stops all of them when its owner is gone.
A child answers one request after the other, from its socket to its socket; what a station prints
goes to standard error. The parent is confined before it imports them (``confinement``), and its
children are once more: they cannot fork.

Wire between owner and parent, over a Unix socket: ``f`` with a socket forks a child for it and
answers its process id; ``k`` and a process id stops that child. Between owner and child: frames
of a length (4 bytes) and as many bytes, request in, answer out.

Not for platforms without fork. Its `main` is run in a process of its own by ``station_workers``.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import sys
import traceback
from typing import NoReturn

from orderkit.adapters.processes import confinement
from orderkit.adapters.processes.child_process import Answer, detach, limit, load, serve
from orderkit.ports.processes import ProcessLimits

COMMAND = struct.Struct("!cI")
FORK, KILL = b"f", b"k"


def main(arguments: list[str]) -> None:
    """Load an entry, say what it says, fork on request until the owner is gone."""
    number, entry, setup, data_bytes = arguments
    detach()
    limit(ProcessLimits(data_bytes=int(data_bytes)))
    start = load(entry)
    confinement.confine([setup], forks=True)
    ready, answer = start(setup.encode())
    assert answer is not None  # noqa: S101 - a fork without an answer has no purpose
    gc.collect()
    gc.freeze()  # children share these pages as long as nobody counts in them
    with socket.socket(fileno=int(number)) as owner:
        owner.sendall(ready)
        _ForkingParent(owner, answer).serve()


class _ForkingParent:
    def __init__(self, owner: socket.socket, answer: Answer) -> None:
        self._owner, self._answer = owner, answer
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
            _child(descriptor, self._answer)
        os.close(descriptor)
        return child

    def _reap(self) -> None:
        """Forget children that ended by themselves."""
        # until then their numbers are not reused, so `_stop` never ends a stranger's process
        for child in tuple(self._children):
            if os.waitpid(child, os.WNOHANG)[0]:
                self._children.discard(child)

    def _stop(self, child: int) -> None:
        if child in self._children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self._children.discard(child)


def _child(descriptor: int, answer: Answer) -> NoReturn:
    """Answer until the owner closes the socket; never return into the parent's loop."""
    code = 0
    try:
        confinement.forbid_forks()
        with socket.socket(fileno=descriptor) as owner:
            serve(owner, answer)
    except BaseException:  # noqa: BLE001 - a station may raise SystemExit, too
        traceback.print_exc()
        code = 1
    # os._exit writes out no buffer
    sys.stderr.flush()
    os._exit(code)
