"""
Every ``sh`` block of these pages works as shown, in its order, on one platform.

The README and the first order have ``test_readme.py``, the tutorial has ``test_tutorial.py``.
Blocks that need a system of the reader's are marked ``shell``: for those,
``tests/unit/test_documented_commands.py`` checks that commands and options exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentedpages import ANY_PORT, ROOT, Page, Reader, running_platform

ORDERED = "orderkit order garage team_name=ae86 stage=stage2"
PAGES = (
    Page("docs/approvals.md"),
    Page("docs/kits.md"),
    Page("docs/schemas.md", in_pack=True),
    Page("docs/changes.md", before=ORDERED),
    Page("docs/plans.md", before=ORDERED, in_pack=True),
    Page("docs/templates.md"),
    Page("docs/teams.md"),
    Page("docs/portal.md"),
    Page("docs/delivery.md"),
    Page("docs/leases.md", before=ORDERED),
    Page("docs/ending.md", before=ORDERED),
    Page("docs/pipelines.md", before=ORDERED),
    Page("docs/notifications.md"),
    Page("docs/repairing.md", before=ORDERED),
    Page("docs/cost.md", in_pack=True),
)
ELSEWHERE = {"first-order.md", "tutorial.md", "install.md", "garage.md"}
"""Pages with ``sh`` blocks that other tests execute; a kit's page is generated."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    home = tmp_path_factory.mktemp("home")
    notifications = home / "notifications.yaml"
    notifications.write_text(shown_file(ROOT / "docs/notifications.md", "# notifications.yaml"))
    people = ("--user=eve=ae86", "--user=frank=platform")  # as docs/approvals.md shows
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


def has_commands(text: str) -> bool:
    return re.search(r"^```sh\n", text, re.MULTILINE) is not None


@pytest.mark.parametrize(
    ("page", "block"),
    [(page, block) for page in PAGES for block in page.blocks],
    ids=lambda value: value.name if isinstance(value, Page) else value.split("\n")[0][:40],
)
def test_the_block_works(page: Page, block: str, reader: Reader) -> None:
    reader.types(page, block)
