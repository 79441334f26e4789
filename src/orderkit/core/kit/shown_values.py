"""What a kit shows of an order: ``outputs``, ``facts`` and ``attention`` of kit.yaml."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from ground.shapes import StrictShape

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
