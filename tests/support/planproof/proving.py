"""
The round: plan each step of many orders, carry all out, wait until nothing moves, compare.

Orders live side by side, so that one wait serves all of them. Settled means: twice in a row, half
a second apart, a look at the whole cluster sees the same, and nothing is on its way out.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

from ground.objects.kube_objects import Manifest, condition
from orderkit.core.plan import Plan
from planproof.comparing import Difference, Sort, changes, compare
from planproof.facts import forget, prepare, spend
from planproof.grounds import Ground
from planproof.orders import Order
from planproof.reading import LOGICAL_NAME, Outcome, Seen

_STUBBORN_S, _WAITED_S = 4.0, 12.0
"""
How long something must stay as it was not foretold before that counts, and have been waited for.

The first is no longer, because a real server writes by itself every ten seconds.
"""
_BUDGET = "XAgentBudget"
PLACED = "placed"
FORGOTTEN = "its spend forgotten"
_SHARES = [Decimal(share) for share in ("1", "0.5", "3")]
"""What agents spend of the budget they began with, in turn."""
_AFTERWARDS: Mapping[str, Callable[[Manifest], Manifest]] = {
    "nothing": lambda _: {},
    "budget doubled": lambda spec: {"budgetUsd": min(10_000, 2 * spec["budgetUsd"])},
    FORGOTTEN: lambda _: {"enforcement": "monitor-only"},
}
_AT_ONCE = 24
"""How many orders live side by side; the rest waits."""
_LOOK_EVERY_S = 0.1
_PATIENCE_S = 180.0


@dataclass
class Account:
    """What was proved, and what was not as foretold."""

    plans: int = 0
    resources: int = 0
    changed: int = 0
    differences: list[tuple[str, str, Difference]] = field(default_factory=list)
    """Order, step, and what differs."""

    def __str__(self) -> str:
        told = [f"{order} {step}: {each}" for order, step, each in self.differences[:40]]
        done = f"{self.plans} plans of {self.resources} resources, {self.changed} changed"
        return "\n".join([f"{done}: {len(self.differences)} differences", *told])


@dataclass(frozen=True)
class Step:
    """One order's next step: the plan of it, and the XR that carries it out."""

    order: Order
    name: str
    xr: Manifest
    plan: Plan


def prove(ground: Ground, orders: Sequence[Order]) -> Account:
    """Place orders, change each in every way, end them; hold every plan against its outcome."""
    account = Account()
    for start in range(0, len(orders), _AT_ONCE):
        batch = orders[start : start + _AT_ONCE]
        prepare(ground, batch)
        live(ground, batch, account)
        spending(ground, batch, account)
        end(ground, batch)
    return account


def live(ground: Ground, orders: Sequence[Order], account: Account) -> None:
    """Place the orders and change each in every way; nothing is ended."""
    before = settled(ground)
    steps = [
        Step(order, PLACED, order.xr, ground.plan_order(order.kit).plan_new(order.xr))
        for order in orders
    ]
    before = carry_out(ground, steps, before, account)
    present = {order.name: order.xr for order in orders}
    for number in range(max(len(order.changes) for order in orders)):
        steps = []
        for order in orders:
            if number < len(order.changes):
                change = order.changes[number]
                plan = ground.plan_order(order.kit).plan_step(present[order.name], change.xr)
                steps.append(Step(order, change.name, change.xr, plan))
                present[order.name] = change.xr
        before = carry_out(ground, steps, before, account)


def spending(ground: Ground, orders: Sequence[Order], account: Account) -> None:
    """
    Let living agents spend: plans of the same again, of more budget, and once spend is forgotten.

    Whether an agent is paused follows from a record that is not the order's, by way of a nested XR.
    """
    homes = settled(ground).named("Namespace")
    agents = [order for order in orders if f"agent-{order.name}" in homes]
    for order, share in zip(agents, itertools.cycle(_SHARES)):
        spend(ground, order, share)
    before = settled(ground, partial(_measured, agents, "True"))
    present = {order.name: _last(order) for order in agents}
    for name, edit in _AFTERWARDS.items():
        if name == FORGOTTEN:
            for order in agents:
                forget(ground, order)
            before = settled(ground, partial(_measured, agents, "False"))
        steps = []
        for order in agents:
            old = present[order.name]
            present[order.name] = wanted = {**old, "spec": {**old["spec"], **edit(old["spec"])}}
            plan = ground.plan_order(order.kit).plan_step(old, wanted)
            steps.append(Step(order, name, wanted, plan))
        before = carry_out(ground, steps, before, account)


def _measured(agents: Sequence[Order], status: str, seen: Seen) -> bool:
    """Say whether the budgets of agents have taken in that their spend is known, or is not."""
    names = {order.name for order in agents}
    return all(
        (condition(each, "Measured") or {}).get("status") == status
        for each in seen.objects
        if each["kind"] == _BUDGET and each["spec"].get("agentName") in names
    )


def _last(order: Order) -> Manifest:
    return order.changes[-1].xr if order.changes else order.xr


def carry_out(ground: Ground, steps: Sequence[Step], before: Seen, account: Account) -> Seen:
    """Apply what was planned, wait until it has come true, and note what differs."""
    for step in steps:
        ground.deliver(step.xr)
    seen = _come_true(ground, steps, before)
    for step in steps:
        found = _outcome(seen, step.order)
        happened = changes(_before(step, before), found)
        account.plans += 1
        account.resources += len(found.parts)
        account.changed += len(happened)
        differing = differing_in(step, before, seen)
        account.differences += [(step.order.name, step.name, each) for each in differing]
    return seen


