"""On what terms a kit's orders live: ``lease``, ``approval`` and ``windows`` of kit.yaml."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from ground.shapes import StrictShape
from orderkit.core.durations import PATTERN

NEVER = "never"
"""The default of a lease that an order gets only when somebody extends it."""
Text = Annotated[str, Meta(min_length=1)]
Scalar = str | int | float | bool
Values = Mapping[str, Scalar]
"""Values of fields of the XR, by dotted path."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNIQUE = {"uniqueItems": True}
_Duration = Annotated[str, Meta(pattern=PATTERN)]
_Clock = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]
_Zone = Annotated[
    Text, Meta(description="A time zone of the IANA database, for example Europe/Berlin.")
]
_APPROVER = r"^(group|user):default/[A-Za-z0-9][-A-Za-z0-9_.]*(:[A-Za-z0-9][-A-Za-z0-9_. ]*)?$"


class Nightly(StrictShape, frozen=True):
    """Values that a kit's orders get each night, by a change that is committed directly."""

    at: Annotated[_Clock, Meta(description="When, for example 20:00.")]
    values: Annotated[Values, Meta(description="The values, by field; changed directly.")] = field(
        name="set"
    )
    zone: _Zone = "UTC"
    unless: Annotated[Values, Meta(description="Orders with these values are left alone.")] = field(
        default_factory=dict
    )


class Extend(StrictShape, frozen=True):
    """How people may extend a lease."""

    by: Annotated[
        _Duration, Meta(description="The longest extension. Default: up to the maximum.")
    ] = ""
    times: Annotated[
        Annotated[int, Meta(ge=0, le=1000)] | None,
        Meta(description="How often; 0: never. Default: any number of times."),
    ] = None


class Lease(StrictShape, frozen=True):
    """How long an order lives, in durations such as ``30d``."""

    declared_default: Annotated[
        str,
        Meta(
            description="How long an order lives; never: until somebody extends it, which "
            "gives it a lease. Default: the maximum.",
            extra_json_schema={"anyOf": [{"pattern": PATTERN}, {"const": NEVER}]},
        ),
    ] = field(default="", name="default")
    maximum: Annotated[
        _Duration, Meta(description="How long it lives at most, with all extensions.")
    ] = ""
    term_field: Annotated[
        Text,
        Meta(description="The field of the XRD in which the order's form asks how long."),
    ] = field(default="", name="field")
    extend: Annotated[Extend, Meta(description="How people may extend it.")] = Extend()
    warn: Annotated[
        tuple[_Duration, ...],
        Meta(
            min_length=1,
            max_length=10,
            description="How long before the expiry a warning is recorded. Default: 24h and 1h.",
            extra_json_schema=_UNIQUE,
        ),
    ] = ("24h", "1h")
    then: Annotated[
        Literal["end", "pause"],
        Meta(description="end: the order ends; pause: it gets the values of `pause`."),
    ] = "end"
    pause: Annotated[
        Values, Meta(description="The values that pause an order, by field; changed directly.")
    ] = field(default_factory=dict)
    grace: Annotated[
        _Duration, Meta(description="How long after the expiry that happens. Default: at once.")
    ] = ""
    exempt_teams: Annotated[
        tuple[Text, ...],
        Meta(
            description="Teams whose orders have no expiry and no nights.",
            extra_json_schema=_UNIQUE,
        ),
    ] = field(default=(), name="except")
    nightly: Annotated[
        Nightly | None,
        Meta(description="What orders get each night, for example to stop what nobody needs then."),
    ] = None

    @property
    def is_declared(self) -> bool:
        """Whether the kit has leases at all; otherwise orders live until somebody ends them."""
        return self != Lease()

    @property
    def default(self) -> str:
        """How long an order lives unless its `term_field` says so; empty: until it is extended."""
        default = self.declared_default or ("" if self.term_field else self.maximum)
        return "" if default == NEVER else default


class ApprovalRule(StrictShape, frozen=True):
    """Who has to agree to an order or a change for which a condition holds."""

    when: Annotated[
        Text,
        Meta(
            max_length=2_000,
            description="A CEL condition over old and new (the XR's spec before and after), cost "
            "(before, after, difference, currency), requester (ref, name, proved) and order "
            "(name, team, kit, isNew). If it cannot be evaluated, approval is needed.",
        ),
    ]
    by: Annotated[
        tuple[
            Annotated[
                str,
                Meta(
                    extra_json_schema={
                        "anyOf": [{"enum": ["team", "platform"]}, {"pattern": _APPROVER}]
                    }
                ),
            ],
            ...,
        ],
        Meta(
            min_length=1,
            max_length=20,
            description="Any of these: team and platform (who may write to the order's "
            "repository, and to the ledger), user:default/NAME, or an organisation of the forge, "
            "group:default/NAME, or one of its teams, group:default/NAME:TEAM.",
            extra_json_schema=_UNIQUE,
        ),
    ]
    because: Annotated[Text, Meta(max_length=300, description="Why, as people read it.")]
    count: Annotated[int, Meta(ge=1, le=10, description="How many different people.")] = 1
    within: Annotated[
        _Duration,
        Meta(
            description="A duration such as 7d. The condition is judged again with old and "
            "cost.before as they were delivered that long ago, so that small steps add up."
        ),
    ] = ""


class Approval(StrictShape, frozen=True):
    """What needs approval, and what becomes of what bypasses it."""

    rules: Annotated[
        tuple[ApprovalRule, ...],
        Meta(min_length=1, max_length=20, description="All that hold count."),
    ] = ()
    bypass: Annotated[
        Literal["refuse", "report"],
        Meta(
            description="What becomes of what was written or merged without it. refuse: it "
            "is not delivered; report: it is delivered, and status and doctor say so."
        ),
    ] = "refuse"


class MaintenanceWindow(StrictShape, frozen=True):
    """When changes of a kit's orders are delivered; others wait until it begins."""

    days: Annotated[
        tuple[Annotated[str, Meta(extra_json_schema={"enum": list(DAYS)})], ...],
        Meta(min_length=1, description="On which days it begins.", extra_json_schema=_UNIQUE),
    ]
    start: Annotated[_Clock, Meta(description="22:00")] = field(name="from")
    end: Annotated[_Clock, Meta(description="04:00. Not after from: on the next day.")] = field(
        name="to"
    )
    zone: _Zone = "UTC"
