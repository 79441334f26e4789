"""
The commands of the packs' READMEs work as shown, on platforms that were started as shown.

Only the clouds answer sooner there than the pack's own twins do.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from documentedpages import ANY_PORT, ROOT, Page, Reader, running_platform
from quickpack import quick_pack

PAGES = {
    "workspaces": (Page("packs/workspaces/README.md"),),
    "environments": (Page("packs/environments/README.md"),),
    "clusters": (Page("packs/clusters/README.md"), Page("packs/README.md")),
}


def up_options(page: Page) -> tuple[str, ...]:
    """Return the options of the page's ``orderkit up``."""
    (line,) = re.findall(r"^orderkit up (.*)$", (ROOT / page.name).read_text(), re.MULTILINE)
    return tuple(shlex.split(line, comments=True))


@pytest.mark.parametrize("pack", PAGES)
def test_a_new_user_of_the_pack_gets_what_its_readme_shows(pack: str, tmp_path: Path) -> None:
    keys = tmp_path / ".ssh"
    keys.mkdir()
    (keys / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoKeyOfNobodyDemoKeyOfNobodyDemoKeyOf eve@laptop\n"
    )
    blocks = [(page, block) for page in PAGES[pack] for block in page.blocks]
    assert blocks
    reader = Reader(tmp_path)
    shown = f"packs/{pack}"
    quick = str(quick_pack(ROOT / shown, tmp_path / "pack"))
    options = [quick if option == shown else option for option in up_options(PAGES[pack][0])]
    assert quick in options

    with running_platform(tmp_path, (*options, *ANY_PORT)):
        for page, block in blocks:
            reader.types(page, block)
