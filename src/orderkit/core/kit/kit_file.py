"""
The shape of kit.yaml: every key with what it means, for readers, for errors and for editors.

`kit_schema` refuses what is not a kit.yaml; what contradicts the XRD is ``core.kit.consistency``'s.
Field paths are dotted property paths below ``spec`` of the XR.
"""

# No future annotations: texts of types would be evaluated again in each process, for 15 ms.
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from ground.objects.kube_objects import Manifest, dig
from ground.shapes import StrictShape
from orderkit.core.documents import DocumentName, PlanRules, document_schema
from orderkit.core.kit.kit_file_parts import (
    ATTENTION_RULE,
    OUTPUT_RULE,
    UNIQUE,
    Conversion,
    Field,
    FieldPath,
    Fields,
    Hidden,
    Hints,
    KitAttention,
    KitFact,
    KitOutput,
    Link,
    Page,
)
from orderkit.core.kit.order_terms import Approval, Lease, MaintenanceWindow, Text, Values

_ENTITY_REF = r"^([a-z]+:)?([a-z0-9][-a-z0-9_.]*/)?[A-Za-z0-9][-A-Za-z0-9_.]*$"
_KEBAB = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
WHO = ("team", "requester", "platform")


class Direction(StrEnum):
    """How far a change may go."""

    ANY = "any"
    GROW = "grow"
    STEP = "step"
    NEVER = "never"


class How(StrEnum):
    """How a change reaches the branch: directly, or by a pull request."""

    DIRECT = "direct"
    REVIEW = "review"


class AtLeast(StrictShape, frozen=True):
    """A number of the XR's status below which the field of a change may not be set."""

    path: Annotated[Text, Meta(description="The number's field below status, dotted.")]
    title: Annotated[Text, Meta(description="What the form calls it.")]
    why: Annotated[Text, Meta(description="Ends the sentence of the refusal.")]


class KitChange(StrictShape, frozen=True):
    """A change of a living order: which fields, how far, by whom."""

    name: Annotated[
        str,
        Meta(pattern=_KEBAB, max_length=40, description="Its name in commands and addresses."),
    ]
    fields: Fields
    title: Annotated[
        Text, Meta(description="Its title in the portal. Default: the name, spelt out.")
    ] = ""
    direction: Annotated[
        Direction,
        Meta(
            description="any: to any value; grow: numbers and lists only grow, enums only go "
            "on; step: one enum value or number at a time; never: these fields stay."
        ),
    ] = Direction.ANY
    who: Annotated[
        tuple[
            Annotated[
                str,
                Meta(
                    extra_json_schema={
                        "anyOf": [{"enum": list(WHO)}, {"type": "string", "pattern": _ENTITY_REF}]
                    }
                ),
            ],
            ...,
        ],
        Meta(
            min_length=1,
            description="Who may: team, requester, platform, or references of the catalog. "
            "Default: team.",
        ),
    ] = ("team",)
    how: Annotated[How, Meta(description="direct: committed at once; review: a pull request.")] = (
        How.DIRECT
    )
    warning: Annotated[Text, Meta(description="Shown before the change is sent.")] = ""
    differs: Annotated[
        bool, Meta(description="Asking for what holds already is refused, not passed over.")
    ] = False
    at_least: Annotated[
        AtLeast | None,
        Meta(
            description="A number of the XR's status below which the change's only field may "
            "not be set."
        ),
    ] = None


class First(StrictShape, frozen=True):
    """A change before the end of an order, because no function runs for a deleted XR."""

    set: Annotated[Values, Meta(min_length=1, description="Fields and their values.")]
    until: Annotated[
        Values, Meta(description="Paths in the XR's status, dotted, and what they must be.")
    ] = field(default_factory=dict)
    why: Annotated[Text, Meta(description="What it is good for, in words.")] = ""


