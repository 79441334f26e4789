"""Processes that run until they are stopped: started with a log, awaited, ended by their pid."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_S = 0.05
_STOP_S = 90.0
_TAIL_BYTES = 4000
_LAZY_GO = {"GOGC": "400"}
"""For programs in Go: a quarter less processor time, for twice the memory (0.9 GB at most)."""


class DaemonError(Exception):
    """A process ended, or did not get ready, before it was wanted to. Shows the log's end."""


class Daemon:
    """
    One process in a session of its own, so that a ctrl-C reaches its parent alone.

    Where there is ``setpriv`` (Linux), it ends with the thread that started it, however that ends.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.log = name, log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [*_ending_with_us(), *command],
                cwd=folder,
                env={**(os.environ if environment is None else environment), **_LAZY_GO},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_until(self, ready: Callable[[], bool], *, timeout_s: float) -> None:
        """
        Return once `ready` says so.

        Raises:
            DaemonError: The process ended first, or the time is over.
        """
        end = time.monotonic() + timeout_s
        while not ready():
            if (code := self._process.poll()) is not None:
                raise DaemonError(f"{self.name} ended with {code}:\n{self.text()[-_TAIL_BYTES:]}")
            if time.monotonic() > end:
                raise DaemonError(
                    f"{self.name} is not ready after {timeout_s:g} s:\n{self.text()[-_TAIL_BYTES:]}"
                )
            time.sleep(_POLL_S)

    def ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it by SIGKILL, with whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """End it: politely, then by force. Safe to call twice."""
        if self.ended():
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _ending_with_us() -> list[str]:
    """
    Return what to put before a command so that a killed test run leaves nothing behind.

    SIGTERM is not enough: an API server whose etcd went first waits for it without end.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
