"""The agents' story as `make demo-agents` tells it, every stage proved on the way."""

from __future__ import annotations

import re
from pathlib import Path

from whisperops.demo.story import DemoFolders, tell

PACK = Path(__file__).parents[2] / "packs" / "agents"
STAGES = [
    "platform",
    "registry",
    "order",
    "22 parts",
    "spend",
    "cut",
    "outage",
    "raised",
    "vanished",
    "swapped",
    "end",
]


def test_the_story_holds(tmp_path: Path) -> None:
    said: list[str] = []

    def say(text: object) -> None:
        said.append(str(text))

    tell(DemoFolders(tmp_path, PACK), say)

    told = [
        found[1].strip() for line in said if (found := re.match(r"  (.{12})  *[0-9.]+ s ", line))
    ]
    assert told == STAGES
    assert said[-1].startswith(f"all {len(STAGES)} stages held")
