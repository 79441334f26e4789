"""
``data/<team>/team.yaml`` of the ledger: the members of a team, and how much it may order.

    spec:
      members: [alice, bob]        # logins of the forge; absent: not managed
      adopted: [carol]             # who may own its organisation besides our account
      kits: [garage]               # absent: every kit of the pack
      namespaces: [shop]           # in addition to its own, for namespaced XRs
      limits:
        orders: 20                 # live orders of the team
        ordersOf: {garage: 5}      # of one kit
        fields:                    # the maximum of a field
          garage: {stage: stage2}
        cost: {amount: '500', currency: EUR}   # of all its live orders together, a month
        over: ask                  # more needs approval by the platform team; absent: refused

Never delivered to the cluster. Without the file there are no limits. On the command line a limit is
``orders=20``, ``orders.garage=5``, ``garage.stage=stage2`` or ``cost=500EUR``. Pure;
``core.order.team_limits`` enforces it, ``flows.team.teams`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Literal

from ground.errors import InvalidInputError
from ground.names import TeamName
from orderkit.core.order.order_cost import exact
from orderkit.core.platform.notification_settings import (
    TEAM_SCHEMA,
    TeamNotifications,
    read_team_notifications,
)
from yamlfiles import yaml11
from yamlfiles.documents import API_VERSION

FieldBounds = Mapping[str, Mapping[str, Any]]
"""Kit -> dotted field below spec -> its maximum."""
ORDERS, COST = "orders", "cost"

_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}
_COUNT = {"type": "integer", "minimum": 0}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": "Team"},
        "metadata": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
        },
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "members": _NAMES,
                "adopted": _NAMES,
                "kits": {**_NAMES, "minItems": 1},
                "namespaces": _NAMES,
                "notifications": TEAM_SCHEMA,
                "limits": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "over": {"enum": ["refuse", "ask"]},
                        "orders": _COUNT,
                        "cost": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["amount", "currency"],
                            "properties": {
                                "amount": {
                                    "type": "string",
                                    "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,9})?$",
                                    "description": "a text: '500' or '499.50'",
                                },
                                "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
                            },
                        },
                        "ordersOf": {"type": "object", "additionalProperties": _COUNT},
                        "fields": {
                            "type": "object",
                            "additionalProperties": {
                                "type": "object",
                                "minProperties": 1,
                                "additionalProperties": {"type": ["number", "string"]},
                            },
                        },
                    },
                },
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class CostLimit:
    """The most that all live orders of a team may cost a month, with what is paid up to a limit."""

    amount: Decimal
    currency: str

    def __str__(self) -> str:
        return f"{exact(self.amount)}{self.currency}"


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """How much a team may order."""

    orders: int | None = None
    orders_of: Mapping[str, int] = field(default_factory=dict)
    fields: FieldBounds = field(default_factory=dict)
    cost: CostLimit | None = None
    over: Literal["refuse", "ask"] = "refuse"
    """What happens to more: it is refused, or the platform team has to agree."""

    def to_json(self) -> dict[str, Any]:
        """Return the limits as in the file; empty without limits."""
        entries: dict[str, Any] = {}
        if self.orders is not None:
            entries["orders"] = self.orders
        if self.orders_of:
            entries["ordersOf"] = dict(sorted(self.orders_of.items()))
        if self.fields:
            entries["fields"] = {
                kit: dict(sorted(b.items())) for kit, b in sorted(self.fields.items())
            }
        if self.cost is not None:
            entries["cost"] = {"amount": exact(self.cost.amount), "currency": self.cost.currency}
        if self.over != "refuse":
            entries["over"] = self.over
        return entries

    def texts(self) -> tuple[str, ...]:
        """Return the limits in the syntax of the command line."""
        orders = [] if self.orders is None else [f"{ORDERS}={self.orders}"]
        of = [f"{ORDERS}.{kit}={count}" for kit, count in sorted(self.orders_of.items())]
        fields = [
            f"{kit}.{path}={bound}"
            for kit, bounds in sorted(self.fields.items())
            for path, bound in sorted(bounds.items())
        ]
        cost = [] if self.cost is None else [f"{COST}={self.cost}"]
        over = ["over=ask"] if self.over == "ask" else []
        return (*orders, *of, *fields, *cost, *over)


@dataclass(frozen=True, slots=True)
class TeamFile:
    """The platform's decisions about a team."""

    team: TeamName
    members: tuple[str, ...] | None = None
    """None: membership in the forge is not managed here."""
    adopted: tuple[str, ...] = ()
    """Holders of access to its organisation that somebody accepted (``ports.access``)."""
    kits: tuple[str, ...] = ()
    """Empty: every kit of the pack."""
    namespaces: tuple[str, ...] = ()
    """In addition to the team's own."""
    limits: TeamLimits = field(default_factory=TeamLimits)
    notifications: TeamNotifications = field(default_factory=TeamNotifications)
    """Beside those that platform.yaml routes."""

    @property
    def is_plain(self) -> bool:
        """Whether there are no decisions, so that no file is needed."""
        return self == TeamFile(self.team)

    def may_order(self, kit: str) -> bool:
        """Say whether the team may order a kit at all."""
        return not self.kits or kit in self.kits

    def to_yaml(self) -> str:
        """Write the file."""
        spec: dict[str, Any] = {}
        if self.members is not None:
            spec["members"] = list(self.members)
        if self.adopted:
            spec["adopted"] = list(self.adopted)
        if self.kits:
            spec["kits"] = list(self.kits)
        if self.namespaces:
            spec["namespaces"] = list(self.namespaces)
        if limits := self.limits.to_json():
            spec["limits"] = limits
        if self.notifications.spec:
            spec["notifications"] = dict(self.notifications.spec)
        head = {"apiVersion": API_VERSION, "kind": "Team", "metadata": {"name": self.team}}
        return yaml11.dump({**head, "spec": spec})


def _cost_limit(entry: Mapping[str, str] | None) -> CostLimit | None:
    return CostLimit(Decimal(entry["amount"]), entry["currency"]) if entry else None


def path_of(team: TeamName) -> PurePosixPath:
    """Return the path of a team's file in the ledger."""
    return PurePosixPath("data", team, "team.yaml")


def parse(data: str | bytes, *, team: TeamName) -> TeamFile:
    """
    Read the file.

    Raises:
        InvalidInputError: The schema refuses a key or value, or the file names another team.
    """
    name = str(path_of(team))
    document = yaml11.load(data, name=name, schema=SCHEMA)
    if document["metadata"]["name"] != team:
        raise InvalidInputError(
            f"{name}: metadata.name", document["metadata"]["name"], "is not the team"
        )
    spec = document["spec"]
    limits = spec.get("limits", {})
    return TeamFile(
        team=team,
        members=tuple(spec["members"]) if "members" in spec else None,
        adopted=tuple(spec.get("adopted", ())),
        kits=tuple(spec.get("kits", ())),
        namespaces=tuple(spec.get("namespaces", ())),
        limits=TeamLimits(
            limits.get("orders"),
            limits.get("ordersOf", {}),
            limits.get("fields", {}),
            _cost_limit(limits.get("cost")),
            limits.get("over", "refuse"),
        ),
        notifications=read_team_notifications(
            spec.get("notifications", {}), field_name=f"{name}: spec.notifications"
        ),
    )