def _come_true(ground: Ground, steps: Sequence[Step], before: Seen) -> Seen:
    """
    Wait until nothing moves; a little longer if something is not as foretold.

    What a plan got wrong stays wrong, what is merely late comes: so patience hides no mistake.
    """

    def holds(seen: Seen, stubborn: bool) -> bool:  # noqa: FBT001  as it is called
        return stubborn or not (any(differing_in(step, before, seen) for step in steps))

    def missing(seen: Seen) -> list[str]:
        return [f"differs: {each}" for step in steps for each in differing_in(step, before, seen)]

    return _quiet_when(ground, holds, "what was planned", missing)


def differing_in(step: Step, before: Seen, seen: Seen) -> list[Difference]:
    """Return everything in which a step's plan and its outcome differ."""
    found = _outcome(seen, step.order)
    return [*compare(step.plan.after, found), *acted(step.plan, _before(step, before), found)]


def _before(step: Step, before: Seen) -> Outcome | None:
    return None if step.name == PLACED else _outcome(before, step.order)


def acted(plan: Plan, old: Outcome | None, found: Outcome) -> list[Difference]:
    """Compare what a plan says it does with what was done."""
    said = {
        each.path: (
            each.action.value,
            frozenset(f.path for f in each.fields)
            if each.action.value in ("changed", "replaced")
            else frozenset(),
        )
        for each in plan.changes
    }
    done = changes(old, found)
    return [
        Difference(Sort.ACTION, path, said.get(path), done.get(path))
        for path in sorted(said.keys() | done.keys())
        if said.get(path) != done.get(path)
    ]


def end(ground: Ground, orders: Sequence[Order]) -> None:
    """Delete the orders; wait until nothing of them is left."""
    for order in orders:
        ground.delete(order.xr)
    gone = {order.name for order in orders}

    def is_over(seen: Seen, _: bool) -> bool:  # noqa: FBT001  as it is called
        return not any(_is_there(seen, order) for order in orders) and not any(
            _root(each) in gone for each in seen.objects
        )

    _quiet_when(ground, is_over, f"the end of {len(orders)} orders")


def settled(ground: Ground, shows: Callable[[Seen], bool] = lambda _: True) -> Seen:
    """Return what there is once it does not move; a little later if it does not show something."""

    def holds(seen: Seen, stubborn: bool) -> bool:  # noqa: FBT001  as it is called
        return stubborn or shows(seen)

    return _quiet_when(ground, holds, "that nothing moves")


def _quiet_when(
    ground: Ground,
    holds: Callable[[Seen, bool], bool],
    what: str,
    missing: Callable[[Seen], list[str]] = lambda _: [],
) -> Seen:
    """Wait until nothing has moved for a while and something holds; it is told if for long."""
    begun_s = moved_s = time.monotonic()
    last = ""
    while True:
        time.sleep(_LOOK_EVERY_S)
        now, now_s = ground.reader.revision(), time.monotonic()
        if now_s - begun_s >= _PATIENCE_S:
            waited = f"waited {_PATIENCE_S:.0f} s: {what}"
            raise AssertionError(
                "\n".join([waited, *_unrest(ground), *missing(ground.reader.look())])
            )
        if now != last:
            last, moved_s = now, now_s
        elif now_s - moved_s >= ground.quiet_s:
            seen = ground.reader.look()
            stubborn = now_s - moved_s >= _STUBBORN_S and now_s - begun_s >= _WAITED_S
            moving = any(_is_moving(ground, each) for each in seen.objects)
            if not moving and holds(seen, stubborn):
                return seen


def _unrest(ground: Ground) -> Iterator[str]:
    """Yield what is on the move, and what changes within three seconds."""
    before = ground.reader.look().objects
    time.sleep(3)
    known = {each["metadata"]["uid"]: each for each in before}
    for each in ground.reader.look().objects:
        name = f"{each['kind']} {each['metadata']['name']}"
        if _is_moving(ground, each):
            yield f"on the move: {name}"
        if known.get(each["metadata"]["uid"]) != each:
            yield f"changed: {name}: {known.get(each['metadata']['uid'])} -> {each}"


def _outcome(seen: Seen, order: Order) -> Outcome:
    found = seen.outcome(order.kit.kind.kind, order.name, order.namespace)
    assert found is not None, f"{order.name} is not there"
    return found


def _is_there(seen: Seen, order: Order) -> bool:
    return seen.outcome(order.kit.kind.kind, order.name, order.namespace) is not None


def _root(each: Manifest) -> str:
    labels = each["metadata"].get("labels") or {}
    return str(labels.get("crossplane.io/composite") or "")


def _is_moving(ground: Ground, each: Manifest) -> bool:
    """
    Say whether an object is on its way out, or its newest generation was not looked at yet.

    Others that share the API server leave objects of their own, which nobody looks at again.
    """
    is_part = bool(_root(each)) or LOGICAL_NAME in (each["metadata"].get("annotations") or {})
    if "deletionTimestamp" in each["metadata"]:
        return is_part
    if not is_part and each["kind"] not in {kit.kind.kind for kit in ground.kits.values()}:
        return False
    status = each.get("status") or {}
    return any(
        said.get("type") == "Synced"
        and said.get("observedGeneration") != each["metadata"].get("generation")
        for said in status.get("conditions") or ()
    )
