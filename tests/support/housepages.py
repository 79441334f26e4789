"""The README of a house: its example, what that prints, and which packages it loads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_LOADED = "\nimport sys\nprint(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"


def run_example(house: Path, folder: Path) -> tuple[str, str, set[str]]:
    """Run a README's example in a folder; return what it printed, what the page says, packages."""
    ((code, promised),) = _EXAMPLE.findall((house / "README.md").read_text())
    done = subprocess.run(
        [sys.executable, "-I", "-c", code + _LOADED],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout.strip(), promised.strip(), set(done.stderr.split())