class Survivor(StrictShape, frozen=True):
    """Something that outlives an order, but not always."""

    text: Text
    unless: Annotated[
        Values, Meta(min_length=1, description="Not if these fields have these values.")
    ]
    name: Annotated[
        str,
        Meta(
            pattern="^[a-z][a-z0-9_]{0,39}$",
            description="How an end asks for it to go too; the fields are set first then.",
        ),
    ] = ""
    ask: Annotated[
        Text, Meta(description="What the form of the end asks, for example 'Delete it too'.")
    ] = ""

    def holds(self, spec: Mapping[str, Any]) -> bool:
        """Say whether it outlives an order with this ``spec``."""
        conditions = self.unless.items()
        return not conditions or any(
            dig(spec, *path.split(".")) != value for path, value in conditions
        )


class End(StrictShape, frozen=True):
    """What remains of an ended order, and what happens before its end."""

    repository: Literal["archive", "delete"] = "archive"
    survives: Annotated[
        tuple[Text | Survivor, ...],
        Meta(description="What is left when the order has ended, in words."),
    ] = ()
    first: Annotated[
        First | None,
        Meta(
            description="What is changed and waited for before the end begins: stations do not "
            "run for deleted XRs."
        ),
    ] = None

    @property
    def survivors(self) -> tuple[Survivor, ...]:
        """What outlives an order; a mere text always does."""
        return tuple(
            Survivor(kept, {}) if isinstance(kept, str) else kept for kept in self.survives
        )


class OfferedComposition(StrictShape, frozen=True):
    """A Composition that an order may have."""

    name: Annotated[Text, Meta(description="Its metadata.name in the pack.")]
    title: Annotated[Text, Meta(description="What forms call it. Default: its name.")] = ""


class Gate(StrictShape, frozen=True):
    """The paths below ``status`` that tell the user of an XR to stop."""

    paused: Annotated[Text, Meta(description="A boolean: true stops.")]
    cause: Annotated[Text, Meta(description="A text: why.")]
    exhausted: Annotated[
        tuple[Text, ...],
        Meta(
            min_length=1,
            description="Causes that are answered 402, payment required. Every other one is 503.",
            extra_json_schema=UNIQUE,
        ),
    ]


class Import(StrictShape, frozen=True):
    """How orders take over resources that exist in the cloud: first observed, then managed."""

    names: Annotated[
        Mapping[str, Field],
        Meta(
            min_length=1,
            max_length=20,
            description="A composed part: the field with the external name of what it takes over.",
        ),
    ]
    manage: Annotated[
        Text,
        Meta(description="The yes-or-no field: without it, what was taken over is only observed."),
    ]


ACCEPTABLE = (
    "access-widened", "adopts", "connection-lost", "dangling", "default-changed", "keeps-name",
    "starts", "status-lost", "stops", "unguarded", "unpinned", "unprotected", "unselected",
    "warning",
)  # fmt: skip
"""Dangers that a kit may accept: none that loses data, exposes secrets or cannot be done."""


class AcceptedDanger(StrictShape, frozen=True):
    """A danger of plans that the kit's author has thought about, for all of its orders."""

    code: Annotated[
        str, Meta(description="Its code.", extra_json_schema={"enum": list(ACCEPTABLE)})
    ] = field(name="danger")
    part: Annotated[
        Text,
        Meta(description="The part's path as plans show it, for example firewall; * is any text."),
    ]
    reason: Annotated[Text, Meta(max_length=300, description="Why it is accepted; plans show it.")]
    words: Annotated[
        Text, Meta(description="Only if the sentence of the danger has these words.")
    ] = ""


class KitPlanRules(PlanRules, frozen=True):
    """What plans of changes go by."""

    accepts: Annotated[
        tuple[AcceptedDanger, ...],
        Meta(max_length=50, description="Dangers that are listed as accepted, for all orders."),
    ] = ()


class SecretRules(StrictShape, frozen=True):
    """What views show of the Secrets that the stations make or read."""

    public: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)], ...],
        Meta(
            min_length=1,
            max_length=50,
            description="Keys whose values everybody may see, for example host, port, username. "
            "Every other value is masked, and so is what stations make of it.",
            extra_json_schema=UNIQUE,
        ),
    ] = ()


