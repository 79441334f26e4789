"""
A plan for many orders as Markdown: a comment on a pull request of the pack.

It begins with a one-line summary, then lists refusals and dangers, then every change once with the
number of orders affected. Its length is limited like that of a plan for one order.
"""

from __future__ import annotations

from ground.visible_text import visible
from orderkit.core.order.change import shown
from orderkit.core.plan.fleet_plan import (
    FleetCosts,
    FleetPlan,
    Fold,
    OrderVerdict,
    counted,
    folds,
    of_categories,
)
from orderkit.core.plan.plan_markdown import in_html, plain_line

MAX_FOLDS = 100
_FIELDS_MAX = 20
_NAMED = 10


def fleet_markdown(fleet: FleetPlan) -> str:
    """Return the plan as Markdown, limited in length. Deterministic."""
    all_folds = folds(fleet)
    parts = [f"**Plan for {', '.join(fleet.kits)}: {fleet.summary}.**"]
    parts.append(f"From {_code(fleet.base.title)} to {_code(fleet.candidate.title)}.")
    parts += _list("Would be refused:", of_categories(all_folds, "fault"))
    parts += _list("Refused by both packs:", of_categories(all_folds, "standing-fault"))
    parts += _list("Dangers:", of_categories(all_folds, "danger"))
    parts += _list("Accepted by the kit:", of_categories(all_folds, "accepted"))
    parts += _list("Paused:", of_categories(all_folds, "paused"))
    parts += _list("Not affected: pinned:", of_categories(all_folds, "pinned"))
    parts += _defaults(fleet)
    parts += _changes(of_categories(all_folds, "resource", "field", "status"))
    parts += _unread(fleet)
    parts += _list(
        "Not known:", [f for f in of_categories(all_folds, "unknown") if not _is_unread(f, fleet)]
    )
    parts += _costs(costs) if (costs := fleet.costs) else []
    parts += ["\n".join(f"- {plain_line(text)}" for text in fleet.notes)] if fleet.notes else []
    return "\n\n".join(parts)


def _costs(costs: FleetCosts) -> list[str]:
    table = costs.sums.table
    rows = [f"Not priced: {plain_line(', '.join(costs.unpriced))}."] if costs.unpriced else []
    rows += [f"Not calculated: {plain_line(text)}." for text in costs.unread[:MAX_FOLDS]]
    hidden_count = len(costs.unread) - MAX_FOLDS
    rows += [f"And {hidden_count:,} more amounts are not calculated."] if hidden_count > 0 else []
    rows.append(plain_line(f"Prices: {table.origin}."))
    body = "\n".join(f"- {row}" for row in rows)
    return [f"<details><summary>Costs: {in_html(costs.summary)}</summary>\n\n{body}\n\n</details>"]


def _list(title: str, folds_shown: tuple[Fold, ...] | list[Fold]) -> list[str]:
    if not folds_shown:
        return []
    rows = [
        f"- {plain_line(fold.title)}{f' ({fold.code})' if fold.code else ''}: {_orders(fold)}"
        for fold in folds_shown[:MAX_FOLDS]
    ]
    rows += [f"- and {len(folds_shown) - MAX_FOLDS:,} more"] if len(folds_shown) > MAX_FOLDS else []
    return ["\n".join([title, "", *rows])]


def _orders(fold: Fold) -> str:
    return f"{counted(fold.count)} ({plain_line(fold.examples())})"


def _defaults(fleet: FleetPlan) -> list[str]:
    rows = [
        f"- {_code(default.path)} {_code(shown(default.old))} → {_code(shown(default.new))}: "
        f"{counted(default.orders)} keep the old value; only new orders get the new one"
        for default in fleet.defaults
    ]
    return ["\n".join(["Defaults that change:", "", *rows])] if rows else []


def _changes(changes: tuple[Fold, ...]) -> list[str]:
    parts = []
    for fold in changes[:MAX_FOLDS]:
        sign = fold.action.sign if fold.action else "~"
        prefix = {"field": "spec.", "status": "status."}.get(fold.category, "")
        head = f"<code>{sign} {in_html(prefix + fold.title)}</code> {in_html(_orders(fold))}"
        rows = [f"- {_code(str(field))}" for field in fold.fields[:_FIELDS_MAX]]
        hidden_count = len(fold.fields) - _FIELDS_MAX
        rows += [f"- and {hidden_count} more"] if hidden_count > 0 else []
        body = "\n".join(rows) or f"all: {plain_line(fold.examples(_NAMED))}"
        parts.append(f"<details><summary>{head}</summary>\n\n{body}\n\n</details>")
    hidden_count = len(changes) - MAX_FOLDS
    return parts + (
        [f"{hidden_count:,} more changes are not shown here."] if hidden_count > 0 else []
    )


def _unread(fleet: FleetPlan) -> list[str]:
    missing = fleet.of(OrderVerdict.UNKNOWN)
    rows = [f"- {_code(order.order)} {plain_line(order.why_not)}" for order in missing[:MAX_FOLDS]]
    hidden_count = len(missing) - MAX_FOLDS
    rows += [f"- and {hidden_count:,} more"] if hidden_count > 0 else []
    return ["\n".join(["No plan of these orders:", "", *rows])] if rows else []


def _is_unread(fold: Fold, fleet: FleetPlan) -> bool:
    unread = {order.order for order in fleet.of(OrderVerdict.UNKNOWN)}
    return unread.issuperset(fold.orders)


def _code(text: str) -> str:
    return f"`{visible(' '.join(text.split())).replace('`', chr(39))}`"
