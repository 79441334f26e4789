"""What only the service answers; what the command line prints too is declared in the flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from ground.shapes import LEFT_OUT, Absent, Answer, Known, ObjectReference, like
from orderkit.core.kit.kit_file import How
from orderkit.core.order.order_cost import CostSums
from orderkit.core.order.order_view import OrderRow
from orderkit.flows.approval.pending import PendingApproval
from orderkit.flows.change.request import ChangedAnswer
from orderkit.flows.order.order_events import OrderEvent
from orderkit.flows.order.tracing import Node


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
