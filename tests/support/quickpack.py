"""A copy of a pack whose twins of providers need a moment for each thing instead of two seconds."""

from __future__ import annotations

import shutil
from pathlib import Path

from orderkit.adapters.embedded.providers.provider_objects import DELAY, TWIN


def quick_pack(pack: Path, target: Path) -> Path:
    """Copy a pack to `target`, with a delay of 0.1 s in each Provider that has a twin."""
    shutil.copytree(pack, target)
    for file in target.glob("gitops/providers/*/*.yaml"):
        lines = file.read_text().splitlines(keepends=True)
        twins = [line for line in lines if f"{TWIN}:" in line]
        for line in twins:
            indent = line[: len(line) - len(line.lstrip())]
            lines.insert(lines.index(line) + 1, f"{indent}{DELAY}: 0.1s\n")
        file.write_text("".join(lines))
    return target
