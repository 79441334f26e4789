"""
Write docs/openapi.json, the committed copy of what the service answers at /openapi.json.

With --check: fail if it is out of date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from orderkit.cli.connecting import SECRET_HEADER
from orderkit.web.openapi import document
from orderkit.web.operation_table import operations

COPY = Path(__file__).parents[1] / "docs" / "openapi.json"


def main(arguments: list[str]) -> int:
    found = document(operations(), secret_header=SECRET_HEADER)
    wanted = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if "--check" in arguments:
        if COPY.is_file() and COPY.read_text() == wanted:
            return 0
        print(f"{COPY.name} is out of date: run scripts/service_docs.py", file=sys.stderr)
        return 1
    COPY.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
