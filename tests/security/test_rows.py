"""The tests that docs/attacks.md names are not only collected: they are among those that run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROOF = re.compile(r"`((?:[a-z0-9_]+/)*test_[a-z0-9_]+\.py(?:::test_[a-z0-9_]+)?)`")


def test_a_proof_is_not_deselected(request: pytest.FixtureRequest) -> None:
    """A test on real systems only proves nothing where there are none."""
    proofs = set(_PROOF.findall((ROOT / "docs/attacks.md").read_text()))
    names = [name if "/" in name else f"security/{name}" for name in proofs]
    named = {
        name if name.startswith(("extras/", "libs/")) else f"tests/{name}"
        for name in names
        if not name.startswith("e2e/")
    }
    ran = {item.nodeid.partition("[")[0] for item in request.session.items}
    ran |= {nodeid.partition("::")[0] for nodeid in ran}
    if not {name.partition("::")[0] for name in named} <= ran:
        pytest.skip("only a part of the tests was asked for: make security runs all")

    assert named <= ran
