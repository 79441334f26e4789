"""Ctrl-C, as a terminal sends it to the whole process group: nothing runs on, nothing stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.crash.processes import living

from ground.errors import EXIT_DONE, EXIT_INTERRUPTED

DEADLINE_S = 180.0
ANY_PORTS = tuple(f"--{part}-port=0" for part in ("forge", "cluster", "portal", "service"))
READY, LAST = "Stop with ctrl-C", "stages held"


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

    def interrupt(self) -> str:
        """Send ctrl-C and wait for the end; return what it had printed until then."""
        os.killpg(self._process.pid, signal.SIGSTOP)  # or it would print while we look
        said = self.text()
        os.killpg(self._process.pid, signal.SIGINT)
        os.killpg(self._process.pid, signal.SIGCONT)
        self._process.wait(DEADLINE_S)
        return said

    @property
    def code(self) -> int:
        return self._process.returncode

    def text(self) -> str:
        return self._log.read_text()

    def family(self) -> list[int]:
        """Return the processes of its session that live."""
        return living(self._process.pid, in_="session")

    def kill(self, number: int) -> None:
        """Kill its process (0), or its forks: the service (1), the forge (2)."""
        line = Path(f"/proc/{self._process.pid}/cmdline").read_bytes()
        own = [pid for pid in self.family() if Path(f"/proc/{pid}/cmdline").read_bytes() == line]
        os.kill(sorted(own)[number], signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it and its forks have ended."""
        self._process.wait(DEADLINE_S)
        end = time.monotonic() + DEADLINE_S
        while self.family():
            assert time.monotonic() < end, self.family()
            time.sleep(0.01)

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


soaked = partial(pytest.param, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    "stage", ["Orderkit demo", "  order ", soaked("  pack "), soaked("  change ")]
)
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, stage: str) -> None:
    with started(tmp_path, "demo") as demo:
        demo.wait_for(stage)

        if LAST not in demo.interrupt():  # else it was quicker than we: it ended by itself
            assert demo.code == EXIT_INTERRUPTED, demo.text()
        assert demo.family() == []
        assert list(demo.temporary.iterdir()) == []
        assert "Traceback" not in demo.text()


@pytest.mark.parametrize("stage", ["  layer ", READY, soaked("  platform ")])
def test_an_interrupted_platform_stops_and_starts_again(tmp_path: Path, stage: str) -> None:
    arguments = ("up", "--state", str(tmp_path / "state"), *ANY_PORTS)
    (tmp_path / "first").mkdir()
    with started(tmp_path / "first", *arguments) as up:
        up.wait_for(stage)

        was_ready = READY in up.interrupt()
        assert up.code == (EXIT_DONE if was_ready else EXIT_INTERRUPTED), up.text()
        assert (READY in up.text()) == was_ready, "it went on starting"
        assert up.family() == []
        assert list(up.temporary.iterdir()) == []
        assert "Traceback" not in up.text()

    (tmp_path / "second").mkdir()
    with started(tmp_path / "second", *arguments) as up:
        up.wait_for(READY)
        up.interrupt()
        assert up.code == EXIT_DONE, up.text()


@pytest.mark.parametrize(
    ("number", "part", "stage"),
    [(1, "service", READY), (2, "forge", READY), (2, "forge", "  layer ")],
)
def test_a_platform_that_loses_a_part_ends_and_says_which(
    tmp_path: Path, number: int, part: str, stage: str
) -> None:
    with started(tmp_path, "up", "--state", str(tmp_path / "state"), *ANY_PORTS) as up:
        up.wait_for(stage)
        up.kill(number)
        up.wait()

        assert up.code == 1
        assert f"the {part}'s process ended by itself (-9)" in up.text()
        assert "start it again" in up.text()
        assert "Traceback" not in up.text()


def test_parts_of_a_killed_platform_end_and_it_starts_again_at_once(tmp_path: Path) -> None:
    arguments = ("up", "--state", str(tmp_path / "state"), *ANY_PORTS)
    with started(tmp_path, *arguments) as up:
        up.wait_for(READY)
        up.kill(0)
        (tmp_path / "second").mkdir()
        with started(tmp_path / "second", *arguments) as again:
            again.wait_for(READY)
        up.wait()

        assert up.code == -signal.SIGKILL
