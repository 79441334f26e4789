"""
The JSON Schema of kit.yaml: every key with what it means, for readers and for editors.

`KIT_SCHEMA` refuses what is not a kit.yaml; what contradicts the XRD is ``core.kit.consistency``'s.
Called by ``core.kit.kit_reader`` and by the script that writes ``docs/schemas/kit.schema.json``.
"""

from __future__ import annotations

from typing import Any

from orderkit.core.durations import PATTERN as DURATION
from orderkit.core.kit.model import NEVER
from orderkit.core.platform.baking import BUILT_IN, NAME
from orderkit.core.yaml.documents import DATA_KIND, document

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "minLength": 1}
_FLAG: Schema = {"type": "boolean"}
ENTITY_REF = r"^([a-z]+:)?([a-z0-9][-a-z0-9_.]*/)?[A-Za-z0-9][-A-Za-z0-9_.]*$"


def _doc(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _map(values: Schema, description: str) -> Schema:
    return {"type": "object", "additionalProperties": values, "description": description}


def _list(items: Schema, description: str, **keywords: Any) -> Schema:
    return {"type": "array", "items": items, "description": description, **keywords}


def _closed(description: str, required: list[str], properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "description": description,
        **({"required": required} if required else {}),
        "properties": properties,
    }


_FIELD = _doc(_TEXT, "A field of the XRD: its path below spec, dotted (teamName, storage.sizeGb).")
_FIELDS = _list(_FIELD, "Fields of the XRD.", minItems=1, uniqueItems=True)
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}

