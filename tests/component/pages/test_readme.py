"""Every command of the README and of docs/first-order.md works as shown, in its order."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator

import pytest
from documentedpages import ROOT, Page, Reader, people_of_the_first_order, running_platform

from orderkit_standins.platform import DEFAULT_PORTS

PAGES = (Page("README.md"), Page("docs/first-order.md"))


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader beside ``orderkit up`` on its default ports, which the page names."""
    if not all(map(is_free, DEFAULT_PORTS.values())):
        pytest.skip("a default port is taken: another 'orderkit up' runs here")
    home = tmp_path_factory.mktemp("home")
    with running_platform(home, people_of_the_first_order()):
        yield Reader(home)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize(
    ("page", "block"),
    [(page, block) for page in PAGES for block in page.blocks],
    ids=lambda value: value.name if isinstance(value, Page) else value.split("\n")[0][:40],
)
def test_the_block_works(page: Page, block: str, reader: Reader) -> None:
    if "kubectl" in block and not shutil.which("kubectl"):
        pytest.skip("no kubectl on PATH")

    reader.types(page, block)
