"""
JSON Schemas of what the service reads and answers (2020-12, as OpenAPI 3.1 has them).

Named ones stand under ``components`` of the document. Used by ``operation_table``.
"""

from __future__ import annotations

from typing import Any, get_args

from ground.shapes import answer_schemas
from orderkit.core.durations import PATTERN as DURATION
from orderkit.core.kit.yaml_settings import TEXT_MAX
from orderkit.core.plan.plan_json import PlanAnswer
from orderkit.flows.change.request import State
from orderkit.flows.order.commit_judging import SignatureVerdict

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
    "Conflict": every(
        field=TEXT, seen={}, now={}, wanted={}, commit=nullable(TEXT), author=TEXT, requester=TEXT
    ),
    "Object": OBJECT,
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
    "Node": {
        "type": "object",
        "required": ["apiVersion", "kind", "name", "synced", "ready", "reason", "children"],
        "properties": {
            **OBJECT["properties"],
            "synced": TEXT,
            "ready": TEXT,
            "reason": TEXT,
            "children": listed(named("Node")),
        },
    },
    "Trace": every(
        order=named("ListedOrder"),
        tree=named("Node"),
        failing=nullable(every(object=named("Object"), reason=TEXT)),
    ),
    "Registered": every(
        order=TEXT,
        team=TEXT,
        kit=TEXT,
        repository=TEXT,
        ledgerCommit=TEXT,
        changed=FLAG,
        approval=nullable(TEXT),
    ),
    "Decided": every(
        order=TEXT,
        team=TEXT,
        state={"enum": ["waiting", "approved", "delivered", "withdrawn"]},
        missing=nullable(TEXT),
        url=nullable(TEXT),
    ),
    "Approvals": every(
        approvals=listed(
            every(
                order=TEXT,
                team=TEXT,
                kit=TEXT,
                requester=TEXT,
                since=TEXT,
                approval=TEXT,
                url=TEXT,
                head=TEXT,
                number=nullable({"type": "integer"}),
                yours=FLAG,
            )
        )
    ),
    "Settings": every(spec={"type": "object"}),
    "TaskDone": every(
        template=TEXT,
        order=nullable(TEXT),
        created=FLAG,
        requester=TEXT,
        requesterProof=TEXT,
        steps={"type": "object"},
        output={"type": "object"},
    ),
    "Difference": every(field=TEXT, **{"from": {}, "to": {}}),
    "Pull": every(
        number={"type": "integer"}, title=TEXT, state=TEXT, url=TEXT, requester=nullable(TEXT)
    ),
    **answer_schemas([PlanAnswer]),
    "Taken": closed(
        ["state"],
        state={"enum": ["queued", "waiting", "ignored"]},
        repository=TEXT,
        number={"type": "integer"},
        reason=TEXT,
    ),
    "Costs": every(
        currency=TEXT,
        table=TEXT,
        source=TEXT,
        date=TEXT,
        stale=listed(TEXT),
        monthly=every(before=TEXT, after=TEXT, difference=TEXT),
        upTo=every(before=TEXT, after=TEXT),
        before=listed(named("CostLine")),
        after=listed(named("CostLine")),
        notPriced=listed(TEXT),
        notReckoned=listed(TEXT),
    ),
    "CostLine": every(
        path=TEXT,
        resource=TEXT,
        title=TEXT,
        reckoned=TEXT,
        monthly=TEXT,
        upTo=FLAG,
        assumes=TEXT,
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
    "Changed": every(
        order=TEXT,
        state={"enum": list(get_args(State))},
        repeated=FLAG,
        operation=TEXT,
        change=TEXT,
        how={"enum": ["direct", "review"]},
        edits=listed(named("Difference")),
        diff=TEXT,
        commit=nullable(TEXT),
        pull=nullable(named("Pull")),
        otherPulls=listed(named("Pull")),
        warnings=listed(TEXT),
        plan=nullable(named("PlanAnswer")),
        planWhyNot=TEXT,
        message=TEXT,
        url=TEXT,
    ),
    "Merged": every(order=TEXT, number={"type": "integer"}, commit=TEXT, approvers=listed(TEXT)),
    "History": every(
        order=TEXT,
        entries=listed(named("HistoryEntry")),
    ),
    "HistoryEntry": every(
        commit=TEXT,
        when=TEXT,
        author=TEXT,
        summary=TEXT,
        byHand=FLAG,
        signature={"enum": [verdict.value for verdict in SignatureVerdict]},
        claims={"type": "object", "additionalProperties": TEXT},
        requester=TEXT,
        requesterProof=TEXT,
        operation=TEXT,
        change=TEXT,
        reason=TEXT,
        ordered=FLAG,
        fields=listed(named("Difference")),
        unreadable=TEXT,
    ),
    "Events": every(
        order=TEXT,
        events=listed(
            every(
                at=TEXT,
                type=TEXT,
                reason=TEXT,
                message=TEXT,
                count={"type": "integer"},
                object=named("Object"),
            )
        ),
    ),
    "Lease": every(
        order=TEXT,
        team=TEXT,
        kit=TEXT,
        expires=nullable(TEXT),
        leftSeconds=nullable({"type": "integer"}),
        began=nullable(TEXT),
        latest=nullable(TEXT),
        lastWarning=nullable(TEXT),
        warned={"type": "object", "additionalProperties": TEXT},
        extensions={"type": "integer"},
        by=nullable(TEXT),
        reason=nullable(TEXT),
        ending=FLAG,
        then={"enum": ["end", "pause"]},
        mayExtend=FLAG,
        extendBy=nullable(TEXT),
        changed=FLAG,
        message=TEXT,
        remark=nullable(TEXT),
    ),
    "End": closed(
        ["order", "state", "status", "message"],
        order=TEXT,
        state={"enum": ["ending", "stopped", "ended"]},
        status=TEXT,
        message=TEXT,
        reason=TEXT,
        steps=listed(every(step=TEXT, done=TEXT)),
        endedAt=TEXT,
        repository=TEXT,
        gone=listed(named("Object")),
        survives=listed(TEXT),
    ),
    "EndPreview": every(
        order=TEXT,
        stays=listed(TEXT),
        takes=listed(every(name=TEXT, ask=TEXT)),
        repository={"enum": ["archive", "delete"]},
        unread=TEXT,
    ),
    "Gate": every(
        kit=TEXT, name=TEXT, namespace=TEXT, state={"enum": ["open", "exhausted"]}, cause=TEXT
    ),
    "Ready": every(
        ready=FLAG,
        checks={"type": "object", "additionalProperties": TEXT},
        modelAgeSeconds={"type": "number"},
    ),
}
