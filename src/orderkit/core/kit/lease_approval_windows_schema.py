"""The schema of ``lease``, ``approval`` and ``windows`` of kit.yaml."""

from __future__ import annotations

from orderkit.core.durations import PATTERN as DURATION
from orderkit.core.kit.lease_approval_windows import NEVER
from orderkit.core.kit.schema_parts import SCALAR, TEXT, Schema, closed, described, list_of, map_of

APPROVER = r"^(group|user):default/[A-Za-z0-9][-A-Za-z0-9_.]*(:[A-Za-z0-9][-A-Za-z0-9_. ]*)?$"
APPROVAL_RULE = closed(
    "Somebody has to agree to an order or a change.",
    ["when", "by", "because"],
    {
        "when": described(
            {**TEXT, "maxLength": 2_000},
            "A CEL condition over old and new (the XR's spec before and after), cost (before, "
            "after, difference, currency), requester (ref, name, proved) and order (name, team, "
            "kit, isNew). If it cannot be evaluated, approval is needed.",
        ),
        "by": list_of(
            {"anyOf": [{"enum": ["team", "platform"]}, {"type": "string", "pattern": APPROVER}]},
            "Any of these: team and platform (who may write to the order's repository, and to the "
            "ledger), user:default/NAME, or an organisation of the forge, group:default/NAME, or "
            "one of its teams, group:default/NAME:TEAM.",
            minItems=1,
            maxItems=20,
            uniqueItems=True,
        ),
        "count": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10,
            "default": 1,
            "description": "How many different people.",
        },
        "because": described({**TEXT, "maxLength": 300}, "Why, as people read it."),
        "within": {
            "type": "string",
            "pattern": DURATION,
            "description": "A duration such as 7d. The condition is judged again with old and "
            "cost.before as they were delivered that long ago, so that small steps add up.",
        },
    },
)
_CLOCK: Schema = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}
_ZONE: Schema = {
    **TEXT,
    "default": "UTC",
    "description": "A time zone of the IANA database, for example Europe/Berlin.",
}
WINDOW = closed(
    "Changes of orders are delivered in this time; others wait until it begins.",
    ["days", "from", "to"],
    {
        "days": list_of(
            {"enum": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]},
            "On which days it begins.",
            minItems=1,
            uniqueItems=True,
        ),
        "from": described(_CLOCK, "22:00"),
        "to": described(_CLOCK, "04:00. Not after from: on the next day."),
        "zone": _ZONE,
    },
)
_DURATION: Schema = {"type": "string", "pattern": DURATION}
LEASE = closed(
    "How long an order lives: minutes, hours, days or weeks (90m, 8h, 30d, 4w).",
    [],
    {
        "default": {
            "anyOf": [_DURATION, {"const": NEVER}],
            "description": "How long an order lives; never: until somebody extends it, which "
            "gives it a lease. Default: the maximum.",
        },
        "maximum": described(_DURATION, "How long it lives at most, with all extensions."),
        "field": described(TEXT, "The field of the XRD in which the order's form asks how long."),
        "extend": closed(
            "How people may extend it.",
            [],
            {
                "by": described(_DURATION, "The longest extension. Default: up to the maximum."),
                "times": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 1000,
                    "description": "How often; 0: never. Default: any number of times.",
                },
            },
        ),
        "warn": list_of(
            _DURATION,
            "How long before the expiry a warning is recorded. Default: 24h and 1h.",
            minItems=1,
            maxItems=10,
            uniqueItems=True,
        ),
        "then": {
            "enum": ["end", "pause"],
            "default": "end",
            "description": "end: the order ends; pause: it gets the values of `pause`.",
        },
        "pause": map_of(SCALAR, "The values that pause an order, by field; changed directly."),
        "grace": described(_DURATION, "How long after the expiry that happens. Default: at once."),
        "except": list_of(
            TEXT, "Teams whose orders have no expiry and no nights.", uniqueItems=True
        ),
        "nightly": closed(
            "What orders get each night, for example to stop what nobody needs then.",
            ["at", "set"],
            {
                "at": described(_CLOCK, "When, for example 20:00."),
                "zone": _ZONE,
                "set": map_of(SCALAR, "The values, by field; changed directly."),
                "unless": map_of(SCALAR, "Orders with these values are left alone."),
            },
        ),
    },
)
