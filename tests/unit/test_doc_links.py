"""Every relative link of a page leads to a file, every anchor to a heading; no page is unlisted."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "[!.]*/README.md",
        "docs/**/*.md",
        "gitops/**/*.md",
        "packs/**/*.md",
        "tests/kits/*.md",
    )
    for path in ROOT.glob(pattern)
    if "skeleton" not in path.parts  # whose links are templates
)
_FENCED = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Gitea and GitHub make them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    bare = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in bare}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_somewhere(page: Path) -> None:
    broken = []
    for path, anchor in _LINK.findall(_FENCED.sub("", page.read_text())):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")

    assert broken == []


def test_the_index_names_every_page() -> None:
    linked = {path for path, _ in _LINK.findall((DOCS / "README.md").read_text())}

    assert {page.name for page in DOCS.glob("*.md")} - linked == {"README.md"}


def test_the_list_of_decisions_is_complete_and_has_no_gap() -> None:
    folder = DOCS / "adr"
    listed = re.findall(r"\| \[(\d+)\]\((\d{4})-", (folder / "README.md").read_text())
    numbers = sorted(int(page.name[:4]) for page in folder.glob("0*.md"))

    assert [int(number) for number, _ in listed] == numbers == list(range(1, len(numbers) + 1))
    assert all(int(number) == int(file) for number, file in listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_file_of_the_repository_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(
        r"`((?:src|libs|extras|bench|scripts|lab|tests(?!/stations))/[\w./-]*[\w/])`",
        page.read_text(),
    )

    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_module_that_a_page_names_without_its_folder_exists(page: Path) -> None:
    named = set(re.findall(r"`(\w+\.py)`", page.read_text()))

    assert named - _modules() == set()


@functools.cache
def _modules() -> set[str]:
    """Return the names of all modules: of the houses, the packs and what stands beside them."""
    return {
        file.name
        for folder in ("src", "libs", "extras", "bench", "scripts", "lab", "tests", "packs")
        for file in (ROOT / folder).rglob("*.py")
    } | {"conftest.py"}
