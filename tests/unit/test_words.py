"""One idea has one word: no page, message or hint has a word that docs/glossary.md replaces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    {
        page
        for pattern in (
            "*.md",
            "docs/*.md",
            "packs/**/*.md",
            "[!.]*/README.md",
            "[!.]*/[!.]*/README.md",
        )
        for page in ROOT.glob(pattern)
        if page.name not in {"CHANGELOG.md", "glossary.md"}
        and not {"skeleton", "adr"} & {*page.parts}
    }
)
"""Releases and decisions keep the words of their day."""
MODULES = sorted(
    path
    for pattern in ("src/**/*.py", "libs/*/src/**/*.py", "extras/*/src/**/*.py", "stations/**/*.py")
    for path in ROOT.glob(pattern)
)
_TABLE = re.compile(r"^\| Write \| Not \|\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
_NAMES = re.compile(r"`[^`\n]*`|\]\([^)]*\)")
"""Code and addresses: what they name keeps its name."""


def lost_words() -> list[str]:
    """Return the words in the right column of the glossary's table."""
    (rows,) = _TABLE.findall((ROOT / "docs/glossary.md").read_text())
    return [word.strip() for row in rows.splitlines() for word in row.split("|")[2].split(",")]


LOST = re.compile(rf"(?<![\w/-])({'|'.join(lost_words())})(?![\w/-])", re.IGNORECASE)


def found(text: str) -> Iterator[str]:
    """Yield line number and text of each line with a lost word."""
    for number, line in enumerate(text.splitlines(), 1):
        if LOST.search(_NAMES.sub("", line)):
            yield f"{number}: {line.strip()}"


def messages(path: Path) -> Iterator[str]:
    """Yield the texts of a module that people may read: those with a blank, without docstrings."""
    source = path.read_text()
    if not LOST.search(source):
        return
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if " " in text and id(node) not in docstrings:
                yield from found(text)


def test_the_glossary_names_words_and_they_are_found() -> None:
    assert len(lost_words()) > 10
    assert [*found("A living order.\n`agreed` and [here](a-living-order.md)\nNo remedy")] == [
        "1: A living order.",
        "3: No remedy",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_none_of_them(page: Path) -> None:
    assert [*found(page.read_text())] == []


def test_no_message_has_one_of_them() -> None:
    wrong = {str(path.relative_to(ROOT)): [*messages(path)] for path in MODULES}

    assert {name: texts for name, texts in wrong.items() if texts} == {}


def test_no_page_of_the_console_has_one_of_them() -> None:
    pages = sorted((ROOT / "src/orderkit/web/console/templates").glob("*.html"))
    texts = {page.name: re.sub(r"\{[{%].*?[}%]\}", "", page.read_text()) for page in pages}

    assert pages
    assert [*found("\n".join(texts.values()))] == []
