"""The real Gitea of the tests as a process: it ends with whoever started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab.realgitea import ADMIN, named_by_environment

from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock

ROOT = Path(__file__).parents[2]
START = """
import pathlib, sys, time
from lab import realgitea
with realgitea.serving(pathlib.Path(sys.argv[1])) as found:
    print(found.url, flush=True)
    time.sleep(600)
"""


def _running(folder: Path) -> list[int]:
    """Return the processes whose command line names the folder's app.ini."""
    wanted = str(folder / "app.ini").encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # it ended meanwhile
            continue
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_starter(how: signal.Signals, tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert starter.stdout
    with starter.stdout as said:
        assert said.readline().startswith("http://127.0.0.1:")
        assert len(_running(tmp_path)) == 1

        os.kill(starter.pid, how)
        starter.wait(30)

    until(
        SystemClock(),
        lambda: _running(tmp_path),
        lambda found: not found,
        timeout_s=90,
        goal="Gitea ending",
        why_not=str,
    )


def test_the_environment_names_another_one() -> None:
    names = ("URL", "USER", "PASSWORD", "TOKEN")
    values = ("http://127.0.0.1:3000/", ADMIN, "p", "t")
    environment = {
        f"ORDERKIT_TEST_GITEA_{name}": value for name, value in zip(names, values, strict=True)
    }

    found = named_by_environment(environment)

    assert found is not None
    assert (found.url, found.user) == ("http://127.0.0.1:3000", ADMIN)
    assert named_by_environment({}) is None
