"""
JSON Schemas of what the service reads and answers (2020-12, as OpenAPI 3.1 has them).

Named ones stand under ``components`` of the document. Used by ``table``.
"""

from __future__ import annotations

from typing import Any, get_args

from orderkit.core.orderstate import Phase

TEXT: dict[str, Any] = {"type": "string"}
FLAG: dict[str, Any] = {"type": "boolean"}
_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL: dict[str, Any] = {"type": "string", "maxLength": 63, "pattern": _NAME}
"""An RFC 1123 label: orders, teams, kits."""
REFERENCE: dict[str, Any] = {
    "type": "string",
    "maxLength": 253,
    "pattern": r"^[A-Za-z]+:[A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.@+]*$",
    "description": "A catalog reference. A claim: what a token proves is not overruled by it.",
}
COMMIT: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{40}$"}
KEY: dict[str, Any] = {"type": "string", "pattern": r"^[A-Za-z0-9._:-]{1,100}$"}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


def every(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has all of these properties."""
    return closed([*properties], **properties)


def listed(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def named(name: str) -> dict[str, Any]:
    """Refer to a schema under ``components``."""
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may be null."""
    return {"anyOf": [of, {"type": "null"}]}


TASK = closed(
    ["template", "values"],
    template={"type": "string", "minLength": 1, "maxLength": 253},
    values={"type": "object"},
    id={"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,100}$"},
    requester=REFERENCE,
)
REGISTRATION = closed(
    ["order", "kit", "team"],
    order=LABEL,
    kit=LABEL,
    team=LABEL,
    repository={"type": "string", "minLength": 1, "maxLength": 253},
    requester=REFERENCE,
)
_OBJECT = closed(["apiVersion", "kind", "name"], apiVersion=TEXT, kind=TEXT, name=TEXT)
_OBJECT["properties"]["namespace"] = TEXT

COMPONENTS: dict[str, dict[str, Any]] = {
    "Error": closed(
        ["error"],
        error=closed(
            ["message", "hint"], message=TEXT, hint=TEXT, field=TEXT, value=TEXT, rule=TEXT
        ),
    ),
    "Object": _OBJECT,
    "Order": every(
        order=TEXT,
        team=TEXT,
        kit=TEXT,
        phase={"enum": list(get_args(Phase))},
        ready=FLAG,
        reason=TEXT,
        head=nullable(TEXT),
        revision=nullable(TEXT),
        repository=TEXT,
        xr=nullable(named("Object")),
    ),
    "Orders": every(orders=listed(named("Order"))),
    "Node": {
        "type": "object",
        "required": ["apiVersion", "kind", "name", "synced", "ready", "reason", "children"],
        "properties": {
            **_OBJECT["properties"],
            "synced": TEXT,
            "ready": TEXT,
            "reason": TEXT,
            "children": listed(named("Node")),
        },
    },
    "Trace": every(
        order=named("Order"),
        tree=named("Node"),
        failing=nullable(every(object=named("Object"), reason=TEXT)),
    ),
    "Registered": every(
        order=TEXT, team=TEXT, kit=TEXT, repository=TEXT, ledgerCommit=TEXT, changed=FLAG
    ),
    "TaskDone": every(
        template=TEXT,
        order=nullable(TEXT),
        created=FLAG,
        requester=TEXT,
        requesterProof=TEXT,
        steps={"type": "object"},
        output={"type": "object"},
    ),
    "Ready": every(ready=FLAG, checks={"type": "object", "additionalProperties": TEXT}),
}
