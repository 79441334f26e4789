"""How a kit's form looks: pages, fields, hidden values and links of kit.yaml."""

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
