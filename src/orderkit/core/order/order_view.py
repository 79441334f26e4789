"""
What people see of an order: the same in lists, the console, the terminal and the portal.

An `OrderRow` is made from what watches hold of the cluster and the ledger, so ten thousand of them
need no request. An `OrderView` adds what only the forge knows. Pure: ``core.order.order_summary``
makes rows, ``flows.order.viewing`` makes views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ground.objects.kube_objects import Manifest, ObjectKey
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
    own: PartState | None = None
    """Why its XR fails, by the XR's events; None if nobody asked, or they do not say."""

    @property
    def judged_parts(self) -> tuple[PartState, ...]:
        """Everything that may be why the order fails."""
        return (*self.parts, self.own) if self.own else self.parts


@dataclass(frozen=True, slots=True)
class Output:
    """A value that the order was made for, for example its URL. The kit declares it."""

    name: str
    title: str
    value: str | None
    """None: not known yet, or a secret that was not asked for."""
    is_link: bool = False
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """A value worth seeing, for example what was spent. The kit declares it."""

    name: str
    title: str
    value: str | None
    is_spend: bool = False
    """It is money that was really spent."""


@dataclass(frozen=True, slots=True)
class Attention:
    """The order is Ready, but: what somebody should look at, and the change that helps."""

    sentence: str
    change: str = ""
    """The name of a change of the kit; empty if none helps."""
    button: str = ""
    """What its button says; empty without a change."""


@dataclass(frozen=True, slots=True)
class Parts:
    """How many composed objects there are, how many of them are ready, and what fails first."""

    ready: int = 0
    total: int = 0
    failing: PartState | None = None


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One order in a list."""

    order: str
    team: str
    kit: str
    phase: Phase
    reason: str = ""
    remedy: str = ""
    since: str = ""
    """When the phase began, RFC 3339 in UTC; empty if nobody knows."""
    created: str = ""
    """When it was ordered, RFC 3339 in UTC; empty if nobody knows."""
    owner: str = ""
    """Who ordered it, a catalog reference; empty if nobody knows."""
    parts: Parts = Parts()
    outputs: tuple[Output, ...] = ()
    facts: tuple[Fact, ...] = ()
    attention: tuple[Attention, ...] = ()
    costs: OrderCost | None = None
    """What it costs a month; None: the platform has no prices, or it is not computed yet."""
    expires: str = ""
    """RFC 3339 in UTC; empty: it lives until somebody ends it."""
    lease_warning: str = ""
    """The last warning before `expires` that was recorded, as kit.yaml writes it: ``24h``."""
    approval: str = ""
    """Who has to agree before it is delivered, and why; empty: nobody, or they have agreed."""
    change_approval: str = ""
    """Which open changes of it wait for whose agreement, and why; empty: none."""
    revision: str = ""
    """The commit that Argo CD compared last."""
    delivered: str = ""
    """The newest commit whose objects Argo CD applied."""
    repository: str = ""
    """Its address for a browser."""

    @property
    def cost(self) -> str:
        """An amount for a month with its currency; empty without one."""
        return str(self.costs) if self.costs else ""

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of a row of ``GET /v1/orders``."""
        failing = self.parts.failing
        return {
            "order": self.order,
            "team": self.team,
            "kit": self.kit,
            "phase": self.phase,
            "reason": self.reason,
            "remedy": self.remedy,
            "since": self.since or None,
            "created": self.created or None,
            "owner": self.owner or None,
            "parts": {
                "ready": self.parts.ready,
                "total": self.parts.total,
                "failing": {**failing.key.to_json(), "reason": failing.reason} if failing else None,
            },
            "outputs": [
                {
                    "name": output.name,
                    "title": output.title,
                    "value": output.value,
                    "link": output.is_link,
                    "secret": output.is_secret,
                }
                for output in self.outputs
            ],
            "facts": [
                {
                    "name": fact.name,
                    "title": fact.title,
                    "value": fact.value,
                    "spend": fact.is_spend,
                }
                for fact in self.facts
            ],
            "attention": [
                {
                    "sentence": attention.sentence,
                    "change": attention.change or None,
                    "button": attention.button or None,
                }
                for attention in self.attention
            ],
            "cost": self.cost or None,
            "costs": self.costs.to_json() if self.costs else None,
            "expires": self.expires or None,
            "leaseWarning": self.lease_warning or None,
            "approval": self.approval or None,
            "changeApproval": self.change_approval or None,
            "revision": self.revision or None,
            "delivered": self.delivered or None,
            "repository": self.repository,
        }


@dataclass(frozen=True, slots=True)
class OpenPull:
    """An open pull request of the order's repository."""

    number: int
    title: str
    url: str
    requester: str
    plan: str = ""
    """The sentence of its commit status ``orderkit/plan``; empty: not planned yet."""
    plan_state: str = ""
    """``success``, ``failure``, …; empty: not planned yet."""


@dataclass(frozen=True, slots=True)
class OfferedChange:
    """A change of the kit, and whether the caller may make it."""

    name: str
    title: str
    fields: tuple[str, ...]
    how: str
    is_allowed: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class OrderView:
    """One order with everything people want to see of it."""

    row: OrderRow
    head: str = ""
    """The newest commit of its ``main``."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The XR's ``spec`` as Git has it, without what Crossplane owns."""
    pulls: tuple[OpenPull, ...] = ()
    changes: tuple[OfferedChange, ...] = ()
    last_change: Mapping[str, Any] | None = None
    """The newest entry of its history, as ``GET /v1/orders/{order}/history`` shows it."""
    findings: tuple[Mapping[str, Any], ...] = ()
    """What is wrong with the files of the head."""
    observed: tuple[ObservedPart, ...] = ()
    """What the order observes in the cloud and does not manage."""

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of ``GET /v1/orders/{order}/view``."""
        return {
            **self.row.to_json(),
            "head": self.head or None,
            "values": dict(self.values),
            "pulls": [
                {
                    "number": pull.number,
                    "title": pull.title,
                    "url": pull.url,
                    "requester": pull.requester,
                    "plan": pull.plan or None,
                    "planState": pull.plan_state or None,
                }
                for pull in self.pulls
            ],
            "changes": [
                {
                    "name": change.name,
                    "title": change.title,
                    "fields": list(change.fields),
                    "how": change.how,
                    "allowed": change.is_allowed,
                    "whyNot": change.why_not or None,
                }
                for change in self.changes
            ],
            "lastChange": dict(self.last_change) if self.last_change else None,
            "findings": [dict(entry) for entry in self.findings],
            "observed": [observed_part.to_json() for observed_part in self.observed],
        }
