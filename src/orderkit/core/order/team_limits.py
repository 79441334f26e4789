"""
Check an order or a change against its team's limits, and parse limits from the command line.

Enums compare by their position in the XRD's list, numbers by size, texts as quantities (``10Gi``).
A value that was above a bound before the bound was set may stay or shrink.

Which orders count is decided by ``core.order.ledger.living_orders``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from ground.errors import InvalidInputError, RefusedError, UsageError, raise_problems
from ground.names import OrderId, TeamName
from ground.objects import quantities
from ground.objects.quantities import NoQuantity, Unsure
from ground.shapes import changed
from ground.suggestions import did_you_mean
from kubeschema.field_paths import schema_at, value_at
from kubeschema.validate.object_check import shown
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger
from orderkit.core.order.order_cost import OrderCost, add_up, money
from orderkit.core.order.team_file import COST, ORDERS, CostLimit, TeamFile, TeamLimits

_NUMBERS = ("integer", "number")
_COST_TEXT = re.compile(r"((?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,9})?) ?([A-Z]{3}|)", re.ASCII)


def check_kit(team: TeamFile, kit: str) -> None:
    """
    Check that a team may order a kit.

    Raises:
        RefusedError: It may not order this kit.
    """
    if not team.may_order(kit):
        raise RefusedError(
            f"team {team.team} may not order kit '{kit}', only {', '.join(team.kits)}",
            hint="ask the platform team to allow it: "
            f"orderkit team change {team.team} --kit {' --kit '.join((*team.kits, kit))}",
        )


def check_count(team: TeamFile, kit: str, living: Iterable[OrderId], kits: Iterable[str]) -> None:
    """
    Check that a team may have one more order of a kit.

    Args:
        living: The orders it has.
        kits: Names of all kits, to recognise the kit of an order by its id.

    Raises:
        RefusedError: The limit is reached, and the team may not ask for more.
    """
    excess = count_excess(team, kit, living, kits)
    if excess and team.limits.over == "refuse":
        raise excess


def count_excess(
    team: TeamFile, kit: str, living: Iterable[OrderId], kits: Iterable[str]
) -> RefusedError | None:
    """Return why a team has as many orders as it may; None if it has not. As `check_count`."""
    limits, orders = team.limits, list(living)
    if limits.orders is not None and len(orders) >= limits.orders:
        return _limit_reached(team, f"{limits.orders} orders", f"{ORDERS}=…")
    maximum, names = limits.orders_of.get(kit), {*kits, kit}
    if maximum is None:
        return None
    if sum(ledger.named_kit(order, names) == kit for order in orders) < maximum:
        return None
    return _limit_reached(team, f"{maximum} orders of kit '{kit}'", f"{ORDERS}.{kit}=…")


def is_counted(team: TeamFile, kit: str) -> bool:
    """Say whether a new order of the kit has to be counted."""
    return team.limits.orders is not None or kit in team.limits.orders_of


def _limit_reached(team: TeamFile, maximum: str, option: str) -> RefusedError:
    return RefusedError(
        f"team {team.team} has reached its limit of {maximum}",
        hint="end an order that is not needed (orderkit list), or ask the platform team: "
        f"orderkit team change {team.team} --limit {option}",
    )


def check_values(team: TeamFile, kit: Kit, spec: Any, *, before: Any = None) -> None:
    """
    Check an XR's spec against the bounds of its team.

    Args:
        before: The spec before the change; None for a new order.

    Raises:
        RefusedError: A field is above its bound, and above its value before, and the team may not
            ask for more.
    """
    if team.limits.over == "refuse":
        raise_problems(value_excesses(team, kit, spec, before=before))


def value_excesses(
    team: TeamFile, kit: Kit, spec: Any, *, before: Any = None
) -> list[RefusedError]:
    """Return why fields are above the bounds of their team. As `check_values`."""
    refusals = []
    for path, bound in team.limits.fields.get(kit.name, {}).items():
        schema = schema_at(kit.spec_schema, path)
        value = _value(spec, path, schema)
        if value is None or _fits(value, bound, schema):
            continue
        old_value = None if before is None else _value(before, path, schema)
        if old_value is not None and _fits(value, old_value, schema):
            continue
        way_out = f"orderkit team change {team.team} --limit {kit.name}.{path}=…"
        refusals.append(
            RefusedError(
                f"{kit.parameter(path)}: {shown(value)} is above the limit of team {team.team}, "
                f"{shown(bound)}",
                hint=f"use a smaller value, or ask the platform team: {way_out}",
            )
        )
    return refusals


def cost_excess(
    team: TeamFile, order: str, cost: OrderCost | None, other_costs: Mapping[str, OrderCost | None]
) -> RefusedError | None:
    """
    Return why an order, with all others of its team, costs more than the team may spend.

    What is paid up to a limit counts in full. A cost that is not known cannot be compared, so it is
    too much. None: it may be spent, or the team has no such limit.

    Args:
        order: Its id.
        cost: What it costs; None: the platform has no prices.
        other_costs: What the team's other live orders cost.
    """
    limit = team.limits.cost
    if limit is None:
        return None
    known_costs: dict[str, Decimal] = {}
    for other, amount in {**other_costs, order: cost}.items():
        known_cost = _known_cost(limit, team.team, other, amount)
        if isinstance(known_cost, RefusedError):
            return known_cost
        known_costs[other] = known_cost
    adds, now = known_costs.pop(order), add_up(known_costs.values())
    if add_up((now, adds)) <= limit.amount:
        return None
    return RefusedError(
        f"{order} costs {money(adds)} {limit.currency} a month, and the other orders of team "
        f"{team.team} {money(now)}: together {money(add_up((now, adds)))}, above the team's cost "
        f"limit of {money(limit.amount)}",
        hint=f"end an order that is not needed (orderkit list --team {team.team} --sort=-cost), "
        f"ask for less, or ask the platform team: orderkit team change {team.team} "
        f"--limit {COST}=…",
    )


def sum_excess(team: TeamFile, costs: Mapping[str, OrderCost | None]) -> str:
    """Say that a team's orders cost more than its limit, or that nobody knows; empty if neither."""
    limit = team.limits.cost
    if limit is None:
        return ""
    amounts = []
    for order, cost in costs.items():
        known_cost = _known_cost(limit, team.team, order, cost)
        if isinstance(known_cost, RefusedError):
            return str(known_cost)
        amounts.append(known_cost)
    if (total := add_up(amounts)) <= limit.amount:
        return ""
    return (
        f"the orders of team {team.team} cost {money(total)} {limit.currency} a month, above its"
        f" limit of {money(limit.amount)}"
    )