_PICKER = _closed(
    "Choose from the catalog.",
    ["kind"],
    {
        "kind": {
            "enum": ["entity", "owner"],
            "description": "entity: any entity of the catalog; owner: users and groups.",
        },
        "filter": {
            "description": "Which entities: a filter of the catalog, or a list of them.",
            "anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}],
        },
        "value": {
            "enum": ["reference", "name"],
            "default": "reference",
            "description": "What the field holds: the entity's reference, or its name alone "
            "(then the filter names one kind, and entities are of the namespace default).",
        },
    },
)
_REFERS = _closed(
    "It names an object of the cluster that must be there when it is ordered or changed.",
    ["apiVersion", "kind"],
    {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "ready": _doc(_TEXT, "A path in the object, dotted, that must be true: status.ready."),
    },
)
_HINTS = _closed(
    "How one field looks in the form.",
    [],
    {
        "title": _doc(_TEXT, "Its title. Default: its name, spelt out."),
        "help": _doc(_TEXT, "The line below it. Default: the XRD's description."),
        "placeholder": _doc(_TEXT, "Shown while it is empty."),
        "widget": _doc(_TEXT, "The form's ui:widget, for example textarea, radio, updown."),
        "autofocus": _doc(_FLAG, "The cursor starts here."),
        "error": _doc(_TEXT, "Shown instead of the regular expression that is not matched."),
        "labels": _map(_TEXT, "Enum value: the text that is shown for it."),
        "picker": _PICKER,
        "refers": _REFERS,
        "ask": {
            "enum": ["order", "later"],
            "default": "order",
            "description": "later: only forms of changes show it; a new order does not have it.",
        },
        "when": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {
                "anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]
            },
            "description": "Shown only if another field has this value, or one of these.",
        },
        "advanced": _doc(
            _FLAG,
            "Whether it is on the last page. Default: fields of Crossplane and providers are "
            "(deletionPolicy, providerConfigRef, ...).",
        ),
        "secret": _doc(
            _FLAG,
            "Whether it is a secret: no form asks for it, because orders are plain text in Git. "
            "Default: its name decides (password, apiKey, ...). false: it is none.",
        ),
    },
)
_HIDDEN = _closed(
    "A field that nobody fills in: the platform's value is baked in when the pack is published.",
    ["from"],
    {
        "from": {
            "type": "string",
            "pattern": f"^{NAME}$",
            "description": "A name in platform.yaml's spec.values, or one of "
            f"{', '.join(BUILT_IN)}.",
        },
        "pattern": _doc(
            _TEXT,
            "What the value must match, so that an unbaked one is refused. "
            "Default: the XRD's pattern.",
        ),
    },
)
_PAGE = _closed(
    "One page of the form.",
    ["title", "fields"],
    {
        "title": _TEXT,
        "description": _TEXT,
        "fields": _FIELDS,
    },
)
_LINK = _closed(
    "A link that is shown when the order is placed.",
    ["title"],
    {
        "title": _TEXT,
        "url": _TEXT,
        "entityRef": _TEXT,
        "icon": _TEXT,
    },
)
WHO = ("team", "requester", "platform")
_CHANGE = _closed(
    "A change of a living order: which fields, how far, by whom.",
    ["name", "fields"],
    {
        "name": {
            "type": "string",
            "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            "maxLength": 40,
            "description": "Its name in commands and addresses.",
        },
        "title": _doc(_TEXT, "Its title in the portal. Default: the name, spelt out."),
        "fields": _FIELDS,
        "direction": {
            "enum": ["any", "grow", "step", "never"],
            "default": "any",
            "description": "any: to any value; grow: numbers and lists only grow, enums only go "
            "on; step: one enum value or number at a time; never: these fields stay.",
        },
        "who": _list(
            {"anyOf": [{"enum": list(WHO)}, {"type": "string", "pattern": ENTITY_REF}]},
            "Who may: team, requester, platform, or references of the catalog. Default: team.",
            minItems=1,
        ),
        "how": {
            "enum": ["direct", "review"],
            "default": "direct",
            "description": "direct: committed at once; review: a pull request.",
        },
        "warning": _doc(_TEXT, "Shown before the change is sent."),
        "differs": _doc(_FLAG, "Asking for what holds already is refused, not passed over."),
        "atLeast": _closed(
            "A number of the XR's status below which the change's only field may not be set.",
            ["path", "title", "why"],
            {
                "path": _doc(_TEXT, "The number's field below status, dotted."),
                "title": _doc(_TEXT, "What the form calls it."),
                "why": _doc(_TEXT, "Ends the sentence of the refusal."),
            },
        ),
    },
)
_KIND = _closed(
    "A kind of the cluster.",
    ["apiVersion", "kind"],
    {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "resource": _doc(_TEXT, "Its plural. Default: guessed from the kind."),
        "binds": _list(_TEXT, "Of a binding: names of the roles that it may bind. Default: any."),
    },
)
_EXAMPLE = _closed(
    "An order as somebody could place it.",
    ["name", "values"],
    {
        "name": {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "title": _TEXT,
        "values": {"type": "object", "description": "Values of the form."},
    },
)

_SURVIVOR = _closed(
    "Something that is left, but not always.",
    ["text", "unless"],
    {
        "text": _TEXT,
        "unless": {**_map(_SCALAR, "Not if these fields have these values."), "minProperties": 1},
        "name": _doc(
            {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"},
            "How an end asks for it to go too; the fields are set first then.",
        ),
        "ask": _doc(_TEXT, "What the form of the end asks, for example 'Delete it too'."),
    },
)
_SURVIVOR["dependentRequired"] = {"name": ["ask"], "ask": ["name"]}
_FIRST = _closed(
    "What is changed and waited for before the end begins: stations do not run for deleted XRs.",
    ["set"],
    {
        "set": {**_map(_SCALAR, "Fields and their values."), "minProperties": 1},
        "until": _map(_SCALAR, "Paths in the XR's status, dotted, and what they must be."),
        "why": _doc(_TEXT, "What it is good for, in words."),
    },
)
_VIEW_NAME: Schema = {
    "type": "string",
    "pattern": r"^[a-z][a-zA-Z0-9]*(-[a-zA-Z0-9]+)*$",
    "maxLength": 40,
    "description": "Its name in answers to programs.",
}
_SHORT_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 80}
_STATUS_PATH = _doc(_TEXT, "A field of the XR's status: its path below status, dotted.")
_CONNECTION = _closed(
    "A connection Secret that the order composes.",
    ["name", "key"],
    {
        "name": _doc(_TEXT, "Its name; {spec.field} or {metadata.name} stands for a value."),
        "namespace": _doc(
            _TEXT, "Its namespace, likewise. Default: that of the XR, or where the order has it."
        ),
        "key": _doc(_TEXT, "Which of its values."),
    },
)
_OUTPUT: Schema = {
    **_closed(
        "A value that people order the kit for: its address, its user, its password.",
        ["name"],
        {
            "name": _VIEW_NAME,
            "title": _doc(_SHORT_TEXT, "Its title. Default: the name, spelt out."),
            "path": _STATUS_PATH,
            "secret": {
                "anyOf": [_FLAG, _CONNECTION],
                "description": "true: the value is shown to the team's members only, when they "
                "ask for it; an object: so is this value of a connection Secret.",
            },
            "link": _doc(_FLAG, "It is an http or https address that people follow."),
        },
    ),
    "if": {"required": ["secret"], "properties": {"secret": {"type": "object"}}},
    "then": {"not": {"anyOf": [{"required": ["path"]}, {"required": ["link"]}]}},
    "else": {"required": ["path"]},
}
_SHOWN_FACT = _closed(
    "A value of the XR's status that is worth seeing.",
    ["name", "path"],
    {
        "name": _VIEW_NAME,
        "title": _doc(_SHORT_TEXT, "Its title. Default: the name, spelt out."),
        "path": _STATUS_PATH,
        "unit": _doc(_SHORT_TEXT, "Stands after the value, for example USD or GiB."),
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
_ATTENTION: Schema = {
    **_closed(
        "What somebody should look at although the order is Ready.",
        ["when", "sentence"],
        {
            "when": _doc(
                {**_TEXT, "maxLength": 2_000},
                "A CEL condition over spec, status and metadata of the XR.",
            ),
            "sentence": _doc(
                {**_TEXT, "maxLength": 300},
                "What people are told; {status.field} stands for a value.",
            ),
            "change": _doc(_TEXT, "The name of the change that helps."),
            "button": _doc(
                {"type": "string", "minLength": 1, "maxLength": 40},
                "What its button says. Default: the change's title.",
            ),
        },
    ),
    "dependentRequired": {"button": ["change"]},
}
APPROVER = r"^(group|user):default/[A-Za-z0-9][-A-Za-z0-9_.]*(:[A-Za-z0-9][-A-Za-z0-9_. ]*)?$"
_APPROVAL_RULE = _closed(
    "Somebody has to agree to an order or a change.",
    ["when", "by", "because"],
    {
        "when": _doc(
            {**_TEXT, "maxLength": 2_000},
            "A CEL condition over old and new (the XR's spec before and after), cost (before, "
            "after, difference, currency), requester (ref, name, proved) and order (name, team, "
            "kit, isNew). If it cannot be evaluated, approval is needed.",
        ),
        "by": _list(
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
        "because": _doc({**_TEXT, "maxLength": 300}, "Why, as people read it."),
    },
)
_CLOCK: Schema = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}
_WINDOW = _closed(
    "Changes of orders are delivered in this time; others wait until it begins.",
    ["days", "from", "to"],
    {
        "days": _list(
            {"enum": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]},
            "On which days it begins.",
            minItems=1,
            uniqueItems=True,
        ),
        "from": _doc(_CLOCK, "22:00"),
        "to": _doc(_CLOCK, "04:00. Not after from: on the next day."),
        "zone": {
            **_TEXT,
            "default": "UTC",
            "description": "A time zone of the IANA database, for example Europe/Berlin.",
        },
    },
)
_FIXTURE: Schema = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": {"type": "object", "required": ["name"]},
    },
}

