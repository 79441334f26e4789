"""CI runs every verb of the Makefile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
VERBS = re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE)
NOT_IN_CI = {"clean", "matrix", "cluster", "cluster-down"}
"""
The first removes what the run is about to use, the second builds two more systems, the others a
kubelet and an image: ``make soak PART=node`` runs them.
"""


@pytest.mark.parametrize("verb", sorted({*VERBS} - NOT_IN_CI))
def test_ci_runs_the_verb(verb: str) -> None:
    commands = (ROOT / ".ci" / "run").read_text()

    assert re.search(rf"(make|kept|looked_at) {verb}(?![\w-])", commands), verb
