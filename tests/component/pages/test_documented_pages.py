"""
One reader types every ``sh`` block of these pages, from the first to the last, on one platform.

The README has ``test_readme.py``, the tutorial ``test_tutorial.py``, docs/install.md
``test_install_page.py``.
Blocks that need a system of the reader's are marked ``shell``: for those,
``tests/unit/test_documented_commands.py`` checks that commands and options exist.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentedpages import (
    ANY_PORT,
    ROOT,
    Page,
    Reader,
    people_of_the_first_order,
    running_platform,
)

PAGES = (
    Page("docs/first-order.md"),
    Page("docs/changes.md"),
    Page("docs/plans.md"),
    Page("docs/leases.md"),
    Page("docs/approvals.md"),
    Page("docs/cost.md", in_pack=True),
    Page("docs/ending.md"),
    Page("docs/repairing.md"),
    Page("docs/pipelines.md"),
    Page("docs/delivery.md"),
    Page("docs/teams.md"),
    Page("docs/portal.md"),
    Page("docs/portal-profiles.md"),
    Page("docs/notifications.md"),
    Page("docs/disaster.md"),
    Page("docs/kits.md"),
    Page("docs/plan-a-kit-change.md", in_pack=True),
    Page("docs/schemas.md", in_pack=True),
    Page("docs/templates.md"),
)
"""In the order of docs/README.md: what a page leaves behind is there when the next one begins."""
ELSEWHERE = {"tutorial.md", "install.md", "garage.md", "github.md", "gitlab.md"}
"""Pages with ``sh`` blocks that other tests execute; a kit's page is generated."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    home = tmp_path_factory.mktemp("home")
    notifications = home / "notifications.yaml"
    notifications.write_text(shown_file(ROOT / "docs/notifications.md", "# notifications.yaml"))
    people = people_of_the_first_order()
    with running_platform(home, (*ANY_PORT, f"--notifications={notifications}", *people)):
        yield Reader(home)


def shown_file(page: Path, comment: str) -> str:
    """Return the ``yaml`` block of a page that begins with a comment."""
    blocks: list[str] = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    (text,) = [block for block in blocks if block.startswith(comment)]
    return text


def test_no_page_with_commands_is_forgotten() -> None:
    shown = {page.name for page in (ROOT / "docs").rglob("*.md") if has_commands(page.read_text())}

    assert shown - ELSEWHERE == {page.name.removeprefix("docs/") for page in PAGES}


def test_the_pages_have_the_order_of_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    places = [index.index(f"({page.name.removeprefix('docs/')})") for page in PAGES]

    assert places == sorted(places)


def has_commands(text: str) -> bool:
    return re.search(r"^ *```sh\n", text, re.MULTILINE) is not None


@pytest.mark.parametrize(
    ("page", "block"),
    [(page, block) for page in PAGES for block in page.blocks],
    ids=lambda value: value.name if isinstance(value, Page) else value.split("\n")[0][:40],
)
def test_the_block_works(page: Page, block: str, reader: Reader) -> None:
    if "kubectl" in block and not shutil.which("kubectl"):
        pytest.skip("no kubectl on PATH")

    reader.types(page, block)
