"""How well a server is known, and that the page about it says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderkit.adapters.gitea import reviews
from orderkit.adapters.gitea.reading import RULES, judge_gitea

PAGE = Path(__file__).parents[3] / "docs" / "forge.md"


@pytest.mark.parametrize(
    "version", ["15.0.1+gitea-1.22.0", "1.27.3+gitea-1.22.0", "7.0.0-forgejo", "1.21.11-0+Forgejo"]
)
def test_forgejo_is_not_judged_as_gitea(version: str) -> None:
    found = judge_gitea(version)

    assert (found.basis, found.holes) == ("unknown", ())
    assert found.detail.startswith(f"Forgejo {version}: its description of December 2024")
    assert "no suite ran against it" in found.detail
    assert found.hint.endswith("orderkit forge check --live --organisation X")


def test_gitea_is_judged_by_the_table() -> None:
    assert judge_gitea("1.27.3").basis == "observed"


def test_the_page_has_every_rule() -> None:
    text = PAGE.read_text()

    for rule in RULES:
        assert f"| {rule.situation} | {rule.answer} |" in text


@pytest.mark.parametrize("name", ["block_admin_merge_override", "apply_to_admins"])
def test_a_rule_that_binds_owners_is_known_by_gitea_and_by_forgejo(name: str) -> None:
    """Forgejo's description has the second name only; the other is absent from its answers."""
    wanted = reviews._rule("main", ["approved"])  # noqa: SLF001  what is sent, and compared
    own = ("block_admin_merge_override", "apply_to_admins")
    answered = {key: value for key, value in wanted.items() if key not in own}

    assert reviews._has({**answered, name: True}, wanted)  # noqa: SLF001
    assert not reviews._has({**answered, name: False}, wanted)  # noqa: SLF001
    assert not reviews._has(answered, wanted)  # noqa: SLF001
