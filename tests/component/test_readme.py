"""
Every ``sh`` block of these pages works as shown, in its order, on one platform.

A page's blocks share a folder, like one reader's terminal. ``make`` verbs are for CI, and the
tutorial has a test of its own. Blocks that need other systems are marked ``shell``: for those, and
for all other pages, ``tests/unit/test_documented_commands.py`` checks commands and options.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orderkit.adapters.embedded.platform import DEFAULT_PORTS

ROOT = Path(__file__).parents[2]
UP = ".venv/bin/orderkit up"
PACK = ("pack.yaml", ".yamllint", "templates", "day2", "gitops", "stations", "tests/kits")
_COMMAND_S = 280
_PLAN_ENDS_WITH_10 = """
orderkit() {
  command orderkit "$@" || { local code=$?; test "$1" = plan && test $code -eq 3 -o $code -eq 10; }
}
"""
"""A plan that changes something is no failure (3 before 0.3)."""


@dataclass(frozen=True)
class Page:
    """A page whose blocks are executed; `before` is what its reader has done already."""

    name: str
    before: str = ""
    in_pack: bool = False
    """Its reader stands in a pack's folder."""

    @property
    def blocks(self) -> list[str]:
        found = re.findall(r"```sh\n(.*?)```", (ROOT / self.name).read_text(), re.DOTALL)
        return [block for block in found if not block.startswith(("make ", UP))]


ORDERED = "orderkit order garage team_name=ae86 stage=stage2"
PAGES = (
    Page("README.md"),
    Page("docs/kits.md"),
    Page("docs/changes.md", before=ORDERED),
    Page("docs/plans.md", before=ORDERED, in_pack=True),
    Page("docs/templates.md"),
    Page("docs/teams.md"),
    Page("docs/portal.md"),
    Page("docs/delivery.md"),
    Page("docs/ending.md", before=ORDERED),
    Page("docs/first-order.md"),
)
"""In this order: the end of one page's order makes room for the next page's."""


class Reader:
    """Types what a page shows: one folder for each page, which ``cd`` changes."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folders: dict[Page, Path] = {}

    def types(self, page: Page, block: str) -> None:
        if page not in self._folders:
            self._folders[page] = self._new_folder(page)
            if page.before:
                self._run(page, page.before)
        self._run(page, block)

    def _new_folder(self, page: Page) -> Path:
        folder = self._home / Path(page.name).stem
        folder.mkdir()
        if page.in_pack:
            for name in PACK:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                (folder / name).parent.mkdir(exist_ok=True)
                copy(ROOT / name, folder / name)
        return folder

    def _run(self, page: Page, block: str) -> None:
        where = self._home / "where"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{_PLAN_ENDS_WITH_10}{block}\npwd > '{where}'"],
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


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader beside ``orderkit up``, which runs as the page says, on its default ports."""
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
        yield Reader(home)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0


def test_the_page_starts_the_platform_as_the_fixture_does() -> None:
    assert f"```sh\n{UP}\n```" in (ROOT / "docs/first-order.md").read_text()


@pytest.mark.parametrize(
    ("page", "block"),
    [(page, block) for page in PAGES for block in page.blocks],
    ids=lambda value: value.name if isinstance(value, Page) else value.split("\n")[0][:40],
)
def test_the_block_works(page: Page, block: str, reader: Reader) -> None:
    if "kubectl" in block and not shutil.which("kubectl"):
        pytest.skip("no kubectl on PATH")

    reader.types(page, block)
