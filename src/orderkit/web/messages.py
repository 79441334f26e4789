"""
What the service is sent and what only it answers: the body of each operation, and its answers.

Answers that the command line prints too are declared in the flows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import asdict

from ground.shapes import LEFT_OUT, Absent, Answer, Known, ObjectReference, StrictShape, like
from orderkit.core.campaign.record import CampaignView
from orderkit.core.durations import PATTERN
from orderkit.core.kit.form_values import TEXT_MAX
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change.conflicts import Conflict
from orderkit.core.order.order_cost import CostSums
from orderkit.core.order.order_view import OrderRow
from orderkit.core.plan.comparison import Plan
from orderkit.core.plan.plan_json import PlanDocument, plan_document
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.approval.pending import PendingApproval
from orderkit.flows.change.request import ChangedAnswer
from orderkit.flows.order.order_objects import OrderEvent
from orderkit.flows.order.tracing import Node

Position = Annotated[
    str,
    Meta(
        max_length=64,
        description="A place among the changes: the position of GET /v1/orders, or an event's id.",
    ),
]
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


class Changed(ChangedAnswer, frozen=True, kw_only=True):
    """The outcome of a change, with a message for people and the address to look at next."""

    message: str
    url: str


class TaskDone(Answer, frozen=True, kw_only=True):
    """What a template did; `steps` and `output` are as Backstage has them."""

    template: str
    order: str | None
    created: bool
    requester: str
    requester_proof: str
    steps: Mapping[str, Any]
    output: Mapping[str, Any]


class Problem(Answer, frozen=True, kw_only=True):
    """What is wrong; of a value that is refused its field, the value and the rule too."""

    message: str
    hint: str
    field: Annotated[str | None, LEFT_OUT] = None
    value: Annotated[str | None, LEFT_OUT] = None
    rule: Annotated[str | None, LEFT_OUT] = None


class Refused(Problem, frozen=True, kw_only=True):
    """Why a request is refused. `head` is the commit that conflicts were found on."""

    problems: Annotated[tuple[Problem, ...] | None, LEFT_OUT] = None
    conflicts: Annotated[tuple[Conflict, ...] | None, LEFT_OUT] = None
    head: Absent = ""


class Error(Answer, frozen=True):
    """The answer to a request that is refused, in Backstage's shape."""

    error: Refused


class OrdersPage(Answer, frozen=True, kw_only=True):
    """Where a page of orders comes from."""

    cursor: str | None
    position: Position
    age: Annotated[float, Meta(description="For how many seconds they may be out of date.")]
    ledger: Annotated[str, Meta(description="The commit of the ledger that they are from.")]


class Orders(OrdersPage, frozen=True, kw_only=True):
    """A page of orders."""

    orders: tuple[Annotated[Mapping[str, Any], like("ListedOrder")], ...]


class Campaigns(Answer, frozen=True):
    """Campaigns, by name."""

    campaigns: tuple[CampaignView, ...]


class SettingsAnswer(Answer, frozen=True):
    """The part of an XR's ``spec`` that the YAML of an order form sets."""

    component: ClassVar[str] = "Settings"
    """Its name in OpenAPI."""
    spec: Mapping[str, Any]


class Taken(Answer, frozen=True, kw_only=True):
    """What becomes of a delivery of the forge."""

    state: Literal["queued", "waiting", "ignored"]
    repository: Absent = ""
    number: Annotated[int | None, LEFT_OUT] = None
    reason: Absent = ""


class Planned(PlanDocument, frozen=True, kw_only=True):
    """A plan of an order or a change."""

    order: str
    team: Absent = ""
    markdown: str


def planned(plan: Plan, order: str, team: str = "") -> Planned:
    """Return the answer that has a plan."""
    document = asdict(plan_document(plan))
    return Planned(**document, order=order, team=team, markdown=to_markdown(plan))


class Failing(Answer, frozen=True):
    """The first thing that fails, and why."""

    object: ObjectReference
    reason: str


class Trace(Answer, frozen=True):
    """An order's tree."""

    order: Annotated[Mapping[str, Any], like("ListedOrder")]
    tree: Node
    failing: Failing | None


class Events(Answer, frozen=True):
    """The cluster's events about an order, newest first."""

    order: str
    events: tuple[OrderEvent, ...]


class Approvals(Answer, frozen=True):
    """What waits for somebody."""

    approvals: tuple[PendingApproval, ...]


class EndStep(Answer, frozen=True):
    """A step of an end, and what it did."""

    step: str
    done: str


class End(Answer, frozen=True, kw_only=True):
    """How far an end is; what is said of it once it has ended is left out before."""

    order: str
    state: Literal["ending", "stopped", "ended", "proposed"]
    status: str
    message: str
    reason: Absent = ""
    url: Absent = ""
    """The pull request that asks for the end, if an AI agent asked."""
    steps: Annotated[tuple[EndStep, ...] | None, LEFT_OUT] = None
    ended_at: Absent = ""
    repository: Absent = ""
    gone: Annotated[tuple[ObjectReference, ...] | None, LEFT_OUT] = None
    survives: Annotated[tuple[str, ...] | None, LEFT_OUT] = None


class TakenAlong(Answer, frozen=True):
    """A resource that an end can take along, and the question that asks for it."""

    name: str
    ask: str


class EndPreview(Answer, frozen=True):
    """What an end would leave; `unread` says why that is not known."""

    order: str
    stays: tuple[str, ...] = ()
    takes: tuple[TakenAlong, ...] = ()
    repository: Literal["archive", "delete"] = "archive"
    unread: str = ""


class Gate(Answer, frozen=True):
    """Whether the user of an XR may go on."""

    kit: str
    name: str
    namespace: str
    state: Literal["open", "exhausted"]
    cause: str


class Ready(Answer, frozen=True):
    """Whether the service can work; each check says ``ok`` or what is wrong."""

    ready: bool
    checks: Mapping[str, str]
    model_age_seconds: float


class RevealedOutput(Answer, frozen=True):
    """A secret output; null: it is not there yet."""

    name: str
    value: str | None


class Revealed(Answer, frozen=True):
    """Secret outputs of an order."""

    order: str
    outputs: tuple[RevealedOutput, ...]


class ListedField(Answer, frozen=True, kw_only=True):
    """A field of a kit's form."""

    path: str
    parameter: str
    title: str
    description: str
    type: str
    required: bool
    choices: tuple[Any, ...] | None
    labels: Mapping[str, str]


class ListedChange(Answer, frozen=True):
    """A change of a kit's orders."""

    name: str
    title: str
    fields: tuple[str, ...]
    how: How
    who: tuple[str, ...]


class ListedKit(Answer, frozen=True, kw_only=True):
    """What the platform offers; `form` is the portal's page for it."""

    name: str
    title: str
    description: str
    owner: str
    tags: tuple[str, ...]
    fields: tuple[ListedField, ...]
    changes: tuple[ListedChange, ...]
    form: Known


class Kits(Answer, frozen=True):
    """All that the platform offers."""

    kits: tuple[ListedKit, ...]


class KitTeams(Answer, frozen=True):
    """The teams for which the caller may order a kit, sorted."""

    kit: str
    teams: tuple[str, ...]


class Team(Answer, frozen=True, kw_only=True):
    """A team, its limits, and its orders: those first that fail."""

    team: str
    members: tuple[str, ...] | None
    kits: tuple[str, ...] | None
    namespaces: tuple[str, ...]
    limits: Mapping[str, Any]
    costs: CostSums
    cost_excess: Known
    total: int
    phases: Mapping[str, int]
    orders: tuple[OrderRow, ...]
    more: bool
