"""
What people see of an order: the same in lists, the console, the terminal and the portal.

The classes of answers are what the service, the command line and the portal have in JSON. An
`OrderRow` is made from what watches hold of the cluster and the ledger, so ten thousand of them
need no request. An `OrderView` adds what only the forge knows. Pure: ``core.order.order_summary``
makes rows, ``flows.order.viewing`` makes views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import force_setattr

from ground.argocd.delivery_hindrances import Hindrance
from ground.objects.kube_objects import Manifest, ObjectKey
from ground.shapes import Answer, Known, LocatedAnswer, ObjectReference, like
from orderkit.core.kit.kit_file import How
from orderkit.core.order.added_documents import INTACT, LedgerFile
from orderkit.core.order.damage import CommitCheck
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.observed_parts import ObservedPart
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_state import Phase


@dataclass(frozen=True, slots=True)
class PartState:
    """One composed object. `synced` and `ready` are "True", "False", "Unknown" or "-"."""

    key: ObjectKey
    synced: str
    ready: str
    reason: str = ""
    """Why it is not ready; empty if it is, or if nobody knows. May hold a Secret's value."""
    fails_from: str = ""
    """When `reason` begins to count as a failure, RFC 3339; empty: it passes by itself."""


@dataclass(frozen=True, slots=True)
class OrderSources:
    """What a row is made of. Nothing in it is masked yet."""

    entry: OrderEntry
    ending: bool
    application: Manifest | None
    xr: Manifest | None
    """The order's own XR; None if the cluster has none."""
    parts: tuple[PartState, ...] = ()
    """What its XR, and XRs below it, compose."""
    owner: str = ""
    """Who ordered it by the ledger's history, which counts only if its Application is silent."""
    approval: str = ""
    """Who has to agree before it is delivered, and why; empty: nobody."""
    change_approval: str = ""
    """Which open changes of it wait for whose agreement, and why; empty: none."""
    undelivered: Hindrance | None = None
    """Why what is on its protected main is not delivered; None: it is, or nobody looked."""
    check: CommitCheck | None = None
    """What is wrong with the files of its main; None: nobody looked."""
    has_original: bool | None = None
    """Whether the ledger has the order that its Application's labels name; None: not known."""
    file: LedgerFile = INTACT
    """What somebody made of its file in the ledger, as far as somebody looked."""
    own: PartState | None = None
    """Why its XR fails, by the XR's events; None if nobody asked, or they do not say."""

    @property
    def judged_parts(self) -> tuple[PartState, ...]:
        """Everything that may be why the order fails."""
        return (*self.parts, self.own) if self.own else self.parts


class Output(Answer, frozen=True):
    """A value that the order was made for, for example its URL. The kit declares it."""

    name: str
    title: str
    value: str | None
    """None: not known yet, or a secret that was not asked for."""
    is_link: bool = field(default=False, name="link")
    is_secret: bool = field(default=False, name="secret")


class Fact(Answer, frozen=True):
    """A value worth seeing, for example what was spent. The kit declares it."""

    name: str
    title: str
    value: str | None
    is_spend: bool = field(default=False, name="spend")
    """It is money that was really spent."""


class Attention(Answer, frozen=True):
    """The order is Ready, but: what somebody should look at, and the change that helps."""

    sentence: str
    change: Known = ""
    """The name of a change of the kit; empty if none helps."""
    button: Known = ""
    """What its button says; empty without a change."""


class FailingPart(LocatedAnswer, frozen=True, kw_only=True):
    """The composed object that fails first, and why."""

    reason: str


class Parts(Answer, frozen=True):
    """How many composed objects there are, how many of them are ready, and what fails first."""

    ready: int = 0
    total: int = 0
    failing: FailingPart | None = None


class OrderRow(Answer, frozen=True):
    """One order in a list."""

    order: str
    team: str
    kit: str
    phase: Phase
    reason: str = ""
    remedy: str = ""
    since: Known = ""
    """When the phase began, RFC 3339 in UTC."""
    created: Known = ""
    """When it was ordered, RFC 3339 in UTC."""
    owner: Known = ""
    """Who ordered it, a catalog reference."""
    parts: Parts = Parts()
    outputs: tuple[Output, ...] = ()
    facts: tuple[Fact, ...] = ()
    attention: tuple[Attention, ...] = ()
    cost: Known = ""
    """`costs` in words."""
    costs: OrderCost | None = None
    """What it costs a month; None: the platform has no prices, or it is not computed yet."""
    expires: Known = ""
    """RFC 3339 in UTC; empty: it lives until somebody ends it."""
    lease_warning: Known = ""
    """The last warning before `expires` that was recorded, as kit.yaml writes it: ``24h``."""
    approval: Known = ""
    """Who has to agree before it is delivered, and why; empty: nobody, or they have agreed."""
    change_approval: Known = ""
    """Which open changes of it wait for whose agreement, and why; empty: none."""
    revision: Known = ""
    """The commit that Argo CD compared last."""
    delivered: Known = ""
    """The newest commit whose objects Argo CD applied."""
    repository: str = ""
    """Its address for a browser."""

    def __post_init__(self) -> None:
        force_setattr(self, "cost", str(self.costs) if self.costs else "")


class ListedOrder(OrderRow, frozen=True, kw_only=True):
    """A row with what scripts ask of each order."""

    ready: bool
    advice: str
    head: Known = ""
    """The newest commit of its ``main``."""
    findings: tuple[Annotated[Mapping[str, Any], like("Finding")], ...] = ()
    """What is wrong with the files of the head."""
    xr: ObjectReference | None = None


class OpenPull(Answer, frozen=True):
    """An open pull request of the order's repository."""

    number: int
    title: str
    url: str
    requester: str
    plan: Known = ""
    """The sentence of its commit status ``orderkit/plan``; empty: not planned yet."""
    plan_state: Known = ""
    """``success``, ``failure``, …; empty: not planned yet."""


class OfferedChange(Answer, frozen=True):
    """A change of the kit, and whether the caller may make it."""

    name: str
    title: str
    fields: tuple[str, ...]
    how: How
    is_allowed: bool = field(name="allowed")
    why_not: Known = ""


class OrderView(OrderRow, frozen=True, kw_only=True):
    """One order with everything people want to see of it."""

    head: Known = ""
    """The newest commit of its ``main``."""
    values: Mapping[str, Any] = {}
    """The XR's ``spec`` as Git has it, without what Crossplane owns."""
    pulls: tuple[OpenPull, ...] = ()
    changes: tuple[OfferedChange, ...] = ()
    last_change: Annotated[Mapping[str, Any], like("HistoryEntry")] | None = None
    """
    The newest entry of its history that is no note of the lease.

    As ``GET /v1/orders/{order}/history`` shows it.
    """
    findings: tuple[Annotated[Mapping[str, Any], like("Finding")], ...] = ()
    """What is wrong with the files of the head."""
    observed: tuple[ObservedPart, ...] = ()
    """What the order observes in the cloud and does not manage."""
