"""
JSON Schemas of what the service reads and answers (2020-12, as OpenAPI 3.1 has them).

Named ones stand under ``components`` of the document. Used by ``operation_table``.
"""

from __future__ import annotations

from typing import Any

from ground.shapes import answer_schemas
from orderkit.core.durations import PATTERN as DURATION
from orderkit.core.kit.yaml_settings import TEXT_MAX
from orderkit.core.order.change.conflicts import Conflict
from orderkit.core.plan.plan_json import PlanAnswer
from orderkit.flows.approval.deciding import Decided
from orderkit.flows.change.reviewing import Merged
from orderkit.flows.lease.extending import LeaseAnswer
from orderkit.flows.order.order_history import History
from orderkit.flows.order.registering import Registered
from orderkit.web.answers import (
    Approvals,
    Changed,
    End,
    EndPreview,
    Events,
    Gate,
    Ready,
    TaskDone,
    Trace,
)

TEXT: dict[str, Any] = {"type": "string"}
FLAG: dict[str, Any] = {"type": "boolean"}
_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL: dict[str, Any] = {"type": "string", "maxLength": 63, "pattern": _NAME}
"""An RFC 1123 label: orders, teams, kits."""
REFERENCE: dict[str, Any] = {
    "type": "string",
    "maxLength": 253,
    "pattern": r"^[A-Za-z]+:[A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.@+]*$",
    "description": "A catalog reference. A claim: a token's proof takes precedence.",
}
COMMIT: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{40}$"}
KEY: dict[str, Any] = {"type": "string", "pattern": r"^[A-Za-z0-9._:-]{1,100}$"}

POSITION: dict[str, Any] = {
    "type": "string",
    "maxLength": 64,
    "description": "A place among the changes: the position of GET /v1/orders, or an event's id.",
}


