"""
JSON Schemas of lists and views of orders, of kits and of teams.

They stand under ``components`` beside those of ``request_schemas``. Used by ``operation_table`` and
``openapi``.
"""

from __future__ import annotations

from typing import Any, get_args

from ground.shapes import answer_schemas
from orderkit.core.order.order_selection import CURSOR_MAX, SORTS
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import ListedOrder, OrderRow, OrderView
from orderkit.core.plan.cost_statement import StatementAnswer
from orderkit.web.answers import Kits, Revealed, Team
from orderkit.web.request_schemas import (
    LABEL,
    closed,
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
VIEW_COMPONENTS = answer_schemas(
    [OrderRow, ListedOrder, OrderView, Revealed, Kits, StatementAnswer, Team]
)
