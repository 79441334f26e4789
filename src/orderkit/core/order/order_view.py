"""
What people see of an order, and how rows are selected: the same wherever they look.

The classes of answers are what the service, the command line and the portal have in JSON. An
`OrderRow` is made from what watches hold of the cluster and the ledger, so ten thousand of them
need no request. An `OrderView` adds what only the forge knows. ``core.order.order_summary`` makes
rows, ``flows.order.viewing`` makes views.

Lists, the console and the terminal select, sort and page rows in the same way. A cursor names the
last row of a page by its sort key and its id, not by a number: orders that appear, change or end
between two pages neither repeat a row nor hide one, unless the row itself moved. Pure.
"""

from __future__ import annotations

import base64
import binascii
import heapq
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Any, TypeVar

from msgspec import field
from msgspec.structs import force_setattr

from ground.argocd.delivery_obstacles import Obstacle
from ground.errors import InvalidInputError, NotFoundError
from ground.names import fold_reference
from ground.objects.kube_objects import Manifest, ObjectKey
from ground.shapes import Answer, Known, LocatedAnswer, ObjectReference, like
from kubeschema.validate.findings import FindingAnswer
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
    undelivered: Obstacle | None = None
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
    findings: tuple[FindingAnswer, ...] = ()
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
    findings: tuple[FindingAnswer, ...] = ()
    """What is wrong with the files of the head."""
    observed: tuple[ObservedPart, ...] = ()
    """What the order observes in the cloud and does not manage."""


LIMIT_MAX = 1_000
"""Rows of one page."""
CURSOR_MAX = 2_000
PHASES_BY_URGENCY: tuple[Phase, ...] = (
    "Failing", "Attention", "Waiting", "Delivering", "Assembling", "Written", "Ending", "Ready",
    "Ended",
)  # fmt: skip
_URGENCY: Mapping[str, str] = {phase: str(n) for n, phase in enumerate(PHASES_BY_URGENCY)}
SORTS: Mapping[str, Callable[[OrderRow], str]] = {
    "team": lambda row: row.team,
    "order": lambda row: row.order,
    "kit": lambda row: row.kit,
    "owner": lambda row: row.owner,
    "phase": lambda row: _URGENCY[row.phase],
    "since": lambda row: row.since,
    "created": lambda row: row.created,
    "expires": lambda row: row.expires or "~",  # orders without an expiry last
    "cost": lambda row: _amount_key(row.costs),
}
"""What rows can be sorted by; ``-since`` sorts the other way. Equal ones are sorted by id."""
_PLACE = itemgetter(0, 1)
_AMOUNT_DIGITS = 60
_Entry = TypeVar("_Entry")


def _amount_key(cost: OrderCost | None) -> str:
    """Return a text that sorts as the amount does; what is not known comes first."""
    amount = cost.most if cost else None
    return "" if amount is None else f"{amount:0{_AMOUNT_DIGITS}.18f}"


@dataclass(frozen=True, slots=True)
class OrderQuery:
    """What somebody wants to see. Empty fields select everything."""

    team: str = ""
    kit: str = ""
    owner: str = ""
    """A catalog reference, ``user:default/eve``, or its end, ``eve``."""
    phase: Collection[str] = ()
    text: str = ""
    """Stands in the id, the team, the kit, the owner, the reason or an output; any case."""
    sort: str = "team"
    limit: int | None = None
    """Rows of a page; None: all."""
    cursor: str = ""
    """Where the page before ended."""


def select(rows: Iterable[OrderRow], query: OrderQuery) -> tuple[list[OrderRow], str]:
    """
    Return the rows of a page, and the cursor of the next page; empty if this is the last.

    Raises:
        InvalidInputError: Orders cannot be sorted like this.
        NotFoundError: The cursor is not one of this sorting.
    """
    return select_by(rows, query, lambda row: row)


def select_by(
    entries: Iterable[_Entry],
    query: OrderQuery,
    row_of: Callable[[_Entry], OrderRow],
    *,
    are_by_team: bool = False,
) -> tuple[list[_Entry], str]:
    """
    Return a page of what has rows, as `select` does.

    Args:
        entries: All there are.
        query: What to select.
        row_of: Returns the row of one.
        are_by_team: They are sorted by team and id: those after the page are not looked at.
    """
    sort_key, is_reversed = _sorting(query.sort)
    after = _position(query) if query.cursor else None
    limit, is_sorted = query.limit, are_by_team and query.sort == "team"
    chosen: list[tuple[str, str, _Entry]] = []
    filters = any((query.team, query.kit, query.owner, query.phase, query.text))
    for entry in entries:
        row = row_of(entry)
        if not filters or matches(row, query):
            place = (sort_key(row), row.order)
            if after is None or (place < after if is_reversed else place > after):
                chosen.append((*place, entry))
                if is_sorted and len(chosen) - 1 == limit:
                    break
    if limit is None or len(chosen) <= limit:
        chosen.sort(key=_PLACE, reverse=is_reversed)
        return [entry for *_, entry in chosen], ""
    first = heapq.nlargest if is_reversed else heapq.nsmallest
    page = first(limit, chosen, key=_PLACE)
    return [entry for *_, entry in page], _cursor(query.sort, page[-1])


def matches(row: OrderRow, query: OrderQuery) -> bool:
    """Say whether a query selects a row."""
    return (
        (not query.team or row.team == query.team)
        and (not query.kit or row.kit == query.kit)
        and (not query.phase or row.phase in query.phase)
        and (not query.owner or is_person(row.owner, query.owner))
        and (not query.text or _has_text(row, query.text.casefold()))
    )


def counts(rows: Iterable[OrderRow]) -> dict[str, int]:
    """Return how many orders are in each phase, the most urgent phase first."""
    numbers = Counter(row.phase for row in rows)
    return {phase: numbers[phase] for phase in PHASES_BY_URGENCY if numbers[phase]}


def is_person(owner: str, asked_owner: str) -> bool:
    """Say whether a catalog reference is the one that was asked for, or ends with it."""
    reference, asked = fold_reference(owner), fold_reference(asked_owner)
    return reference == asked or reference.endswith(f"/{asked}")


def _has_text(row: OrderRow, text: str) -> bool:
    texts = (row.order, row.team, row.kit, row.owner, row.reason)
    return any(text in part.casefold() for part in texts) or any(
        text in output.value.casefold() for output in row.outputs if output.value
    )


def _sorting(sort: str) -> tuple[Callable[[OrderRow], str], bool]:
    key = SORTS.get(sort.removeprefix("-"))
    if key is None:
        hint = f"one of {', '.join(SORTS)}; with '-' before it the other way round"
        raise InvalidInputError("sort", sort, "is not what orders can be sorted by", hint=hint)
    return key, sort.startswith("-")


def _cursor(sort: str, last: tuple[str, str, object]) -> str:
    text = json.dumps([sort, *last[:2]], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _position(query: OrderQuery) -> tuple[str, str]:
    try:
        text = base64.b64decode(query.cursor + "=" * (-len(query.cursor) % 4), b"-_", validate=True)
        place: Any = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        place = None
    is_place = isinstance(place, list) and [type(part) for part in place] == [str, str, str]
    if not is_place or place[0] != query.sort:
        raise NotFoundError(
            f"no page of a list sorted by '{query.sort}' begins at cursor '{query.cursor[:40]}'",
            hint="ask for the first page again, without a cursor",
        )
    return place[1], place[2]