def is_dearer(cost: OrderCost | None, before: OrderCost) -> bool:
    """Say whether an order may cost more than before: one that does not may always stay."""
    most, most_before = cost.most if cost else None, before.most
    if cost is None or most is None or most_before is None:
        return cost != before
    return most > most_before or not set(cost.unknown) <= set(before.unknown)


def _known_cost(
    limit: CostLimit, team: TeamName, order: str, cost: OrderCost | None
) -> Decimal | RefusedError:
    """Return an amount that can be compared with the limit of the team, or why there is none."""
    unknown = ("the platform has no price table",) if cost is None else cost.unknown
    hint = "give every kind a price in gitops/prices.yaml of the pack, '0' for what is free"
    if cost is not None and cost.currency not in ("", limit.currency):
        unknown = (f"prices are in {cost.currency}, the limit is in {limit.currency}",)
        hint = f"orderkit team change {team} --limit {COST}=…{cost.currency}"
    if cost is None or cost.most is None or unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        return RefusedError(
            f"what {order} costs is not known ({''.join(unknown[:1])}{more}), so team "
            f"{team} cannot be held to its cost limit",
            hint=hint,
        )
    return cost.most


def _value(spec: Any, path: str, schema: Mapping[str, Any]) -> Any:
    value = value_at(spec, path)
    return schema.get("default") if value is None else value


def _fits(value: Any, bound: Any, schema: Mapping[str, Any]) -> bool:
    """Say whether a value is at most the bound; incomparable values are not."""
    order = schema.get("enum") or ()
    if value in order and bound in order:
        return bool(order.index(value) <= order.index(bound))
    size, bound_size = _size(value), _size(bound)
    return size is not None and bound_size is not None and size <= bound_size


def _size(value: Any) -> Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Decimal(str(value))
    try:
        return quantities.parse(str(value))
    except (NoQuantity, Unsure):
        return None


# --- limits on the command line


