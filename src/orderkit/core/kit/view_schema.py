"""The schema of what a kit shows of an order: ``outputs``, ``facts``, ``attention``."""

from __future__ import annotations

from orderkit.core.kit.schema_parts import FLAG, TEXT, Schema, closed, described

_VIEW_NAME: Schema = {
    "type": "string",
    "pattern": r"^[a-z][a-zA-Z0-9]*(-[a-zA-Z0-9]+)*$",
    "maxLength": 40,
    "description": "Its name in answers to programs.",
}
_SHORT_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 80}
_STATUS_PATH = described(TEXT, "A field of the XR's status: its path below status, dotted.")
_CONNECTION = closed(
    "A connection Secret that the order composes.",
    ["name", "key"],
    {
        "name": described(TEXT, "Its name; {spec.field} or {metadata.name} stands for a value."),
        "namespace": described(
            TEXT, "Its namespace, likewise. Default: that of the XR, or where the order has it."
        ),
        "key": described(TEXT, "Which of its values."),
    },
)
OUTPUT: Schema = {
    **closed(
        "A value that people order the kit for: its address, its user, its password.",
        ["name"],
        {
            "name": _VIEW_NAME,
            "title": described(_SHORT_TEXT, "Its title. Default: the name, spelt out."),
            "path": _STATUS_PATH,
            "secret": {
                "anyOf": [FLAG, _CONNECTION],
                "description": "true: the value is shown to the team's members only, when they "
                "ask for it; an object: so is this value of a connection Secret.",
            },
            "link": described(FLAG, "It is an http or https address that people follow."),
        },
    ),
    "if": {"required": ["secret"], "properties": {"secret": {"type": "object"}}},
    "then": {"not": {"anyOf": [{"required": ["path"]}, {"required": ["link"]}]}},
    "else": {"required": ["path"]},
}
SHOWN_FACT = closed(
    "A value of the XR's status that is worth seeing.",
    ["name", "path"],
    {
        "name": _VIEW_NAME,
        "title": described(_SHORT_TEXT, "Its title. Default: the name, spelt out."),
        "path": _STATUS_PATH,
        "unit": described(_SHORT_TEXT, "Stands after the value, for example USD or GiB."),
        "format": {
            "enum": ["number", "percent", "bytes"],
            "description": "number: two decimals at most; percent: of a share, 0.5 is 50%; "
            "bytes: in KiB, MiB, ... Default: as it is.",
        },
        "spend": {
            "type": "boolean",
            "description": "It is money that was really spent, in the currency of 'unit': shown "
            "beside what the order is estimated to cost, and in statements.",
        },
    },
)
ATTENTION: Schema = {
    **closed(
        "What somebody should look at although the order is Ready.",
        ["when", "sentence"],
        {
            "when": described(
                {**TEXT, "maxLength": 2_000},
                "A CEL condition over spec, status and metadata of the XR.",
            ),
            "sentence": described(
                {**TEXT, "maxLength": 300},
                "What people are told; {status.field} stands for a value.",
            ),
            "change": described(TEXT, "The name of the change that helps."),
            "button": described(
                {"type": "string", "minLength": 1, "maxLength": 40},
                "What its button says. Default: the change's title.",
            ),
        },
    ),
    "dependentRequired": {"button": ["change"]},
}