class Example(StrictShape, frozen=True):
    """An order as somebody could place it."""

    name: Annotated[str, Meta(pattern=_KEBAB)]
    values: Annotated[Mapping[str, Any], Meta(description="Values of the form.")]
    title: Text = ""


class KindRef(StrictShape, frozen=True):
    """A kind that stations compose or read."""

    api_version: Text
    kind: Text
    resource: Annotated[Text, Meta(description="Its plural. Default: guessed from the kind.")] = ""
    binds: Annotated[
        tuple[Text, ...],
        Meta(description="Of a binding: names of the roles that it may bind. Default: any."),
    ] = ()


_FIXTURE: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {
        "apiVersion": {"type": "string", "minLength": 1},
        "kind": {"type": "string", "minLength": 1},
        "metadata": {"type": "object", "required": ["name"]},
    },
}


class KitFile(StrictShape, frozen=True, kw_only=True):
    """``metadata.name`` and ``spec`` of kit.yaml."""

    name: DocumentName
    title: Annotated[
        Text, Meta(description="What people call the kit. Default: the XRD's kind, spelt out.")
    ] = ""
    description: Annotated[
        Text, Meta(description="One sentence. Default: the XRD's description.")
    ] = ""
    owner: Annotated[
        str,
        Meta(
            pattern=_ENTITY_REF,
            description="Who owns the template in the catalog. Default: group:default/platform.",
        ),
    ] = ""
    type: Annotated[Text, Meta(description="The template's spec.type.")] = "service"
    tags: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[a-z0-9:+#]+(-[a-z0-9:+#]+)*$", max_length=63)], ...]
        | None,
        Meta(description="Tags of the template in the catalog.", extra_json_schema=UNIQUE),
    ] = None
    named_from: Annotated[
        Text | Fields,
        Meta(
            description="The fields that name an order, <kit>-<value>-<value>. "
            "Default: the form asks for a name."
        ),
    ] = field(default=(), name="nameFrom")
    team_from: Annotated[
        Text,
        Meta(description="The field that names the team. Default: the form asks for it."),
    ] = ""
    xr_name: Annotated[
        Text,
        Meta(description="What the XR is called: 'order', the order's id, or a field."),
    ] = "order"
    xr_namespace: Annotated[
        Text,
        Meta(
            pattern=r"^([a-z0-9-]|\{[A-Za-z0-9_.]+\})+$",
            description="Namespace of a namespaced XR; {field} stands for a field's value, for "
            "example agent-{agentName}. Default: that of Argo CD's Application.",
        ),
    ] = ""
    aliases: Annotated[
        Mapping[str, Text],
        Meta(description="XRD field: the name of its form parameter. Top-level fields only."),
    ] = {}
    unfold: Annotated[
        Text,
        Meta(
            description="A group directly below spec: its fields stand in the form as if they "
            "were beside it."
        ),
    ] = ""
    yaml_fields: Annotated[
        tuple[Field, ...],
        Meta(
            description="Optional fields that the form takes together as YAML, in one box on its "
            "last page.",
            extra_json_schema=UNIQUE,
        ),
    ] = ()
    pages: Annotated[
        tuple[Page, ...], Meta(description="Pages of the form. Fields named nowhere come last.")
    ] = ()
    fields: Annotated[
        Mapping[str, Hints], Meta(description="How fields look in the form, by field.")
    ] = {}
    hidden: Annotated[
        Mapping[str, Hidden], Meta(description="Fields with a value of the platform, by field.")
    ] = {}
    links: Annotated[
        tuple[Link, ...], Meta(description="Links that are shown when the order is placed.")
    ] = ()
    compositions: Annotated[
        tuple[OfferedComposition, ...],
        Meta(
            min_length=2,
            max_length=50,
            description="Compositions that an order may have: its form offers them. An order that "
            "names none gets the XRD's default. Default: only Crossplane chooses.",
        ),
    ] = ()
    changes: Annotated[
        tuple[KitChange, ...],
        Meta(description="What may change later. Without it, every visible field."),
    ] = ()
    end: Annotated[End, Meta(description="The end of an order.")] = End()
    lease: Annotated[
        Lease,
        Meta(
            description="How long an order lives: minutes, hours, days or weeks (90m, 8h, 30d, 4w)."
        ),
    ] = Lease()
    windows: Annotated[
        tuple[MaintenanceWindow, ...],
        Meta(
            min_length=1,
            max_length=20,
            description="Maintenance windows. Argo CD delivers nothing of the kit's orders "
            "outside of them, neither changes nor ends nor self-heal.",
        ),
    ] = ()
    approval: Annotated[
        Approval,
        Meta(
            description="Which orders and changes need an approval.",
            extra_json_schema={"required": ["rules"]},
        ),
    ] = Approval()
    gate: Annotated[
        Gate | None,
        Meta(
            description="Lets programs ask whether the XR's user may go on: GET "
            "/v1/gates/<kit>/<name>. Paths are below status, dotted."
        ),
    ] = None
    imports: Annotated[
        Import | None,
        Meta(
            description="Orders can take over resources that exist in the cloud: a reviewed "
            "change manages them."
        ),
    ] = field(default=None, name="import")
    examples: Annotated[
        tuple[Example, ...], Meta(description="Orders as people could place them.")
    ] = ()
    composes: Annotated[
        tuple[KindRef, ...], Meta(description="Kinds that the stations compose.")
    ] = ()
    requires: Annotated[tuple[KindRef, ...], Meta(description="Kinds that the stations read.")] = ()
    pins: Annotated[
        bool,
        Meta(
            description="Orders may be pinned in Git to a revision of the XRD's Composition. "
            "Whoever may push to an order can then keep an old one."
        ),
    ] = False
    conversions: Annotated[
        tuple[Conversion, ...],
        Meta(
            max_length=20,
            description="How orders get from one version of the XRD to another, and back.",
        ),
    ] = ()
    plan: Annotated[KitPlanRules, Meta(description="What plans of changes go by.")] = KitPlanRules()
    secrets: Annotated[
        SecretRules,
        Meta(description="What views show of the Secrets that the stations make or read."),
    ] = SecretRules()
    outputs: Annotated[
        tuple[Annotated[KitOutput, Meta(extra_json_schema=OUTPUT_RULE)], ...],
        Meta(max_length=20, description="What people order the kit for, in this order."),
    ] = ()
    facts: Annotated[
        tuple[KitFact, ...],
        Meta(
            max_length=50,
            description="Values of the status that are worth seeing, in this order. Objects of "
            "Kubernetes are fixtures, as kits had them here before.",
        ),
    ] = ()
    attention: Annotated[
        tuple[Annotated[KitAttention, Meta(extra_json_schema=ATTENTION_RULE)], ...],
        Meta(max_length=20, description="What turns the phase Ready into Attention."),
    ] = ()
    fixtures: Annotated[
        tuple[Annotated[Manifest, Meta(extra_json_schema=_FIXTURE)], ...],
        Meta(
            description="Objects that the stations find when 'kit check' tries the kit; never "
            "delivered."
        ),
    ] = ()

    @property
    def name_from(self) -> tuple[FieldPath, ...]:
        """The fields that name the order; empty: the form asks for a name."""
        fields = self.named_from
        return (fields,) if isinstance(fields, str) else fields


def is_fixture(entry: Mapping[str, Any]) -> bool:
    """Say whether an entry of ``facts`` is an object: kits from before ``fixtures`` have those."""
    return "apiVersion" in entry


@cache
def kit_schema() -> dict[str, Any]:
    """Return the JSON Schema of kit.yaml. Nobody may change it."""
    schema = document_schema(KitFile, ("Kit",), "name")
    spec = schema["properties"]["spec"]["properties"]
    _, survivor = spec["end"]["properties"]["survives"]["items"]["anyOf"]
    survivor["dependentRequired"] = {"name": ["ask"], "ask": ["name"]}
    fact = spec["facts"]["items"]
    spec["facts"]["items"] = {"if": {"required": ["apiVersion"]}, "then": _FIXTURE, "else": fact}
    return schema
