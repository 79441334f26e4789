"""The READMEs of the houses above the product: their examples work as they are printed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from documentedpages import Page, environment
from housepages import run_example

ROOT = Path(__file__).parents[3]


def test_the_example_of_the_embedded_platform_orders() -> None:
    printed, promised, _ = run_example(ROOT / "extras" / "standins", ROOT)

    assert printed == promised


def test_the_commands_of_the_workshop_make_a_pack_without_faults(tmp_path: Path) -> None:
    (block,) = Page("extras/workshop/README.md").blocks
    shell = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(
        shell, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " run: 0 errors, 0 warnings" in done.stderr
