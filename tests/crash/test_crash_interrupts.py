"""Ctrl-C, as a terminal sends it to the whole process group: nothing runs on, nothing stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderkit.core.errors import EXIT_DONE, EXIT_INTERRUPTED

DEADLINE_S = 60.0
READY = "Stop with ctrl-C"


class Started:
    """A command as the leader of a session of its own, its temporary files in one folder."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", "orderkit", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(self.temporary)},
                start_new_session=True,
            )

    def wait_for(self, text: str) -> None:
        """Wait until it printed `text`."""
        end = time.monotonic() + DEADLINE_S
        while text not in self.text():
            assert self._process.poll() is None, self.text()
            assert time.monotonic() < end, f"no {text!r} in time:\n{self.text()}"
            time.sleep(0.002)

    def interrupt(self) -> int:
        """Send ctrl-C, return the exit code."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(DEADLINE_S)

    def text(self) -> str:
        return self._log.read_text()

    def family(self) -> list[int]:
        """Return the processes of its session that live."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
                if int(session) == self._process.pid and state != "Z":
                    found.append(int(stat.parent.name))
        return found

    def close(self) -> None:
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(DEADLINE_S)


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Started]:
    found = Started(folder, *arguments)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("stage", ["Orderkit demo", "  pack ", "  order ", "  change "])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, stage: str) -> None:
    with started(tmp_path, "demo") as demo:
        demo.wait_for(stage)

        assert demo.interrupt() == EXIT_INTERRUPTED, demo.text()
        assert demo.family() == []
        assert list(demo.temporary.iterdir()) == []
        assert "Traceback" not in demo.text()


@pytest.mark.parametrize(
    ("stage", "code"),
    [("  platform ", EXIT_INTERRUPTED), ("  layer ", EXIT_INTERRUPTED), (READY, EXIT_DONE)],
)
def test_an_interrupted_platform_stops_and_starts_again(
    tmp_path: Path, stage: str, code: int
) -> None:
    ports = [f"--{part}-port=0" for part in ("forge", "cluster", "portal", "service")]
    arguments = ("up", "--state", str(tmp_path / "state"), *ports)
    (tmp_path / "first").mkdir()
    with started(tmp_path / "first", *arguments) as up:
        up.wait_for(stage)

        assert up.interrupt() == code, up.text()
        assert (READY in up.text()) == (code == EXIT_DONE), "it went on starting"
        assert up.family() == []
        assert list(up.temporary.iterdir()) == []
        assert "Traceback" not in up.text()

    (tmp_path / "second").mkdir()
    with started(tmp_path / "second", *arguments) as up:
        up.wait_for(READY)
        assert up.interrupt() == EXIT_DONE, up.text()
