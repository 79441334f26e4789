"""A copy of a pack whose twins of providers need a moment for each thing, and no seconds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from orderkit_standins.providers.provider_objects import DELAY, TWIN

MOMENT = "0.1s"


def quick_pack(pack: Path, target: Path) -> Path:
    """Copy a pack to `target`, with a short delay in each Provider and kind that has a twin."""
    shutil.copytree(pack, target)
    for file in target.glob("gitops/providers/*/*.yaml"):
        text = re.sub(rf"^ *{re.escape(DELAY)}:.*\n", "", file.read_text(), flags=re.MULTILINE)
        twin = rf"^( *){re.escape(TWIN)}:.*\n"
        file.write_text(re.sub(twin, rf"\g<0>\1{DELAY}: {MOMENT}\n", text, flags=re.MULTILINE))
    behaviours = target / "schemas" / "behaviour.yaml"
    if behaviours.exists():
        text = re.sub(
            r"^( +delay:) .*$", rf"\1 {MOMENT}", behaviours.read_text(), flags=re.MULTILINE
        )
        behaviours.write_text(text)
    return target
