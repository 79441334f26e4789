"""How the fields of one version of an XRD become those of another: ``conversions`` of kit.yaml."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from ground.shapes import StrictShape
from orderkit.core.kit.form_shapes import UNIQUE, Field
from orderkit.core.kit.order_terms import Scalar, Text

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
