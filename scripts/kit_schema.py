"""Write docs/schemas/kit.schema.json, the schema of kit.yaml for editors; ``--check`` compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from orderkit.core.kit.schema import KIT_SCHEMA

FILE = Path(__file__).parents[1] / "docs" / "schemas" / "kit.schema.json"


def text() -> str:
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kit.yaml of an Orderkit pack",
    }
    return json.dumps({**head, **KIT_SCHEMA}, indent=2) + "\n"


def main(arguments: list[str]) -> int:
    wanted = text()
    if "--check" in arguments:
        if FILE.is_file() and FILE.read_text() == wanted:
            return 0
        print(f"{FILE.name} is out of date: run scripts/kit_schema.py", file=sys.stderr)
        return 1
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
