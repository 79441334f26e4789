"""
The JSON Schema of kit.yaml: every key with what it means, for readers and for editors.

`KIT_SCHEMA` refuses what is not a kit.yaml; what contradicts the XRD is ``core.kit.consistency``'s.
"""

from __future__ import annotations

from orderkit.core.kit.lease_approval_windows_schema import APPROVAL_RULE, LEASE, WINDOW
from orderkit.core.kit.schema_parts import (
    ENTITY_REF,
    FLAG,
    SCALAR,
    TEXT,
    Schema,
    closed,
    described,
    list_of,
    map_of,
)
from orderkit.core.kit.view_schema import ATTENTION, OUTPUT, SHOWN_FACT
from orderkit.core.platform.baking import BUILT_IN, NAME
from yamlfiles.documents import DATA_KIND, document

_FIELD = described(
    TEXT, "A field of the XRD: its path below spec, dotted (teamName, storage.sizeGb)."
)
_FIELDS = list_of(_FIELD, "Fields of the XRD.", minItems=1, uniqueItems=True)

_PICKER = closed(
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
_REFERS = closed(
    "It names an object of the cluster that must be there when it is ordered or changed.",
    ["apiVersion", "kind"],
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "ready": described(TEXT, "A path in the object, dotted, that must be true: status.ready."),
    },
)
_HINTS = closed(
    "How one field looks in the form.",
    [],
    {
        "title": described(TEXT, "Its title. Default: its name, spelt out."),
        "help": described(TEXT, "The line below it. Default: the XRD's description."),
        "placeholder": described(TEXT, "Shown while it is empty."),
        "widget": described(TEXT, "The form's ui:widget, for example textarea, radio, updown."),
        "autofocus": described(FLAG, "The cursor starts here."),
        "error": described(TEXT, "Shown instead of the regular expression that is not matched."),
        "labels": map_of(TEXT, "Enum value: the text that is shown for it."),
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
                "anyOf": [SCALAR, {"type": "array", "items": SCALAR, "minItems": 1}]
            },
            "description": "Shown only if another field has this value, or one of these.",
        },
        "advanced": described(
            FLAG,
            "Whether it is on the last page. Default: fields of Crossplane and providers are "
            "(deletionPolicy, providerConfigRef, ...).",
        ),
        "secret": described(
            FLAG,
            "Whether it is a secret: no form asks for it, because orders are plain text in Git. "
            "Default: its name decides (password, apiKey, ...). false: it is none.",
        ),
    },
)
_HIDDEN = closed(
    "A field that nobody fills in: the platform's value is baked in when the pack is published.",
    ["from"],
    {
        "from": {
            "type": "string",
            "pattern": f"^{NAME}$",
            "description": "A name in platform.yaml's spec.values, or one of "
            f"{', '.join(BUILT_IN)}.",
        },
        "pattern": described(
            TEXT,
            "What the value must match, so that an unbaked one is refused. "
            "Default: the XRD's pattern.",
        ),
    },
)
_PAGE = closed(
    "One page of the form.",
    ["title", "fields"],
    {
        "title": TEXT,
        "description": TEXT,
        "fields": _FIELDS,
    },
)
_LINK = closed(
    "A link that is shown when the order is placed.",
    ["title"],
    {
        "title": TEXT,
        "url": TEXT,
        "entityRef": TEXT,
        "icon": TEXT,
    },
)
WHO = ("team", "requester", "platform")
_CHANGE = closed(
    "A change of a living order: which fields, how far, by whom.",
    ["name", "fields"],
    {
        "name": {
            "type": "string",
            "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            "maxLength": 40,
            "description": "Its name in commands and addresses.",
        },
        "title": described(TEXT, "Its title in the portal. Default: the name, spelt out."),
        "fields": _FIELDS,
        "direction": {
            "enum": ["any", "grow", "step", "never"],
            "default": "any",
            "description": "any: to any value; grow: numbers and lists only grow, enums only go "
            "on; step: one enum value or number at a time; never: these fields stay.",
        },
        "who": list_of(
            {"anyOf": [{"enum": list(WHO)}, {"type": "string", "pattern": ENTITY_REF}]},
            "Who may: team, requester, platform, or references of the catalog. Default: team.",
            minItems=1,
        ),
        "how": {
            "enum": ["direct", "review"],
            "default": "direct",
            "description": "direct: committed at once; review: a pull request.",
        },
        "warning": described(TEXT, "Shown before the change is sent."),
        "differs": described(FLAG, "Asking for what holds already is refused, not passed over."),
        "atLeast": closed(
            "A number of the XR's status below which the change's only field may not be set.",
            ["path", "title", "why"],
            {
                "path": described(TEXT, "The number's field below status, dotted."),
                "title": described(TEXT, "What the form calls it."),
                "why": described(TEXT, "Ends the sentence of the refusal."),
            },
        ),
    },
)
_KIND = closed(
    "A kind of the cluster.",
    ["apiVersion", "kind"],
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "resource": described(TEXT, "Its plural. Default: guessed from the kind."),
        "binds": list_of(TEXT, "Of a binding: names of the roles that it may bind. Default: any."),
    },
)
_IMPORT = closed(
    "Orders can take over resources that exist in the cloud: a reviewed change manages them.",
    ["names", "manage"],
    {
        "names": {
            **map_of(
                _FIELD, "A composed part: the field with the external name of what it takes over."
            ),
            "minProperties": 1,
            "maxProperties": 20,
        },
        "manage": described(
            _FIELD, "The yes-or-no field: without it, what was taken over is only observed."
        ),
    },
)
_EXAMPLE = closed(
    "An order as somebody could place it.",
    ["name", "values"],
    {
        "name": {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "title": TEXT,
        "values": {"type": "object", "description": "Values of the form."},
    },
)

ACCEPTABLE = (
    "access-widened", "adopts", "connection-lost", "dangling", "default-changed", "keeps-name",
    "starts", "status-lost", "stops", "unguarded", "unpinned", "unprotected", "unselected",
    "warning",
)  # fmt: skip
"""Dangers that a kit may accept: none that loses data, exposes secrets or cannot be done."""
_ACCEPTED = closed(
    "A danger of plans that the kit's author has thought about.",
    ["danger", "part", "reason"],
    {
        "danger": {"enum": list(ACCEPTABLE), "description": "Its code."},
        "part": described(
            TEXT, "The part's path as plans show it, for example firewall; * is any text."
        ),
        "words": described(TEXT, "Only if the sentence of the danger has these words."),
        "reason": described({**TEXT, "maxLength": 300}, "Why it is accepted; plans show it."),
    },
)

_SURVIVOR = closed(
    "Something that is left, but not always.",
    ["text", "unless"],
    {
        "text": TEXT,
        "unless": {**map_of(SCALAR, "Not if these fields have these values."), "minProperties": 1},
        "name": described(
            {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"},
            "How an end asks for it to go too; the fields are set first then.",
        ),
        "ask": described(TEXT, "What the form of the end asks, for example 'Delete it too'."),
    },
)
_SURVIVOR["dependentRequired"] = {"name": ["ask"], "ask": ["name"]}
_FIRST = closed(
    "What is changed and waited for before the end begins: stations do not run for deleted XRs.",
    ["set"],
    {
        "set": {**map_of(SCALAR, "Fields and their values."), "minProperties": 1},
        "until": map_of(SCALAR, "Paths in the XR's status, dotted, and what they must be."),
        "why": described(TEXT, "What it is good for, in words."),
    },
)
_FIXTURE: Schema = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": {"type": "object", "required": ["name"]},
    },
}

