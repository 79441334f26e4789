"""Orderkit's commands as processes: start, wait, kill. The other end of ``zygote``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tests.crash.durable import Faults

ROOT = Path(__file__).parents[2]
_SUPPORT = ROOT / "tests" / "support"
UP_DEADLINE_S = 120.0
KILLED = -signal.SIGKILL
_POLL_S = 0.01
_READY = "Stop with ctrl-C"


class Zygote:
    """The process whose forks are the commands. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "default", "PYTHONPATH": _python_path()},
        )

    def start(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        redirect: Mapping[int, int] | None = None,
        faults: Faults | None = None,
        entry: str = "orderkit.cli.main:run",
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start ``orderkit ARGUMENTS``, or another entry; its output goes to `log`."""
        request = {
            "entry": entry,
            "argv": list(arguments),
            "log": str(log),
            "redirect": dict(redirect or {}),
            "faults": asdict(faults) if faults else None,
            "environment": dict(environment or {}),
        }
        return Process(self, self.ask(request)["pid"], log, tuple(arguments))

    def ask(self, request: object) -> dict[str, Any]:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{json.dumps(request)}\n".encode())
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            return answer

    def close(self) -> None:
        """End it, and with it every command that still runs."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(timeout=30)


def _python_path() -> str:
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(_SUPPORT), *([given] if given else [])])


@dataclass(frozen=True, slots=True)
class Process:
    """One command as a process."""

    zygote: Zygote
    pid: int
    log: Path
    arguments: tuple[str, ...]

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        code: int | None = self.zygote.ask({"poll": self.pid})["code"]
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that ended is not reaped before `poll` says so."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        self.wait(60)

    def wait(self, deadline_s: float) -> int:
        """Return the exit code once its forks have ended too, or fail after the deadline."""
        end = time.monotonic() + deadline_s
        # a fork sees the end of its parent a moment later
        while (code := self.poll()) is None or living(self.pid, in_="group"):
            if time.monotonic() > end:
                self.signal(signal.SIGKILL)
                raise AssertionError(f"{self.arguments} runs after {deadline_s} s:\n{self.text()}")
            time.sleep(_POLL_S)
        return code

    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def is_up(self) -> bool:
        """Wait until ``orderkit up`` serves, or is dead; say which."""
        end = time.monotonic() + UP_DEADLINE_S
        while self.poll() is None:
            if _READY in self.text():
                return True
            assert time.monotonic() < end, f"no platform after {UP_DEADLINE_S} s:\n{self.text()}"
            time.sleep(_POLL_S)
        return False


def living(leader: int, *, in_: Literal["group", "session"]) -> list[int]:
    """Return the processes of somebody's group or session that live."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group, session, *_ = stat.read_text().rpartition(")")[2].split()
            if int(group if in_ == "group" else session) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found
