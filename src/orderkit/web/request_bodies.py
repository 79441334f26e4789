"""What the service is sent: the body of each operation that has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from ground.shapes import StrictShape
from orderkit.core.durations import PATTERN
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.yaml_settings import TEXT_MAX

_Label = Annotated[str, Meta(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
_Name = Annotated[str, Meta(min_length=1, max_length=253)]
_Reason = Annotated[str, Meta(max_length=500)]
_Commit = Annotated[str, Meta(pattern="^[0-9a-f]{7,40}$")]
_Reference = Annotated[
    str,
    Meta(
        max_length=253,
        pattern=r"^[A-Za-z]+:[A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.@+]*$",
        description="A catalog reference. A claim: a token's proof takes precedence.",
    ),
]
_Agent = Annotated[
    _Label | None,
    Meta(
        description="The AI agent that asks on behalf of the requester. Its name is signed, "
        "and the team's `agents` decides whether it may write."
    ),
]
_DryRun = Annotated[bool, Meta(description="Check everything and write nothing.")]
_AcceptLoss = Annotated[
    bool, Meta(description="Make the change even if the plan says that it deletes data.")
]


class Body(StrictShape, frozen=True, kw_only=True):
    """A body; its `requester` is whom a portal or program speaks for."""

    requester: _Reference | None = None


class RunTask(Body, frozen=True, kw_only=True):
    """A template to run."""

    template: _Name
    values: Mapping[str, Any]
    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = ""
    agent: _Agent = None


class Register(Body, frozen=True, kw_only=True):
    """An order whose repository exists."""

    order: _Label
    kit: _Label
    team: _Label
    repository: _Name = ""


class Settings(StrictShape, frozen=True):
    """The YAML of an order form."""

    text: Annotated[str, Meta(max_length=TEXT_MAX, description="YAML.")]


class PlanChange(StrictShape, frozen=True, kw_only=True):
    """A change to plan."""

    values: Annotated[
        Mapping[str, Any],
        Meta(description="By form parameter or field of the XRD; null removes a field."),
    ]
    change: Annotated[
        _Label | None,
        Meta(description="Name of the kit's change. Absent: found by the fields."),
    ] = None
    base: Annotated[
        _Commit | None,
        Meta(
            description="The commit the form was opened on: unchanged values are not edits, "
            "and a field that changed since is a conflict."
        ),
    ] = None
    whole: Annotated[
        bool,
        Meta(description="These are all values of the form: a missing one removes its field."),
    ] = False


class Change(PlanChange, frozen=True, kw_only=True):
    """A change to make."""

    resend: Annotated[
        bool,
        Meta(
            description="The portal sends this form again with the same `base` after a refusal: "
            "what the answer named as a conflict has been read, and is not one again."
        ),
    ] = False
    how: How | None = None
    reason: _Reason = ""
    dry_run: _DryRun = False
    accept_loss: _AcceptLoss = False
    requester: _Reference | None = None
    agent: _Agent = None


class Revert(Body, frozen=True, kw_only=True):
    """A commit to take back."""

    commit: Annotated[_Commit, Meta(description="Whose fields get their old values.")]
    how: How | None = None
    reason: _Reason = ""
    dry_run: _DryRun = False
    accept_loss: _AcceptLoss = False


class PlanOrder(Body, frozen=True, kw_only=True):
    """A new order to plan."""

    values: Mapping[str, Any]


class Decide(StrictShape, frozen=True, kw_only=True):
    """A person's decision about an order or a change."""

    decision: Literal["approve", "decline"]
    number: Annotated[
        Annotated[int, Meta(ge=1, le=999_999_999)] | None,
        Meta(description="The pull request of a change. Absent: the order itself waits."),
    ] = None
    head: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-f]{7,64}$")] | None,
        Meta(description="The head that was looked at; another one is a conflict."),
    ] = None
    reason: _Reason = ""


class Extend(Body, frozen=True, kw_only=True):
    """By how much a lease is extended."""

    by: Annotated[str, Meta(pattern=PATTERN, description="For example 90m, 8h, 30d or 4w.")]
    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    agent: _Agent = None


class EndOrder(Body, frozen=True, kw_only=True):
    """An order to end."""

    confirm: Annotated[str, Meta(max_length=63, description="The order's id, as a confirmation.")]
    repository: Annotated[
        Literal["archive", "delete"] | None, Meta(description="Absent: as the kit says.")
    ] = None
    reason: _Reason = ""
    take: Annotated[
        Mapping[str, bool],
        Meta(
            max_length=50,
            description="Resources to remove that would survive, by the names of the kit's end.",
        ),
    ] = {}
    agent: _Agent = None


class Reveal(StrictShape, frozen=True):
    """Secret outputs to reveal."""

    names: Annotated[
        tuple[Annotated[str, Meta(pattern="^[a-zA-Z0-9-]{1,40}$")], ...],
        Meta(
            min_length=1,
            max_length=20,
            description="Secret outputs, by the names in the kit.",
        ),
    ]
