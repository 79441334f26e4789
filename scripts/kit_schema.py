"""Write docs/schemas: the schemas of files that people write, for editors; ``--check`` compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from orderkit.core.campaign.definition import Campaign
from orderkit.core.documents import document_schema
from orderkit.core.kit.kit_schema import KIT_SCHEMA
from orderkit.core.order.team_file import TeamFile
from orderkit.core.plan.price_table import PRICES_SCHEMA
from orderkit.core.platform.settings import PlatformSettings

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
SCHEMAS: dict[str, tuple[str, dict[str, Any]]] = {
    "kit.schema.json": ("kit.yaml of an Orderkit pack", KIT_SCHEMA),
    "platform.schema.json": (
        "platform.yaml of Orderkit",
        document_schema(PlatformSettings, ("Platform",), "name"),
    ),
    "team.schema.json": (
        "team.yaml of Orderkit's ledger",
        document_schema(TeamFile, ("Team",), "team"),
    ),
    "campaign.schema.json": (
        "campaigns/<name>.yaml of Orderkit's ledger",
        document_schema(Campaign, ("Campaign",), "name"),
    ),
    "prices.schema.json": ("gitops/prices.yaml of an Orderkit pack", PRICES_SCHEMA),
}


def text(title: str, schema: dict[str, Any]) -> str:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps({**head, **schema}, indent=2) + "\n"


def main(arguments: list[str]) -> int:
    wanted = {FOLDER / name: text(*found) for name, found in SCHEMAS.items()}
    if "--check" in arguments:
        stale = [
            file.name
            for file, found in wanted.items()
            if not file.is_file() or file.read_text() != found
        ]
        for name in stale:
            print(f"{name} is out of date: run scripts/kit_schema.py", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for file, found in wanted.items():
        file.write_text(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
