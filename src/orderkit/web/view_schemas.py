"""
JSON Schemas of lists and views of orders, of kits and of teams.

They stand under ``components`` beside those of ``request_schemas``. Used by ``operation_table`` and
``openapi``.
"""

from __future__ import annotations

from typing import Any, get_args

from ground.shapes import answer_schemas
from orderkit.core.campaign.view import CampaignView
from orderkit.core.order.order_selection import CURSOR_MAX, SORTS
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import ListedOrder, OrderRow, OrderView
from orderkit.web.request_schemas import (
    FLAG,
    LABEL,
    TEXT,
    closed,
    every,
    listed,
    named,
    nullable,
)

_PHASE = "|".join(get_args(Phase))
ORDER_QUERY: dict[str, dict[str, Any]] = {
    "team": LABEL,
    "kit": LABEL,
    "owner": {
        "type": "string",
        "pattern": "^[-A-Za-z0-9_.@+:/]{1,253}$",
        "description": "Who ordered it: a catalog reference, or its name alone.",
    },
    "phase": {
        "type": "string",
        "pattern": rf"^({_PHASE})(,({_PHASE}))*$",
        "description": "One phase, or several with commas.",
    },
    "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "description": "In the id, team, kit, owner, reason or an output; any case.",
    },
    "sort": {
        "type": "string",
        "pattern": f"^-?({'|'.join(SORTS)})$",
        "description": "phase: the most urgent first; with '-' the other way round.",
    },
    "limit": {"type": "string", "pattern": "^([1-9][0-9]{0,2}|1000)$"},
    "cursor": {
        "type": "string",
        "pattern": "^[-_A-Za-z0-9]+$",
        "maxLength": CURSOR_MAX,
        "description": "Where the page before ended, as its answer says. Opaque.",
    },
}
_MOMENT = {
    "type": "string",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$",
    "description": "A day or a time, in UTC.",
}
STATEMENT_QUERY: dict[str, dict[str, Any]] = {
    "since": {**_MOMENT, "description": "Default: the first day of this month, in UTC."},
    "until": {**_MOMENT, "description": "Excluded. Default, and at most: now."},
    "kit": LABEL,
}
OUTPUTS = closed(
    ["names"],
    names={
        "type": "array",
        "items": {"type": "string", "pattern": "^[a-zA-Z0-9-]{1,40}$"},
        "minItems": 1,
        "maxItems": 20,
        "description": "Secret outputs, by the names in the kit.",
    },
)
COST_SUMS = every(
    sums=listed(
        every(
            currency=TEXT,
            monthly=TEXT,
            upTo=TEXT,
            orders={"type": "integer"},
            partlyKnown={"type": "integer"},
        )
    ),
    notKnown={"type": "integer"},
)
_ANSWERS = answer_schemas([OrderRow, ListedOrder, OrderView, CampaignView])
VIEW_COMPONENTS: dict[str, dict[str, Any]] = {
    **_ANSWERS,
    "Campaigns": every(campaigns=listed(named("CampaignView"))),
    "Revealed": every(order=TEXT, outputs=listed(every(name=TEXT, value=nullable(TEXT)))),
    "Kits": every(
        kits=listed(
            every(
                name=TEXT,
                title=TEXT,
                description=TEXT,
                owner=TEXT,
                tags=listed(TEXT),
                fields=listed(
                    every(
                        path=TEXT,
                        parameter=TEXT,
                        title=TEXT,
                        description=TEXT,
                        type=TEXT,
                        required=FLAG,
                        choices=nullable(listed({})),
                    )
                ),
                changes=listed(
                    every(
                        name=TEXT,
                        title=TEXT,
                        fields=listed(TEXT),
                        how={"enum": ["direct", "review"]},
                        who=listed(TEXT),
                    )
                ),
                form=nullable(TEXT),
            )
        )
    ),
    "Statement": every(
        since=TEXT,
        until=TEXT,
        sums=listed(
            every(
                team=TEXT,
                kit=TEXT,
                currency=nullable(TEXT),
                orders={"type": "integer"},
                seconds={"type": "integer"},
                amount=TEXT,
                amountUpTo=TEXT,
                notKnownSeconds={"type": "integer"},
                partlyKnownSeconds={"type": "integer"},
                claimedSeconds={"type": "integer"},
                notKnown=listed(TEXT),
                stale=listed(TEXT),
            )
        ),
        intervals=listed(
            every(
                team=TEXT,
                kit=TEXT,
                order=TEXT,
                begin=TEXT,
                end=TEXT,
                seconds={"type": "integer"},
                **_ANSWERS["OrderCost"]["properties"],
                hoursPerMonth={"type": "integer"},
                amount=nullable(TEXT),
                amountUpTo=TEXT,
                claimedTime=FLAG,
            )
        ),
        measured=listed(every(team=TEXT, kit=TEXT, order=TEXT, title=TEXT, value=TEXT)),
    ),
    "Team": every(
        team=TEXT,
        members=nullable(listed(TEXT)),
        kits=nullable(listed(TEXT)),
        namespaces=listed(TEXT),
        limits={"type": "object"},
        costs=COST_SUMS,
        costExcess=nullable(TEXT),
        total={"type": "integer"},
        phases={"type": "object", "additionalProperties": {"type": "integer"}},
        orders=listed(named("OrderRow")),
        more=FLAG,
    ),
}
