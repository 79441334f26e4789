"""Every command of the README works as shown, in its order, with a home of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderkit.adapters.embedded.platform import DEFAULT_PORTS

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
UP = ".venv/bin/orderkit up"
COMMANDS = [block for block in BLOCKS if not block.startswith(("make ", UP))]


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which ``orderkit up`` runs as the README says, on its default ports."""
    if not all(map(is_free, DEFAULT_PORTS.values())):
        pytest.skip("a default port is taken: another 'orderkit up' runs here")
    home = tmp_path_factory.mktemp("home")
    command = [str(Path(sys.executable).with_name("orderkit")), "up"]
    with subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Stop with ctrl-C" in line:
                break
        yield home
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0


def environment(home: Path) -> dict[str, str]:
    left_out = ("XDG_STATE_HOME", "KUBECONFIG", "ORDERKIT_STATE", "ORDERKIT_PLATFORM")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    who = {"NAME": "Reader", "EMAIL": "reader@localhost"}
    return {
        **kept,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **{f"GIT_AUTHOR_{key}": value for key, value in who.items()},
        **{f"GIT_COMMITTER_{key}": value for key, value in who.items()},
    }


def test_the_readme_starts_the_platform_as_the_fixture_does() -> None:
    assert f"{UP}\n" in BLOCKS


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.split("\n")[0][:40])
def test_the_readme_block_works(block: str, home: Path) -> None:
    if "kubectl" in block and not shutil.which("kubectl"):
        pytest.skip("no kubectl on PATH")

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )

    assert done.returncode == 0, done.stdout + done.stderr