_DURATION: Schema = {"type": "string", "pattern": DURATION}
_LEASE = _closed(
    "How long an order lives: minutes, hours, days or weeks (90m, 8h, 30d, 4w).",
    [],
    {
        "default": {
            "anyOf": [_DURATION, {"const": NEVER}],
            "description": "How long an order lives; never: until somebody extends it, which "
            "gives it a lease. Default: the maximum.",
        },
        "maximum": _doc(_DURATION, "How long it lives at most, with all extensions."),
        "field": _doc(_TEXT, "The field of the XRD in which the order's form asks how long."),
        "extend": _closed(
            "How people may extend it.",
            [],
            {
                "by": _doc(_DURATION, "The longest extension. Default: up to the maximum."),
                "times": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 1000,
                    "description": "How often; 0: never. Default: any number of times.",
                },
            },
        ),
        "warn": _list(
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
        "pause": _map(_SCALAR, "The values that pause an order, by field; changed directly."),
        "grace": _doc(_DURATION, "How long after the expiry it ends or pauses. Default: at once."),
        "except": _list(_TEXT, "Teams whose orders have no expiry.", uniqueItems=True),
    },
)

_SPEC: dict[str, Schema] = {
    "title": _doc(_TEXT, "What people call the kit. Default: the XRD's kind, spelt out."),
    "description": _doc(_TEXT, "One sentence. Default: the XRD's description."),
    "owner": {
        "type": "string",
        "pattern": ENTITY_REF,
        "default": "group:default/platform",
        "description": "Who owns the template in the catalog.",
    },
    "type": {**_TEXT, "default": "service", "description": "The template's spec.type."},
    "tags": _list(
        {"type": "string", "pattern": r"^[a-z0-9:+#]+(-[a-z0-9:+#]+)*$", "maxLength": 63},
        "Tags of the template in the catalog.",
        uniqueItems=True,
    ),
    "nameFrom": {
        "anyOf": [_FIELD, _FIELDS],
        "description": "The fields that name an order, <kit>-<value>-<value>. "
        "Default: the form asks for a name.",
    },
    "teamFrom": _doc(_FIELD, "The field that names the team. Default: the form asks for it."),
    "xrName": {
        **_TEXT,
        "default": "order",
        "description": "What the XR is called: 'order', the order's id, or a field.",
    },
    "xrNamespace": {
        **_TEXT,
        "pattern": r"^([a-z0-9-]|\{[A-Za-z0-9_.]+\})+$",
        "description": "Namespace of a namespaced XR; {field} stands for a field's value, for "
        "example agent-{agentName}. Default: that of Argo CD's Application.",
    },
    "aliases": _map(_TEXT, "XRD field: the name of its form parameter. Top-level fields only."),
    "unfold": _doc(
        _TEXT,
        "A group directly below spec: its fields stand in the form as if they were beside it.",
    ),
    "yamlFields": _list(
        _FIELD,
        "Optional fields that the form takes together as YAML, in one box on its last page.",
        uniqueItems=True,
    ),
    "pages": _list(_PAGE, "Pages of the form. Fields named nowhere come last."),
    "fields": _map(_HINTS, "How fields look in the form, by field."),
    "hidden": _map(_HIDDEN, "Fields with a value of the platform, by field."),
    "links": _list(_LINK, "Links that are shown when the order is placed."),
    "changes": _list(_CHANGE, "What may change later. Without it, every visible field."),
    "end": _closed(
        "The end of an order.",
        [],
        {
            "repository": {"enum": ["archive", "delete"], "default": "archive"},
            "survives": _list(
                {"anyOf": [_TEXT, _SURVIVOR]}, "What is left when the order has ended, in words."
            ),
            "first": _FIRST,
        },
    ),
    "lease": _LEASE,
    "windows": _list(
        _WINDOW,
        "Maintenance windows. Argo CD delivers nothing of the kit's orders outside of them, "
        "neither changes nor ends nor self-heal.",
        minItems=1,
        maxItems=20,
    ),
    "approval": _closed(
        "Which orders and changes need somebody's agreement.",
        ["rules"],
        {
            "rules": _list(_APPROVAL_RULE, "All that hold count.", minItems=1, maxItems=20),
            "bypass": {
                "enum": ["refuse", "report"],
                "default": "refuse",
                "description": "What becomes of what was written or merged without it. refuse: it "
                "is not delivered; report: it is delivered, and status and doctor say so.",
            },
        },
    ),
    "gate": _closed(
        "Lets programs ask whether the XR's user may go on: GET /v1/gates/<kit>/<name>. "
        "Paths are below status, dotted.",
        ["paused", "cause", "exhausted"],
        {
            "paused": _doc(_TEXT, "A boolean: true stops."),
            "cause": _doc(_TEXT, "A text: why."),
            "exhausted": _list(
                _TEXT,
                "Causes that are answered 402, payment required. Every other one is 503.",
                minItems=1,
                uniqueItems=True,
            ),
        },
    ),
    "examples": _list(_EXAMPLE, "Orders as people could place them."),
    "composes": _list(_KIND, "Kinds that the stations compose."),
    "requires": _list(_KIND, "Kinds that the stations read."),
    "plan": _closed(
        "What plans of changes go by.",
        [],
        {
            "dataKinds": _list(
                DATA_KIND, "Kinds whose removal deletes data, or does not; beside Orderkit's table."
            )
        },
    ),
    "outputs": _list(_OUTPUT, "What people order the kit for, in this order.", maxItems=20),
    "facts": _list(
        {"if": {"required": ["apiVersion"]}, "then": _FIXTURE, "else": _SHOWN_FACT},
        "Values of the status that are worth seeing, in this order. Objects of Kubernetes are "
        "fixtures, as kits had them here before.",
        maxItems=50,
    ),
    "attention": _list(_ATTENTION, "What turns the phase Ready into Attention.", maxItems=20),
    "fixtures": _list(
        _FIXTURE, "Objects that the stations find when 'kit check' tries the kit; never delivered."
    ),
}

KIT_SCHEMA: Schema = document("Kit", _SPEC)