_SPEC: dict[str, Schema] = {
    "title": described(TEXT, "What people call the kit. Default: the XRD's kind, spelt out."),
    "description": described(TEXT, "One sentence. Default: the XRD's description."),
    "owner": {
        "type": "string",
        "pattern": ENTITY_REF,
        "default": "group:default/platform",
        "description": "Who owns the template in the catalog.",
    },
    "type": {**TEXT, "default": "service", "description": "The template's spec.type."},
    "tags": list_of(
        {"type": "string", "pattern": r"^[a-z0-9:+#]+(-[a-z0-9:+#]+)*$", "maxLength": 63},
        "Tags of the template in the catalog.",
        uniqueItems=True,
    ),
    "nameFrom": {
        "anyOf": [_FIELD, _FIELDS],
        "description": "The fields that name an order, <kit>-<value>-<value>. "
        "Default: the form asks for a name.",
    },
    "teamFrom": described(_FIELD, "The field that names the team. Default: the form asks for it."),
    "xrName": {
        **TEXT,
        "default": "order",
        "description": "What the XR is called: 'order', the order's id, or a field.",
    },
    "xrNamespace": {
        **TEXT,
        "pattern": r"^([a-z0-9-]|\{[A-Za-z0-9_.]+\})+$",
        "description": "Namespace of a namespaced XR; {field} stands for a field's value, for "
        "example agent-{agentName}. Default: that of Argo CD's Application.",
    },
    "aliases": map_of(TEXT, "XRD field: the name of its form parameter. Top-level fields only."),
    "unfold": described(
        TEXT,
        "A group directly below spec: its fields stand in the form as if they were beside it.",
    ),
    "yamlFields": list_of(
        _FIELD,
        "Optional fields that the form takes together as YAML, in one box on its last page.",
        uniqueItems=True,
    ),
    "pages": list_of(_PAGE, "Pages of the form. Fields named nowhere come last."),
    "fields": map_of(_HINTS, "How fields look in the form, by field."),
    "hidden": map_of(_HIDDEN, "Fields with a value of the platform, by field."),
    "links": list_of(_LINK, "Links that are shown when the order is placed."),
    "changes": list_of(_CHANGE, "What may change later. Without it, every visible field."),
    "end": closed(
        "The end of an order.",
        [],
        {
            "repository": {"enum": ["archive", "delete"], "default": "archive"},
            "survives": list_of(
                {"anyOf": [TEXT, _SURVIVOR]}, "What is left when the order has ended, in words."
            ),
            "first": _FIRST,
        },
    ),
    "lease": LEASE,
    "windows": list_of(
        WINDOW,
        "Maintenance windows. Argo CD delivers nothing of the kit's orders outside of them, "
        "neither changes nor ends nor self-heal.",
        minItems=1,
        maxItems=20,
    ),
    "approval": closed(
        "Which orders and changes need somebody's agreement.",
        ["rules"],
        {
            "rules": list_of(APPROVAL_RULE, "All that hold count.", minItems=1, maxItems=20),
            "bypass": {
                "enum": ["refuse", "report"],
                "default": "refuse",
                "description": "What becomes of what was written or merged without it. refuse: it "
                "is not delivered; report: it is delivered, and status and doctor say so.",
            },
        },
    ),
    "gate": closed(
        "Lets programs ask whether the XR's user may go on: GET /v1/gates/<kit>/<name>. "
        "Paths are below status, dotted.",
        ["paused", "cause", "exhausted"],
        {
            "paused": described(TEXT, "A boolean: true stops."),
            "cause": described(TEXT, "A text: why."),
            "exhausted": list_of(
                TEXT,
                "Causes that are answered 402, payment required. Every other one is 503.",
                minItems=1,
                uniqueItems=True,
            ),
        },
    ),
    "import": _IMPORT,
    "examples": list_of(_EXAMPLE, "Orders as people could place them."),
    "composes": list_of(_KIND, "Kinds that the stations compose."),
    "requires": list_of(_KIND, "Kinds that the stations read."),
    "plan": closed(
        "What plans of changes go by.",
        [],
        {
            "dataKinds": list_of(
                DATA_KIND, "Kinds whose removal deletes data, or does not; beside Orderkit's table."
            ),
            "accepts": list_of(
                _ACCEPTED, "Dangers that are listed as accepted, for all orders.", maxItems=50
            ),
        },
    ),
    "secrets": closed(
        "What views show of the Secrets that the stations make or read.",
        ["public"],
        {
            "public": list_of(
                {"type": "string", "pattern": r"^[-._a-zA-Z0-9]+$", "maxLength": 253},
                "Keys whose values everybody may see, for example host, port, username. Every "
                "other value is masked, and so is what stations make of it.",
                minItems=1,
                maxItems=50,
                uniqueItems=True,
            ),
        },
    ),
    "outputs": list_of(OUTPUT, "What people order the kit for, in this order.", maxItems=20),
    "facts": list_of(
        {"if": {"required": ["apiVersion"]}, "then": _FIXTURE, "else": SHOWN_FACT},
        "Values of the status that are worth seeing, in this order. Objects of Kubernetes are "
        "fixtures, as kits had them here before.",
        maxItems=50,
    ),
    "attention": list_of(ATTENTION, "What turns the phase Ready into Attention.", maxItems=20),
    "fixtures": list_of(
        _FIXTURE, "Objects that the stations find when 'kit check' tries the kit; never delivered."
    ),
}

KIT_SCHEMA: Schema = document("Kit", _SPEC)
