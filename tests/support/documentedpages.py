"""A reader who types the ``sh`` blocks of a page, in its order, beside a running platform."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from packcopies import copied_pack

ROOT = Path(__file__).parents[2]
UP = "orderkit up "
ANY_PORT = ("--forge-port=0", "--cluster-port=0", "--portal-port=0", "--service-port=0")
_FORGE = "http://127.0.0.1:7300"
_COMMAND_S = 280
_STARTED = "Stop with ctrl-C"
_DIFFERENCE_IS_NO_FAILURE = """
orderkit() { command orderkit "$@" || test $? -eq 10; }
"""
"""Exit code 10 says that something differs or would change; a reader goes on."""


@dataclass(frozen=True)
class Page:
    """A page whose blocks are executed."""

    name: str
    in_pack: bool = False
    """Its reader is in a pack's folder."""

    @property
    def blocks(self) -> list[str]:
        """Return the ``sh`` blocks, but for verbs of make and what starts the platform."""
        blocks = re.findall(r"```sh\n(.*?)```", (ROOT / self.name).read_text(), re.DOTALL)
        return [block for block in blocks if not block.startswith(("make ", UP))]


def people_of_the_first_order() -> list[str]:
    """Return the options of ``orderkit up`` with which docs/first-order.md starts a platform."""
    (line,) = re.findall(rf"```sh\n{UP}(.*)\n```", (ROOT / "docs/first-order.md").read_text())
    return str(line).split()


class Reader:
    """Types what pages show: one folder for each page, which ``cd`` changes."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folders: dict[Page, Path] = {}

    def types(self, page: Page, block: str) -> None:
        """Run one block as a shell does that stops at the first failure."""
        if page not in self._folders:
            self._folders[page] = self._new_folder(page)
        self._run(page, block)

    def _new_folder(self, page: Page) -> Path:
        folder = self._home / page.name.removesuffix(".md").replace("/", "-")
        folder.mkdir()
        if page.in_pack:
            copied_pack(folder)
        return folder

    def _forge(self) -> str:
        """Return the forge's address, which pages show with its default port."""
        file = self._home / ".local/state/orderkit/platform.yaml"
        return str(yaml.safe_load(file.read_text())["spec"]["forge"]["url"])

    def _run(self, page: Page, block: str) -> None:
        where = self._home / "where"
        block = block.replace(_FORGE, self._forge())
        done = subprocess.run(
            [
                "bash",
                "-euo",
                "pipefail",
                "-c",
                f"{_DIFFERENCE_IS_NO_FAILURE}{block}\npwd > '{where}'",
            ],
            cwd=self._folders[page],
            env=environment(self._home),
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self._folders[page] = Path(where.read_text().strip())


def environment(home: Path) -> dict[str, str]:
    """Return what a reader's shell has: a home of its own, and ``orderkit`` on the PATH."""
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


@contextmanager
def running_platform(home: Path, options: Sequence[str] = ()) -> Iterator[None]:
    """Run ``orderkit up`` with its state below `home`; end it as ctrl-C does."""
    command = [str(Path(sys.executable).with_name("orderkit")), "up", *options]
    with subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any(_STARTED in line for line in process.stdout), "the platform did not start"
        yield
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
