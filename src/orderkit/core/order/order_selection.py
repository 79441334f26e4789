"""
Select, sort and page rows of orders: the same in the service, the console and the terminal.

Pure. A cursor names the last row of a page by its sort key and its id, not by a number: orders that
appear, change or end between two pages neither repeat a row nor hide one, unless the row itself
moved.
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
from typing import Any, TypeVar

from ground.errors import InvalidInputError, NotFoundError
from ground.names import fold_reference
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import OrderRow

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
    "expires": lambda row: row.expires or "~",
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
