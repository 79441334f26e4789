"""Pages stay short, and the words of all pages of docs/ together only get better."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
GENERATED = {"editing.md", "kit-check.md", "rendering.md", "versions.md"}
WORDS_MAX = 1500
LONGER = {
    "README.md": 1900,
    "attacks.md": 6100,
    "campaigns.md": 2500,
    "figures.md": 4000,
    "forge.md": 2900,
    "functions.md": 1800,
}
"""Pages that may have more words. A number may only fall, and a page that is split leaves."""
MOST = {"what": 0.85, "semicolons": 0.95, "whoever and its like": 0.06}
LEAST = {"you": 22.0, "for example": 3.0, "blocks of code": 6.5}
"""How often each is found per 1,000 words. ``MOST`` may only fall, ``LEAST`` may only rise."""
_BLOCK = re.compile(r"^ *```.*?^ *```\n?", re.MULTILINE | re.DOTALL)
_NAMES = re.compile(r"`[^`\n]*`|(?<=\])\([^)]*\)")
"""Code and addresses are no prose."""
PATTERNS = {
    "what": r"\bwhat\b",
    "you": r"\byou(?:r|rs|rself)?\b",
    "semicolons": ";",
    "whoever and its like": r"\b(?:whoever|somebody|nobody|anybody|everybody)\b",
    "for example": r"\bfor example\b",
}


def figures(texts: list[str]) -> dict[str, float]:
    """Return how often each pattern, and a block of code, is found per 1,000 words."""
    text = "\n".join(texts)
    prose = _NAMES.sub("", _BLOCK.sub("", text))
    thousands = len(re.findall(r"[A-Za-z][\w'-]*", prose)) / 1000
    counts = {
        name: len(re.findall(pattern, prose, re.IGNORECASE)) for name, pattern in PATTERNS.items()
    }
    counts["blocks of code"] = len(_BLOCK.findall(text))
    return {name: round(count / thousands, 2) for name, count in counts.items()}


def test_figures_count_prose_and_not_code() -> None:
    text = "You see `what you; type`, [what](you.md):\n\n```sh\nwhat; you\n```\n"

    assert figures([text]) == {
        "what": 333.33,
        "you": 333.33,
        "semicolons": 0.0,
        "whoever and its like": 0.0,
        "for example": 0.0,
        "blocks of code": 333.33,
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_no_longer_than_a_reader_stays(page: Path) -> None:
    words = len(page.read_text().split())

    if page.name not in GENERATED:
        assert words <= LONGER.get(page.name, WORDS_MAX), "split it by task, or shorten it"
    assert page.name not in LONGER or words > WORDS_MAX, "take it out of LONGER"


def test_the_prose_of_all_pages_only_gets_better() -> None:
    found = figures([page.read_text() for page in PAGES])

    assert {name: found[name] for name in MOST if found[name] > MOST[name]} == {}
    assert {name: found[name] for name in LEAST if found[name] < LEAST[name]} == {}
