"""Every command of docs/tutorial.md works as shown, in its order, in a folder of the reader's."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentedpages import ROOT, environment

BLOCKS: list[tuple[str, str]] = re.findall(
    r"```(sh|text)\n(.*?)```", (ROOT / "docs/tutorial.md").read_text(), re.DOTALL
)
"""What to type, and what the commands before it print."""
INSTALL, UP = "make setup\n", "orderkit up --pack .\n"
ANY_PORT = ["--forge-port=0", "--cluster-port=0", "--portal-port=0", "--service-port=0"]
_COMMAND_S = 280


class Reader:
    """Types what the tutorial shows: one shell, and the platform in a second terminal."""

    def __init__(self, home: Path, undo: contextlib.ExitStack) -> None:
        self._home, self._undo = home, undo
        self._folder = home
        self._platform: subprocess.Popen[str] | None = None
        self._printed = ""

    def types(self, block: str) -> None:
        if block == UP:
            self._restart()
            return
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{block}\npwd > '{self._home}/where'"],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        self._printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{block}\n{self._printed}"
        self._folder = Path((self._home / "where").read_text().strip())

    def reads(self, block: str) -> None:
        """Compare what a page shows with what was printed; ``…`` differs each time."""
        at = 0
        for line in block.splitlines():
            pattern = re.escape(line.strip()).replace("…", ".*")
            match = re.compile(pattern).search(self._printed, at)
            assert match, f"no {line!r} after character {at} of:\n{self._printed}"
            at = match.end()

    def _environment(self) -> dict[str, str]:
        return {**environment(self._home), "TMPDIR": str(self._home)}

    def _restart(self) -> None:
        if self._platform is not None:
            self.stop(self._platform)
        command = [sys.executable, "-m", "orderkit", *UP.split()[1:], *ANY_PORT]
        process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._platform = process
        self._undo.callback(self.stop, process)
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "Stop with ctrl-C" in line:
                return
        pytest.fail(f"the platform did not start: {''.join(said)}")

    @staticmethod
    def stop(process: subprocess.Popen[str]) -> None:
        """Press ctrl-C; a second time changes nothing."""
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with contextlib.ExitStack() as undo:
        yield Reader(tmp_path, undo)


@pytest.mark.timeout(900)
def test_the_tutorial_leads_from_an_xrd_and_from_fields_to_orders_and_their_end(
    reader: Reader,
) -> None:
    assert INSTALL in BLOCKS[0][1], "the first block installs, which `make test` has done"
    assert BLOCKS.count(("sh", UP)) == 3
    assert sum(language == "text" for language, _ in BLOCKS) > 3

    for language, block in BLOCKS[1:]:
        if language == "sh":
            reader.types(block)
        else:
            reader.reads(block)
