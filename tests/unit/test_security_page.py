"""Every test that SECURITY.md names as the proof of a promise exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROOF = re.compile(r"`((?:[a-z0-9_]+/)*test_[a-z0-9_]+\.py)(?:::(test_[a-z0-9_]+))?`")
PROOFS = sorted(set(_PROOF.findall((ROOT / "SECURITY.md").read_text())))


def _file(name: str) -> Path:
    return ROOT / "tests" / (name if "/" in name else f"security/{name}")


def test_the_page_names_proofs() -> None:
    assert len(PROOFS) > 50


@pytest.mark.parametrize(("file", "test"), PROOFS)
def test_a_proof_exists(file: str, test: str) -> None:
    text = _file(file).read_text()

    assert f"def {test or 'test_'}" in text
