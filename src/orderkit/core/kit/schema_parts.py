"""What the schemas of kit.yaml's keys are made of; used by ``kit_schema`` and its parts."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
ENTITY_REF = r"^([a-z]+:)?([a-z0-9][-a-z0-9_.]*/)?[A-Za-z0-9][-A-Za-z0-9_.]*$"


def described(schema: Schema, description: str) -> Schema:
    """Return a schema with its description."""
    return {**schema, "description": description}


def map_of(values: Schema, description: str) -> Schema:
    """Return the schema of an object whose keys are free."""
    return {"type": "object", "additionalProperties": values, "description": description}


def list_of(items: Schema, description: str, **keywords: Any) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "description": description, **keywords}


def closed(description: str, required: list[str], properties: dict[str, Schema]) -> Schema:
    """Return the schema of an object with these keys and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "description": description,
        **({"required": required} if required else {}),
        "properties": properties,
    }
