"""Random edits of random texts, judged by PyYAML, ruamel and, where built, Go's readers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from chances import Chances
from yamlblocks import POSSIBLE
from yamlproof import Summary, prove_one
from yamlreaders import Reader, typed

PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_only_the_intended_value_differs_for_every_reader(
    part: int, chances: Chances, readers: Sequence[Reader], summary: Summary
) -> None:
    """Nothing else differs, no line changes that need not, and refusals are those foreseen."""
    for at in range(chances.count(1_000, 100_000) // PARTS):
        prove_one(chances.random(f"edit {part} {at}"), readers, summary)
    assert summary.edited


@pytest.mark.parametrize(("reason", "after"), [(case[0], case[3]) for case in POSSIBLE])
def test_every_reader_agrees_about_edited_blocks_sets_and_braces(
    reason: str, after: str, readers: Sequence[Reader]
) -> None:
    first, *others = (typed(reader.read(after)) for reader in readers)

    assert others
    assert all(other == first for other in others), reason
