"""
The shapes of kit.yaml's larger parts: the form, what is shown of an order, and conversions.

The form has pages, fields, hidden values and links. ``outputs``, ``facts`` and ``attention`` are
what a kit shows of an order. ``conversions`` say how the fields of one version of an XRD become
those of another. ``core.kit.kit_file`` puts the parts together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from ground.shapes import StrictShape
from orderkit.core.kit.order_terms import Scalar, Text
from orderkit.core.platform.baking import BUILT_IN, NAME

FieldPath = str
"""``teamName``, ``storage.sizeGb``: properties below ``spec``, dotted."""
Field = Annotated[
    Text,
    Meta(description="A field of the XRD: its path below spec, dotted (teamName, storage.sizeGb)."),
]
UNIQUE = {"uniqueItems": True}
Fields = Annotated[
    tuple[Field, ...],
    Meta(min_length=1, description="Fields of the XRD.", extra_json_schema=UNIQUE),
]


class Picker(StrictShape, frozen=True):
    """A field that is chosen from the catalog."""

    kind: Annotated[
        Literal["entity", "owner"],
        Meta(description="entity: any entity of the catalog; owner: users and groups."),
    ]
    filter: Annotated[
        Mapping[str, Any] | tuple[Mapping[str, Any], ...],
        Meta(description="Which entities: a filter of the catalog, or a list of them."),
    ] = ()
    value: Annotated[
        Literal["reference", "name"],
        Meta(
            description="What the field holds: the entity's reference, or its name alone "
            "(then the filter names one kind, and entities are of the namespace default)."
        ),
    ] = "reference"

    @property
    def filters(self) -> tuple[Mapping[str, Any], ...]:
        """The filters, any of which an entity has to pass; none: every entity does."""
        return (self.filter,) if isinstance(self.filter, Mapping) else self.filter

    @property
    def prefix(self) -> str:
        """What the field's references begin with; empty if the field holds whole references."""
        kinds = {str(entity_filter.get("kind", "")).lower() for entity_filter in self.filters}
        is_name = self.value == "name" and len(kinds) == 1
        return f"{kinds.pop()}:default/" if is_name else ""


class Refers(StrictShape, frozen=True):
    """A field that names an object of the cluster, which must exist when it is entered."""

    api_version: Text
    kind: Text
    ready: Annotated[
        Text,
        Meta(description="A path in the object, dotted, that must be true: status.ready."),
    ] = ""


@dataclass(frozen=True, slots=True)
class When:
    """A field is shown only if `field` has one of `values`."""

    field: FieldPath
    values: tuple[Scalar, ...]


class Hints(StrictShape, frozen=True):
    """How a field looks in the form; empty or None: as in the XRD."""

    title: Annotated[Text, Meta(description="Its title. Default: its name, spelt out.")] = ""
    help: Annotated[
        Text, Meta(description="The line below it. Default: the XRD's description.")
    ] = ""
    placeholder: Annotated[Text, Meta(description="Shown while it is empty.")] = ""
    widget: Annotated[
        Text,
        Meta(description="The form's ui:widget, for example textarea, radio, updown."),
    ] = ""
    autofocus: Annotated[bool, Meta(description="The cursor starts here.")] = False
    error: Annotated[
        Text,
        Meta(description="Shown instead of the regular expression that is not matched."),
    ] = ""
    labels: Annotated[
        Mapping[Scalar, Text],
        Meta(description="Enum value: the text that is shown for it."),
    ] = {}
    picker: Annotated[Picker | None, Meta(description="Choose from the catalog.")] = None
    refers: Annotated[
        Refers | None,
        Meta(
            description="It names an object of the cluster that must be there when it is ordered "
            "or changed."
        ),
    ] = None
    ask: Annotated[
        Literal["order", "later"],
        Meta(description="later: only forms of changes show it; a new order does not have it."),
    ] = "order"
    shown_if: Annotated[
        Mapping[str, Scalar | Annotated[tuple[Scalar, ...], Meta(min_length=1)]],
        Meta(
            min_length=1,
            max_length=1,
            description="Shown only if another field has this value, or one of these.",
        ),
    ] = field(default_factory=dict, name="when")
    advanced: Annotated[
        bool | None,
        Meta(
            description="Whether it is on the last page. Default: fields of Crossplane and "
            "providers are (deletionPolicy, providerConfigRef, ...)."
        ),
    ] = None
    secret: Annotated[
        bool | None,
        Meta(
            description="Whether it is a secret: no form asks for it, because orders are plain "
            "text in Git. Default: its name decides (password, apiKey, ...). false: it is none."
        ),
    ] = None

    @property
    def when(self) -> When | None:
        """The condition under which it is shown; None: always."""
        for path, values in self.shown_if.items():
            return When(path, values if isinstance(values, tuple) else (values,))
        return None


