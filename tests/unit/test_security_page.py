"""Each row of docs/attacks.md names the test of its promise; ``make security`` runs that test."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROOF = re.compile(r"`((?:[a-z0-9_]+/)*test_[a-z0-9_]+\.py)(?:::(test_[a-z0-9_]+))?`")
_PAGE = (ROOT / "docs/attacks.md").read_text()
PROOFS = sorted(set(_PROOF.findall(_PAGE)))
ROWS = [
    line
    for table in re.findall(r"^\|[^\n]*\| Test \|\n\|[-|]+\n((?:\|[^\n]*\n)+)", _PAGE, re.MULTILINE)
    for line in table.splitlines()
]


def _file(name: str) -> Path:
    """Return the file of a proof: in another house than the product, or below ``tests``."""
    if name.startswith(("extras/", "libs/")):
        return ROOT / name
    return ROOT / "tests" / (name if "/" in name else f"security/{name}")


def test_the_page_has_rows_and_no_proof_outside_of_them() -> None:
    assert len(ROWS) > 150
    assert {proof for row in ROWS for proof in _PROOF.findall(row)} == set(PROOFS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:60])
def test_a_row_names_a_proof_that_needs_no_real_system(row: str) -> None:
    files = [file for file, _ in _PROOF.findall(row.rpartition(" | ")[2])]

    assert any(not file.startswith("e2e/") for file in files), row


@pytest.mark.parametrize(("file", "test"), PROOFS)
def test_a_proof_exists(file: str, test: str) -> None:
    text = _file(file).read_text()

    assert re.search(rf"^def {test}\(" if test else r"^def test_", text, re.MULTILINE)


def test_make_security_runs_every_proof_that_needs_no_real_system() -> None:
    told = subprocess.run(
        ["make", "--dry-run", "security"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},  # without the flags of a make that runs this test
        capture_output=True,
        text=True,
        check=True,
    )
    (command,) = (line for line in told.stdout.splitlines() if "tests/security" in line)

    assert set(command.split()[1:]) == {"tests/security"} | {
        f"{_file(file).relative_to(ROOT)}{'::' if test else ''}{test}"
        for file, test in PROOFS
        if "/" in file and not file.startswith("e2e/")
    }