def closed(required: list[str], /, **properties: Any) -> dict[str, Any]:
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
SETTINGS = closed(["text"], text={"type": "string", "maxLength": TEXT_MAX, "description": "YAML."})
CHANGE = closed(
    ["values"],
    change={**LABEL, "description": "Name of the kit's change. Absent: found by the fields."},
    values={
        "type": "object",
        "description": "By form parameter or field of the XRD; null removes a field.",
    },
    base={
        "type": "string",
        "pattern": "^[0-9a-f]{7,40}$",
        "description": "The commit the form was opened on: unchanged values are not edits, "
        "and a field that changed since is a conflict.",
    },
    whole={
        **FLAG,
        "description": "These are all values of the form: a missing one removes its field.",
    },
    resend={
        **FLAG,
        "description": "The portal sends this form again with the same `base` after a refusal: "
        "what the answer named as a conflict has been read, and is not one again.",
    },
    how={"enum": ["direct", "review"]},
    reason={"type": "string", "maxLength": 500},
    dryRun={**FLAG, "description": "Check everything and write nothing."},
    acceptLoss={
        **FLAG,
        "description": "Make the change even if the plan says that it deletes data.",
    },
    requester=REFERENCE,
)
PLAN = {
    **CHANGE,
    "properties": {
        name: shape
        for name, shape in CHANGE["properties"].items()
        if name in {"change", "values", "base", "whole"}
    },
}
"""The body of a plan request equals that of a change."""
NEW_PLAN = closed(["values"], values={"type": "object"}, requester=REFERENCE)
REVERT = closed(
    ["commit"],
    commit={**CHANGE["properties"]["base"], "description": "Whose fields get their old values."},
    **{
        name: CHANGE["properties"][name]
        for name in ("how", "reason", "dryRun", "acceptLoss", "requester")
    },
)
MERGE = closed([], requester=REFERENCE)
APPROVAL = closed(
    ["decision"],
    decision={"enum": ["approve", "decline"]},
    number={
        "type": "integer",
        "minimum": 1,
        "maximum": 999_999_999,
        "description": "The pull request of a change. Absent: the order itself waits.",
    },
    head={
        "type": "string",
        "pattern": "^[0-9a-f]{7,64}$",
        "description": "The head that was looked at; another one is a conflict.",
    },
    reason={"type": "string", "maxLength": 500},
)
EXTEND = closed(
    ["by", "reason"],
    by={"type": "string", "pattern": DURATION, "description": "For example 90m, 8h, 30d or 4w."},
    reason={"type": "string", "minLength": 1, "maxLength": 500},
    requester=REFERENCE,
)
END = closed(
    ["confirm"],
    confirm={
        "type": "string",
        "maxLength": 63,
        "description": "The order's id, as a confirmation.",
    },
    repository={"enum": ["archive", "delete"], "description": "Absent: as the kit says."},
    reason={"type": "string", "maxLength": 500},
    take={
        "type": "object",
        "additionalProperties": {"type": "boolean"},
        "maxProperties": 50,
        "description": "Resources to remove that would survive, by the names of the kit's end.",
    },
    requester=REFERENCE,
)
DELIVERY: dict[str, Any] = {
    "type": "object",
    "description": "As Gitea sends it; only repository.full_name, number, action and ref are read.",
}
LIMIT = {"type": "string", "pattern": "^[1-9][0-9]{0,2}$"}
OBJECT = closed(["apiVersion", "kind", "name"], apiVersion=TEXT, kind=TEXT, name=TEXT)
OBJECT["properties"]["namespace"] = TEXT
COMPONENTS: dict[str, dict[str, Any]] = {
    "Error": closed(
        ["error"],
        error=closed(
            ["message", "hint"],
            message=TEXT,
            hint=TEXT,
            field=TEXT,
            value=TEXT,
            rule=TEXT,
            problems=listed(named("Problem")),
            conflicts=listed(named("Conflict")),
            head=TEXT,
        ),
    ),
    "Problem": closed(
        ["message", "hint"], message=TEXT, hint=TEXT, field=TEXT, value=TEXT, rule=TEXT
    ),
    "Event": closed(
        ["id"],
        id=POSITION,
        event={
            "enum": ["ready", "order", "gone", "reload"],
            "description": "Absent: the stream lives. reload: read GET /v1/orders again.",
        },
        data={
            "type": "string",
            "contentMediaType": "application/json",
            "description": "Of order an Order, of gone its order and team, otherwise {}.",
        },
    ),
    "Finding": every(
        file=TEXT,
        line=nullable({"type": "integer"}),
        column=nullable({"type": "integer"}),
        subject=TEXT,
        path=TEXT,
        reason=TEXT,
        message=TEXT,
        rule=TEXT,
        value=TEXT,
        hint=TEXT,
        severity=TEXT,
    ),
    "Orders": every(
        orders=listed(named("ListedOrder")),
        cursor=nullable(TEXT),
        position=POSITION,
        age={"type": "number", "description": "For how many seconds they may be out of date."},
        ledger={"type": "string", "description": "The commit of the ledger that they are from."},
    ),
    "Settings": every(spec={"type": "object"}),
    **answer_schemas(
        [
            Conflict,
            Changed,
            Decided,
            End,
            EndPreview,
            Events,
            Approvals,
            Gate,
            History,
            LeaseAnswer,
            Merged,
            PlanAnswer,
            Ready,
            Registered,
            TaskDone,
            Trace,
        ]
    ),
    "Taken": closed(
        ["state"],
        state={"enum": ["queued", "waiting", "ignored"]},
        repository=TEXT,
        number={"type": "integer"},
        reason=TEXT,
    ),
    "Planned": closed(
        ["order", "summary", "changes", "xrs", "plan", "markdown"],
        order=TEXT,
        team=TEXT,
        summary=every(
            added={"type": "integer"}, modified={"type": "integer"}, removed={"type": "integer"}
        ),
        changes=listed({"type": "object"}),
        xrs=listed({"type": "object"}),
        errors=listed({"type": "object"}),
        plan=named("PlanAnswer"),
        markdown=TEXT,
    ),
}