class Hidden(StrictShape, frozen=True):
    """A field that publishing fills with a value of the platform."""

    value: Annotated[
        str,
        Meta(
            pattern=f"^{NAME}$",
            description=f"A name in platform.yaml's spec.values, or one of {', '.join(BUILT_IN)}.",
        ),
    ] = field(name="from")
    pattern: Annotated[
        Text,
        Meta(
            description="What the value must match, so that an unbaked one is refused. "
            "Default: the XRD's pattern."
        ),
    ] = ""

    @property
    def sentinel(self) -> str:
        """The placeholder in the pack that publishing replaces."""
        return f"__ORDERKIT_{self.value}__"


class Page(StrictShape, frozen=True):
    """One page of the form."""

    title: Text
    fields: Fields
    description: Text = ""


class Link(StrictShape, frozen=True):
    """A link that is shown when the order is placed; either `url` or `entity_ref`."""

    title: Text
    url: Text = ""
    entity_ref: Text = ""
    icon: Text = ""


_Text = Annotated[str, Meta(min_length=1)]
_Short = Annotated[str, Meta(min_length=1, max_length=80)]
_Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-zA-Z0-9]*(-[a-zA-Z0-9]+)*$",
        max_length=40,
        description="Its name in answers to programs.",
    ),
]
_Title = Annotated[_Short, Meta(description="Its title. Default: the name, spelt out.")]
_StatusPath = Annotated[
    _Text, Meta(description="A field of the XR's status: its path below status, dotted.")
]
OUTPUT_RULE: dict[str, Any] = {
    "if": {"required": ["secret"], "properties": {"secret": {"type": "object"}}},
    "then": {"not": {"anyOf": [{"required": ["path"]}, {"required": ["link"]}]}},
    "else": {"required": ["path"]},
}
"""An output is at a path, or a value of a connection Secret."""
ATTENTION_RULE = {"dependentRequired": {"button": ["change"]}}
"""A button needs a change."""


class Connection(StrictShape, frozen=True):
    """A value of a connection Secret that the order composes."""

    name: Annotated[
        _Text,
        Meta(description="Its name; {spec.field} or {metadata.name} stands for a value."),
    ]
    key: Annotated[_Text, Meta(description="Which of its values.")]
    namespace: Annotated[
        _Text,
        Meta(
            description="Its namespace, likewise. Default: that of the XR, or where the order "
            "has it."
        ),
    ] = ""


class KitOutput(StrictShape, frozen=True):
    """A value that people order the kit for: its address, its user, its password."""

    name: _Name
    title: _Title = ""
    path: _StatusPath = ""
    secret: Annotated[
        bool | Connection,
        Meta(
            description="true: the value is shown to the team's members only, when they "
            "ask for it; an object: so is this value of a connection Secret."
        ),
    ] = False
    is_link: Annotated[
        bool, Meta(description="It is an http or https address that people follow.")
    ] = field(default=False, name="link")

    @property
    def is_secret(self) -> bool:
        """Whether only the team's members see it, and only when they ask for it."""
        return bool(self.secret)

    @property
    def connection(self) -> Connection | None:
        """The connection Secret's value that it is; None: it is at `path`."""
        return self.secret if isinstance(self.secret, Connection) else None


