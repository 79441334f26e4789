"""How well a server is known, and that the page about it says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderkit.adapters.gitea.versions import RULES, judge_gitea

PAGE = Path(__file__).parents[3] / "docs" / "forge.md"


@pytest.mark.parametrize(
    "version", ["15.0.1+gitea-1.22.0", "1.27.3+gitea-1.22.0", "7.0.0-forgejo", "1.21.11-0+Forgejo"]
)
def test_forgejo_is_not_judged_as_gitea(version: str) -> None:
    found = judge_gitea(version)

    assert (found.basis, found.holes) == ("unknown", ())
    assert (
        found.detail == f"Forgejo {version} is another product than Gitea: it is not supported yet"
    )
    assert found.hint.startswith("install Gitea 28.4.0, or 1.27.3")


def test_gitea_is_judged_by_the_table() -> None:
    assert judge_gitea("1.27.3").basis == "observed"


def test_the_page_has_every_rule() -> None:
    text = PAGE.read_text()

    for rule in RULES:
        assert f"| {rule.situation} | {rule.answer} |" in text
