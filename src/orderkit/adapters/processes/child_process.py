"""
One child process: started with limits, asked over a socket, and ended whatever it does.

The child imports an entry (``module:function``), gives it the first message, and answers further
messages with the function that the entry returned. It ends when its owner closes the socket or is
gone. What it prints goes to standard error. An isolated child is started with nothing of ours, and
confined (``confinement``) before the entry sees the first message.

Wire: frames of a length (4 bytes) and as many bytes. Both ends are ours, on one machine.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import logging
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from typing import Self

from orderkit.adapters.processes import confinement
from orderkit.ports.processes import ChildEndedError, ChildTimeoutError, ProcessLimits

Answer = Callable[[bytes], bytes]
Entry = Callable[[bytes], tuple[bytes, Answer | None]]
LENGTH = struct.Struct("!I")
_WATCH_S = 1.0
_RUN = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(sys.argv[3:])"
)


logger = logging.getLogger(__name__)
_starter = ThreadPoolExecutor(1, thread_name_prefix="start-children")
"""Starts isolated children: they end with the thread that started them."""


def launch(
    module: str,
    arguments: Sequence[str],
    end: socket.socket,
    environment: Mapping[str, str],
    *,
    is_isolated: bool = False,
    is_silent: bool = False,
    is_piped: bool = False,
    files: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """
    Start ``main`` of a module with one end of a socket.

    Args:
        is_piped: What it prints goes to the process's ``stdout``.
        files: Open files that it gets, too.
    """
    _warn_of_missing_protections()
    output = subprocess.PIPE if is_piped else subprocess.DEVNULL if is_silent else None
    paths = json.dumps([path for path in sys.path if path])
    command = [sys.executable, "-Ps", "-c", _RUN, paths, module, str(end.fileno()), *arguments]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and code, no shell
            command,
            pass_fds=[end.fileno(), *files],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if is_piped else output,
            start_new_session=True,
            env=environment,
            cwd="/" if is_isolated else None,
        )

    # an isolated child ends with the thread that started it: this one stays
    return _starter.submit(start).result()


@functools.cache
def _warn_of_missing_protections() -> None:
    for text in confinement.missing():
        logger.warning("code of packs runs here without %s (docs/trust-model.md)", text)


class SocketChild:
    """A `ChildProcess`."""

    def __init__(self, entry: str, limits: ProcessLimits) -> None:
        self._limits = limits
        self._undo = ExitStack()
        environment = {"PYTHONHASHSEED": limits.hash_seed} if limits.hash_seed else {}
        if not limits.is_isolated:
            folder = self._undo.enter_context(tempfile.TemporaryDirectory(prefix="orderkit-child-"))
            environment = {**os.environ, "TMPDIR": folder, **environment}
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = launch(
                __name__,
                (entry, json.dumps(asdict(limits))),
                theirs,
                environment,
                is_isolated=limits.is_isolated,
                is_silent=limits.is_silent or limits.is_isolated,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def send(self, message: bytes, timeout_s: float) -> None:
        self._socket.settimeout(timeout_s)
        try:
            send_frame(self._socket, message)
        except TimeoutError as error:
            raise ChildTimeoutError("the child took no message in time") from error
        except OSError as error:
            raise ChildEndedError("the child ended") from error

    def receive(self, timeout_s: float) -> bytes:
        try:
            answer = receive_frame(self._socket, timeout_s, self._limits.answer_bytes)
        except TimeoutError as error:
            raise ChildTimeoutError("the child gave no answer in time") from error
        except OSError as error:
            raise ChildEndedError("the child ended") from error
        if answer is None:
            raise ChildEndedError("the child ended, or answered more than it may")
        return answer

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._undo.close()


class LocalProcesses:
    """`Processes` of this machine."""

    def start(self, entry: str, limits: ProcessLimits) -> SocketChild:
        return SocketChild(entry, limits)


# --- both sides


def send_frame(end: socket.socket, data: bytes) -> None:
    """Send one message."""
    end.sendall(LENGTH.pack(len(data)) + data)


def receive_frame(
    end: socket.socket, timeout_s: float | None = None, bytes_max: int = 0
) -> bytes | None:
    """
    Return one message; None if the other side is gone, or if it is larger than `bytes_max`.

    Raises:
        TimeoutError: It was not complete in time.
    """
    until_s = None if timeout_s is None else time.monotonic() + timeout_s
    head = _received(end, LENGTH.size, until_s)
    if len(head) < LENGTH.size:
        return None
    size: int = LENGTH.unpack(head)[0]
    if bytes_max and size > bytes_max:
        return None
    data = _received(end, size, until_s)
    return data if len(data) == size else None


def _received(end: socket.socket, size: int, until_s: float | None) -> bytes:
    """Receive so many bytes; fewer only if the other side is gone."""
    data = bytearray()
    while len(data) < size:
        if until_s is not None:
            # 0 would mean: never wait
            end.settimeout(max(0.001, until_s - time.monotonic()))
        chunk = end.recv(min(size - len(data), 1 << 20))
        if not chunk:
            break
        data += chunk
    return bytes(data)


# --- the child's side


def main(arguments: list[str]) -> None:
    """Serve an entry until the owner closes the socket."""
    number, entry, text = arguments
    limits = ProcessLimits(**json.loads(text))
    detach()
    limit(limits)
    logger.disabled = True  # the owner has warned
    with socket.socket(fileno=int(number)) as owner:
        start = load(entry)
        if limits.is_isolated:
            confinement.end_with_parent()
            confinement.confine([limits.folder] if limits.folder else [])
        else:
            threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        first = receive_frame(owner)
        if first is None:
            return
        reply, answer = start(first)
        gc.collect()
        gc.freeze()
        send_frame(owner, reply)
        if answer is not None:
            serve(owner, answer)


def load(entry: str) -> Entry:
    """Import an entry."""
    module, _, name = entry.partition(":")
    function: Entry = getattr(importlib.import_module(module), name)
    return function


def serve(owner: socket.socket, answer: Answer) -> None:
    """Answer messages until the owner closes the socket."""
    while (message := receive_frame(owner)) is not None:
        send_frame(owner, answer(message))


def detach() -> None:
    """Leave ctrl-C to the owner, and keep standard output free of what stations print."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    os.dup2(2, 1)


def limit(limits: ProcessLimits) -> None:
    """Limit this process; a lower limit that holds already stays."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, bound in (
        (resource.RLIMIT_DATA, limits.data_bytes),
        (resource.RLIMIT_AS, limits.address_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.answer_bytes),
    ):
        hard = resource.getrlimit(kind)[1]
        if bound:
            lower = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(kind, (lower, lower))


def _end_with(parent: int) -> None:
    """End when the owner has gone: a station that never ends would stay for ever."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(1)
