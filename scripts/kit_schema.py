"""Write docs/schemas: the schemas of files that people write, for editors; ``--check`` compares."""

from __future__ import annotations

import sys
from pathlib import Path

from orderkit.core.editor_schemas import EDITOR_SCHEMAS, editor_schema

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"


def main(arguments: list[str]) -> int:
    wanted = {FOLDER / f"{name}.schema.json": editor_schema(name) for name in EDITOR_SCHEMAS}
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
