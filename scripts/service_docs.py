"""
Write what follows from the service's operations and shapes.

    docs/openapi.json                             what the service answers at /openapi.json
    portal/plugins/orderkit/src/api/answers.ts    its answers, as the portal's plugin reads them

With --check: fail if one is out of date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orderkit.cli.connecting import SECRET_HEADER
from orderkit.web.openapi_schemas import document
from orderkit.web.operation_table import operations

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "openapi.json"
ANSWERS = ROOT / "portal" / "plugins" / "orderkit" / "src" / "api" / "answers.ts"
_HEAD = """/**
 * What Orderkit's service answers. Anything in it may be hostile text.
 * Generated from its OpenAPI document by scripts/service_docs.py; do not edit.
 */
"""
_PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def typescript(schemas: Mapping[str, Any]) -> str:
    """Return a type for each schema, by name."""
    types = [f"\nexport type {name} = {_type(schemas[name])};\n" for name in sorted(schemas)]
    return _HEAD + "".join(types)


def _type(schema: Mapping[str, Any], depth: int = 0) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_type(part, depth) for part in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"'{value}'" for value in schema["enum"])
    return _of_kind(schema, schema.get("type"), depth)


def _of_kind(schema: Mapping[str, Any], kind: Any, depth: int) -> str:
    if isinstance(kind, list):
        return " | ".join(_of_kind(schema, part, depth) for part in kind)
    if kind == "array":
        item = _type(schema.get("items", {}), depth)
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object":
        return _object(schema, depth)
    return _PLAIN.get(str(kind), "unknown")


def _object(schema: Mapping[str, Any], depth: int) -> str:
    if "properties" not in schema:
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values, depth) if isinstance(values, dict) else 'unknown'}>"
    required, inner = set(schema.get("required", ())), "  " * (depth + 1)
    fields = [
        f"{inner}{name}{'' if name in required else '?'}: {_type(field, depth + 1)};\n"
        for name, field in schema["properties"].items()
    ]
    return "{\n" + "".join(fields) + "  " * depth + "}"


def main(arguments: list[str]) -> int:
    found = document(operations(), secret_header=SECRET_HEADER)
    wanted = {
        DOCUMENT: json.dumps(found, indent=2, ensure_ascii=False) + "\n",
        ANSWERS: typescript(found["components"]["schemas"]),
    }
    stale = [
        file for file, text in wanted.items() if not file.is_file() or file.read_text() != text
    ]
    if "--check" in arguments:
        for file in stale:
            print(f"{file.name} is out of date: run scripts/service_docs.py", file=sys.stderr)
        return 1 if stale else 0
    for file in stale:
        file.write_text(wanted[file])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
