"""
Parts of the embedded platform in processes of their own, so that it uses more than one processor.

A part is a fork of the platform's process, made before that has threads: it starts within
milliseconds and shares the memory of what is imported. It ends when the platform's process does,
however that ends: then its pipe is at its end.

Wire: the platform sends what the part needs to begin, and None to end it. The part sends `_Started`
or `_Failed`, then what it has to say.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Protocol

from ground.errors import OrderkitError

Say = Callable[[object], None]
"""Send something from a part to the platform; safe in several threads."""
Run = Callable[[Any, Say], AbstractContextManager[object]]
"""Run a part, from what it needs, until the context ends."""


class Closable(Protocol):
    """A file, a socket, a pipe."""

    def close(self) -> None: ...


_END_S = 30.0
"""How long a part may take to end before it is killed: as long as a server's stop may take."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Started:
    """The part runs."""


@dataclass(frozen=True, slots=True)
class _Failed:
    """The part could not start. Without an exit code it is a bug."""

    message: str
    hint: str = ""
    exit_code: int | None = None


class ForkedPart:
    """One part, from the fork until its end."""

    _pipes: ClassVar[list[Connection]] = []
    """Ours to all parts: a part that held one would keep another from noticing our end."""

    def __init__(self, name: str, run: Run, *, closes: Iterable[Closable] = ()) -> None:
        """
        Fork, and wait in the new process for `start`.

        Args:
            name: What people call it.
            run: What the process does.
            closes: What is open for others, and must not stay open in the process.
        """
        self._name = name
        self._pipe, theirs = multiprocessing.Pipe()
        gc.freeze()  # it shares these pages as long as nobody counts in them
        self._pipes.append(self._pipe)
        closed = (*self._pipes, *closes)
        self._process = multiprocessing.get_context("fork").Process(
            target=_be, args=(theirs, run, closed), name=name, daemon=True
        )
        self._process.start()
        theirs.close()
        self._stopping = False
        self._listener = threading.Thread(target=self._listen, name=f"{name} says", daemon=True)

    def start(
        self, needs: object, heard: Callable[[Any], object], lost: Callable[[str], None]
    ) -> None:
        """
        Let it begin, and return when it runs.

        Args:
            needs: What `run` gets.
            heard: Called with what the part says, in a thread.
            lost: Called with a sentence if the part ends by itself.

        Raises:
            OrderkitError: It cannot start.
        """
        self._heard, self._lost = heard, lost
        self._pipe.send(needs)
        try:
            while not isinstance(said := self._pipe.recv(), _Started | _Failed):
                heard(said)
        except (EOFError, OSError) as error:
            raise OrderkitError(self._end(), hint="see what it wrote above") from error
        if isinstance(said, _Failed):
            if said.exit_code is None:
                raise RuntimeError(said.message)
            problem = OrderkitError(said.message, hint=said.hint)
            problem.exit_code = said.exit_code  # type: ignore[misc]  # that of its class there
            raise problem
        self._listener.start()

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                said = self._pipe.recv()
                try:
                    self._heard(said)
                except Exception:
                    logger.exception("the %s said what cannot be used: a bug", self._name)
        if not self._stopping:
            self._lost(self._end())

    def _end(self) -> str:
        self._process.join(_END_S)
        return f"the {self._name}'s process ended by itself ({self._process.exitcode})"

    def stop(self) -> None:
        """End it, and wait for that. Safe to call twice."""
        self._stopping = True
        with suppress(OSError):
            self._pipe.send(None)
        self._process.join(_END_S)
        if self._process.is_alive():
            logger.error("the %s does not end and is killed", self._name)
            self._process.kill()
            self._process.join()
        if self._listener.is_alive():
            self._listener.join()
        self._pipe.close()
        if self._pipe in self._pipes:
            self._pipes.remove(self._pipe)


def _be(pipe: Connection, run: Run, closes: Iterable[Closable]) -> None:
    """Be the part; the platform's process alone decides when it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # both reach whole groups of processes
        signal.signal(number, lambda *_: None)  # git would inherit what is ignored
    for each in closes:
        each.close()
    sending = threading.Lock()

    def say(what: object) -> None:
        with sending, suppress(OSError):  # the platform is gone, and so is this process soon
            pipe.send(what)

    def heard() -> Any:
        try:
            return pipe.recv()
        except (EOFError, OSError):
            os._exit(1)  # the platform's process was killed: end as it did, and clear nothing up

    try:
        needs = heard()
        if needs is not None:
            with run(needs, say):
                say(_Started())
                heard()
    except OrderkitError as error:
        say(_Failed(str(error), error.hint, error.exit_code))
    except Exception as error:
        logger.exception("a part of the platform failed")
        say(_Failed(f"{type(error).__name__}: {error}"))