def with_limits(
    limits: TeamLimits,
    added: Mapping[str, str],
    dropped: Iterable[str],
    kits: Mapping[str, Kit],
    currency: str = "",
) -> TeamLimits:
    """
    Return the limits with some added and some dropped.

    Args:
        added: ``orders``, ``orders.<kit>``, ``cost`` or ``<kit>.<field>``, and its value's text.
        dropped: Names of limits.
        kits: Those of the pack.
        currency: The price table's; empty: there is none.

    Raises:
        InvalidInputError: The kit or field does not exist, or the value is not a valid bound.
        UsageError: A limit to drop does not exist.
    """
    for name in dropped:
        limits = _without(limits, name)
    for name, text in added.items():
        limits = _with(limits, name, text, kits, currency)
    return limits


def _with(
    limits: TeamLimits, name: str, text: str, kits: Mapping[str, Kit], currency: str
) -> TeamLimits:
    head, dot, subname = name.partition(".")
    if name == ORDERS:
        return changed(limits, orders=_count(name, text))
    if name == COST:
        return changed(limits, cost=_cost(text, currency))
    if head == ORDERS:
        _kit_called(f"limit {name}", subname, kits)
        return changed(limits, orders_of={**limits.orders_of, subname: _count(name, text)})
    if not dot:
        raise InvalidInputError(
            "limit",
            name,
            "is not a limit",
            hint="orders=20, orders.KIT=5, cost=500EUR or KIT.FIELD=MOST",
        )
    kit = _kit_called(f"limit {name}", head, kits)
    bounds = {**limits.fields.get(head, {}), subname: _bound(kit, subname, text)}
    return changed(limits, fields={**limits.fields, head: bounds})


def _without(limits: TeamLimits, name: str) -> TeamLimits:
    head, _, subname = name.partition(".")
    if name == ORDERS and limits.orders is not None:
        return changed(limits, orders=None)
    if name == COST and limits.cost is not None:
        return changed(limits, cost=None)
    if head == ORDERS and subname in limits.orders_of:
        remaining = {kit: count for kit, count in limits.orders_of.items() if kit != subname}
        return changed(limits, orders_of=remaining)
    if subname in limits.fields.get(head, {}):
        bounds = {path: bound for path, bound in limits.fields[head].items() if path != subname}
        other_kits = {kit: kit_bounds for kit, kit_bounds in limits.fields.items() if kit != head}
        return changed(limits, fields={**other_kits, head: bounds} if bounds else other_kits)
    limits_text = ", ".join(limits.texts()) or "none"
    raise UsageError(f"limit '{name}' is not set", hint=f"limits: {limits_text}")


def _kit_called(field: str, name: str, kits: Mapping[str, Kit]) -> Kit:
    if name in kits:
        return kits[name]
    hint = did_you_mean(name, kits, f"kits: {', '.join(sorted(kits))}")
    raise InvalidInputError(field, name, "is not a kit of this platform's pack", hint=hint)


def _count(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidInputError(
            f"limit {name}", text, "is not a number of orders", hint=f"{name}=20"
        )
    return int(text)


def _cost(text: str, currency: str) -> CostLimit:
    match = _COST_TEXT.fullmatch(text)
    if match is None:
        raise InvalidInputError(
            f"limit {COST}", text, "is not an amount", hint="for example cost=500 or cost=499.50EUR"
        )
    if not currency:
        raise InvalidInputError(
            f"limit {COST}",
            text,
            "needs prices, and the platform's pack has none",
            hint="put a price table into gitops/prices.yaml of the pack (docs/cost.md)",
        )
    if match[2] not in ("", currency):
        raise InvalidInputError(
            f"limit {COST}",
            text,
            f"is not in the currency of the prices, {currency}",
            hint=f"{COST}=500",
        )
    return CostLimit(Decimal(match[1]), currency)


def _bound(kit: Kit, path: str, text: str) -> Any:
    """Parse the text of a bound according to the field's type."""
    field, schema = f"limit {kit.name}.{path}", schema_at(kit.spec_schema, path)
    if not schema:
        field_names = ", ".join(kit.spec_schema.get("properties", {}))
        raise InvalidInputError(
            field, path, f"is not a field of kit {kit.name}", hint=f"fields: {field_names}"
        )
    value: Any = text
    if schema.get("type") in _NUMBERS:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
    if schema.get("enum"):
        if value not in schema["enum"]:
            choices = ", ".join(map(str, schema["enum"]))
            raise InvalidInputError(
                field, text, "is not one of its values", hint=f"one of {choices}"
            )
    elif isinstance(value, bool) or _size(value) is None:
        raise InvalidInputError(
            field, text, "cannot be a bound: use a number, a quantity or a value of an enum"
        )
    return value
