"""Random edits of random texts, judged by PyYAML, ruamel and, where built, Go's readers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.conftest import Chances
from yamlproof import Summary, prove_one
from yamlreaders import Reader

PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_only_the_intended_value_differs_for_every_reader(
    part: int, chances: Chances, readers: Sequence[Reader], summary: Summary
) -> None:
    """Nothing else differs, no line changes that need not, and refusals are those foreseen."""
    for at in range(chances.count(1_000, 100_000) // PARTS):
        prove_one(chances.random(f"edit {part} {at}"), readers, summary)
    assert summary.edited