class KitFact(StrictShape, frozen=True):
    """A value of the XR's status that is worth seeing."""

    name: _Name
    path: _StatusPath
    title: _Title = ""
    unit: Annotated[_Short, Meta(description="Stands after the value, for example USD or GiB.")] = (
        ""
    )
    format: Annotated[
        Literal["", "number", "percent", "bytes"],
        Meta(
            description="number: two decimals at most; percent: of a share, 0.5 is 50%; "
            "bytes: in KiB, MiB, ... Default: as it is."
        ),
    ] = ""
    is_spend: Annotated[
        bool,
        Meta(
            description="It is money that was really spent, in the currency of 'unit': shown "
            "beside what the order is estimated to cost, and in statements."
        ),
    ] = field(default=False, name="spend")


class KitAttention(StrictShape, frozen=True):
    """What somebody should look at although the order is Ready."""

    when: Annotated[
        _Text,
        Meta(
            max_length=2_000,
            description="A CEL condition over spec, status and metadata of the XR.",
        ),
    ]
    sentence: Annotated[
        _Text,
        Meta(
            max_length=300,
            description="What people are told; {status.field} stands for a value.",
        ),
    ]
    change: Annotated[_Text, Meta(description="The name of the change that helps.")] = ""
    button: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=40,
            description="What its button says. Default: the change's title.",
        ),
    ] = ""


_Version = Annotated[str, Meta(pattern=r"^v[0-9]+((alpha|beta)[0-9]+)?$")]
_Pair = tuple[Scalar, Scalar]


class MappedField(StrictShape, frozen=True):
    """A field whose values have other names in the other version."""

    to: Annotated[Field, Meta(description="The field of the other version.")]
    values: Annotated[
        tuple[_Pair, ...],
        Meta(min_length=1, description="Pairs: the old value, and the new one."),
    ]


class SplitField(StrictShape, frozen=True):
    """A text that is several fields in the other version."""

    into: Annotated[
        tuple[Field, ...],
        Meta(min_length=2, description="The fields, in order.", extra_json_schema=UNIQUE),
    ]
    by: Annotated[Text, Meta(description="The text between them.")]


class Conversion(StrictShape, frozen=True):
    """From one version to another, and back. A field may be named once in each version."""

    from_: Annotated[_Version, Meta(description="The older version.")] = field(name="from")
    to: Annotated[_Version, Meta(description="The newer version.")]
    move: Annotated[
        Mapping[str, Field],
        Meta(description="Old field: new field. Renames, and moves to another group."),
    ] = {}
    map: Annotated[
        Mapping[str, MappedField], Meta(description="Old field: new field, with other values.")
    ] = {}
    split: Annotated[
        Mapping[str, SplitField], Meta(description="Old field: several new fields.")
    ] = {}
    default: Annotated[
        Mapping[str, Any],
        Meta(description="New field: the value that it has in orders of the old version."),
    ] = {}
    compute: Annotated[
        Mapping[str, Text],
        Meta(description="New field: CEL over spec, the order's values in the old version."),
    ] = {}
    compute_back: Annotated[
        Mapping[str, Text],
        Meta(description="Old field: CEL over spec, the order's values in the new version."),
    ] = {}
    loses: Annotated[
        tuple[Field, ...],
        Meta(
            description="Fields of either version whose values may be lost on the way.",
            extra_json_schema=UNIQUE,
        ),
    ] = ()

    @property
    def old_fields(self) -> tuple[str, ...]:
        """The old version's fields that steps read, as often as they are named."""
        return (*self.move, *self.map, *self.split, *self.compute_back)

    @property
    def new_fields(self) -> tuple[str, ...]:
        """The new version's fields that steps write, as often as they are named."""
        split = (field for step in self.split.values() for field in step.into)
        mapped = (step.to for step in self.map.values())
        return (*self.move.values(), *mapped, *split, *self.default, *self.compute)
