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
      agents: propose              # what AI agents of its members may do: read, propose or write

Never delivered to the cluster. Without the file there are no limits. On the command line a limit is
``orders=20``, ``orders.garage=5``, ``garage.stage=stage2`` or ``cost=500EUR``. Pure;
``core.order.team_limits`` enforces it, ``flows.team.teams`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from msgspec import Meta

from ground.errors import InvalidInputError
from ground.names import TeamName
from ground.shapes import StrictShape, exact, plain
from orderkit.core.documents import read_document, write_document
from orderkit.core.platform.notification_settings import TeamNotifications

FieldBounds = Mapping[str, Mapping[str, Any]]
"""Kit -> dotted field below spec -> its maximum."""
ORDERS, COST = "orders", "cost"
AgentRight = Literal["read", "propose", "write"]

_Name = Annotated[str, Meta(min_length=1)]
_Names = Annotated[tuple[_Name, ...], Meta(extra_json_schema={"uniqueItems": True})]
_Kits = Annotated[tuple[_Name, ...], Meta(min_length=1, extra_json_schema={"uniqueItems": True})]
_Count = Annotated[int, Meta(ge=0)]
_Amount = Annotated[
    Decimal,
    Meta(
        extra_json_schema={
            "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,9})?$",
            "description": "a text: '500' or '499.50'",
        }
    ),
]
_Bounds = Annotated[Mapping[str, int | float | str], Meta(min_length=1)]


class CostLimit(StrictShape, frozen=True):
    """The most that all live orders of a team may cost a month, with what is paid up to a limit."""

    amount: _Amount
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")]

    def __str__(self) -> str:
        return f"{exact(self.amount)}{self.currency}"


class TeamLimits(StrictShape, frozen=True):
    """How much a team may order."""

    orders: _Count | None = None
    orders_of: Mapping[str, _Count] = {}
    fields: Mapping[str, _Bounds] = {}
    cost: CostLimit | None = None
    over: Literal["refuse", "ask"] = "refuse"
    """What happens to more: it is refused, or the platform team has to agree."""

    def to_json(self) -> dict[str, Any]:
        """Return the limits as in the file; empty without limits."""
        limits: dict[str, Any] = plain(self)
        return limits

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


class TeamFile(StrictShape, frozen=True):
    """The platform's decisions about a team."""

    team: TeamName
    members: _Names | None = None
    """None: membership in the forge is not managed here."""
    adopted: _Names = ()
    """Holders of access to its organisation that somebody accepted (``ports.access``)."""
    kits: _Kits = ()
    """Empty: every kit of the pack."""
    namespaces: _Names = ()
    """In addition to the team's own."""
    limits: TeamLimits = TeamLimits()
    agents: AgentRight = "propose"
    """What AI agents may do with its orders; propose: every change becomes a pull request."""
    notifications: TeamNotifications = TeamNotifications()
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
        return write_document("Team", self, named="team")


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
    file = read_document(TeamFile, data, name=name, kinds=("Team",), named="team")
    if file.team != team:
        raise InvalidInputError(f"{name}: metadata.name", file.team, "is not the team")
    file.notifications.check(f"{name}: spec.notifications")
    return file
