"""How well a server is known, and that the page about it says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderkit.adapters.gitea.versions import RULES, evidence

PAGE = Path(__file__).parents[3] / "docs" / "forge.md"


@pytest.mark.parametrize(
    ("version", "basis"),
    [
        ("1.26.0", "observed"),
        ("1.26.3+dev-12-gabc", "observed"),
        ("1.24.3", "too old"),
        ("1.24.0-rootless", "too old"),
        ("12.0.1+gitea-1.22.0", "unknown"),
        ("1.25.1", "too old"),
        ("1.2.6", "too old"),
        ("1.27.0", "unknown"),
        ("11.26.0", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_version_is_known(version: str, basis: str) -> None:
    found = evidence(version)

    assert (found.basis, found.version) == (basis, version)


def test_the_page_has_every_rule() -> None:
    text = PAGE.read_text()

    for rule in RULES:
        assert f"| {rule.situation} | {rule.answer} |" in text
