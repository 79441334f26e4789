"""
The kit's own rules for changes: which fields, how far, by whom, and how.

The XRD says what an order may be; kit.yaml's ``changes`` say what it may become. A kit without
them lets every visible field change, directly. The fields that name an order or its team, and
those with a value of the platform, never change: the order would no longer be itself.

Called by the flow that changes orders, after ``core.schema.validate`` accepted the new XR.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orderkit.core.errors import InvalidInputError, OrderkitError, RefusedError
from orderkit.core.kit.model import Change, Direction, How, Kit
from orderkit.core.objects.values import ABSENT, same, shown, value_at
from orderkit.core.order.change.differences import FieldDifference
from orderkit.core.schema.validate.hints import schema_at, steps_of
from orderkit.core.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say of a change that they allow."""

    changes: tuple[Change, ...]
    """Those that it is made of; empty for a kit that has none."""

    @property
    def how(self) -> How:
        """Review if any part of it needs one."""
        reviewed = any(change.how is How.REVIEW for change in self.changes)
        return How.REVIEW if reviewed else How.DIRECT

    @property
    def name(self) -> str:
        """The names of the changes, for a trailer; empty if there are none."""
        return ", ".join(change.name for change in self.changes)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(change.warning for change in self.changes if change.warning)


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, and what an order says of its people."""

    ref: str
    groups: frozenset[str]
    """What the portal vouches for; empty for somebody who only claims to be `ref`."""
    ordered_by: str
    team: str
    platform: str
    """The reference of the kit's owner."""


def judge_rules(
    kit: Kit, found: Sequence[FieldDifference], *, change: str | None = None
) -> Verdict:
    """
    Return which of the kit's changes this is.

    Args:
        change: The one that is meant; None to find it by the fields.

    Raises:
        InvalidInputError: The kit has no change of that name.
        RefusedError: A field may not change, not in this change, or not this far.
    """
    for difference in found:
        _refuse_identity(kit, difference)
    if not kit.changes:
        if change:
            raise _no_such_change(kit, change)
        return Verdict(())
    candidates = [_named(kit, change)] if change else list(kit.changes)
    chosen = [_judge(kit, candidates, difference, change) for difference in found]
    return Verdict(tuple(dict.fromkeys(chosen)))


def refuse_unchanged(
    kit: Kit, held: Mapping[str, Any], *, paths: Iterable[str], change: str | None = None
) -> None:
    """
    Check that no change that must differ was asked for what holds already.

    Args:
        held: The order's ``spec`` as it is.
        paths: The fields that were to be set.

    Raises:
        RefusedError: It was, and nothing would change.
    """
    wanted = list(paths)
    for each in kit.changes:
        meant = (
            each.name == change
            if change
            else any(
                _is_among(FieldDifference(tuple(steps_of(path)), None, None), each.fields)
                or any(field.startswith(f"{path}.") for field in each.fields)
                for path in wanted
            )
        )
        if each.differs and meant:
            field = each.fields[0]
            value = value_at(held, tuple(steps_of(field)))
            raise RefusedError(
                f"{field} is {shown(value)} already: nothing would change",
                hint="give another value",
            )


def judge_who(verdict: Verdict, asking: Asking) -> None:
    """
    Check that the one who asks may.

    Raises:
        RefusedError: They may not.
    """
    for change in verdict.changes:
        if not any(_is(who, asking) for who in change.who):
            raise RefusedError(
                f"{asking.ref} may not {change.title.lower()}: that is for "
                f"{' or '.join(change.who)}",
                hint=f"ask {_people(change.who, asking)}",
            )


def _is(who: str, asking: Asking) -> bool:
    if who == "requester":
        return asking.ref.lower() == asking.ordered_by.lower()
    return _meant(who, asking) in {asking.ref.lower(), *map(str.lower, asking.groups)}


def _meant(who: str, asking: Asking) -> str:
    """Return the reference that a word or a short reference stands for."""
    words = {"team": f"group:default/{asking.team}", "platform": asking.platform}
    who = words.get(who, who)
    kind, colon, name = who.rpartition(":")
    namespace, slash, bare = name.rpartition("/")
    return f"{kind if colon else 'group'}:{namespace if slash else 'default'}/{bare}".lower()


def _people(who: Iterable[str], asking: Asking) -> str:
    return " or ".join(asking.ordered_by if w == "requester" else _meant(w, asking) for w in who)


def _refuse_identity(kit: Kit, difference: FieldDifference) -> None:
    naming = {*kit.name_from, kit.team_from, kit.xr_name} - {""}
    if _is_among(difference, naming):
        raise RefusedError(
            f"{difference} is refused: the field names the order or its team",
            hint="order again under the other name, and end this order",
        )
    if _is_among(difference, kit.hidden):
        raise RefusedError(
            f"{difference} is refused: the platform gives this value",
            hint="ask the owner of the platform",
        )


def _named(kit: Kit, name: str) -> Change:
    for change in kit.changes:
        if change.name == name:
            return change
    raise _no_such_change(kit, name)


def _no_such_change(kit: Kit, name: str) -> InvalidInputError:
    names = [change.name for change in kit.changes]
    hint = did_you_mean(name, names, f"changes: {', '.join(names) or 'none'}")
    return InvalidInputError("change", name, f"is no change of kit {kit.name}", hint=hint)


def _judge(
    kit: Kit, candidates: Sequence[Change], difference: FieldDifference, name: str | None
) -> Change:
    """Return the first change that allows it; raise what the first that has the field says."""
    covering = [change for change in kit.changes if _is_among(difference, change.fields)]
    for change in covering:
        if change.direction is Direction.NEVER:
            raise RefusedError(
                f"{difference} is refused: this field never changes",
                hint=change.warning or "order again with the other value, and end this order",
            )
    covering = [change for change in covering if change in candidates]
    refusals: list[OrderkitError] = []
    for change in covering:
        told = _too_far(kit, change, difference)
        if not told:
            return change
        refusals.append(RefusedError(f"{difference} is refused: {told}"))
    if refusals:
        raise refusals[0]
    where = f"in change '{name}'" if name else f"of a {kit.title} later"
    allowed = [field for each in candidates for field in each.fields if _changes(each)]
    raise RefusedError(
        f"{difference} is refused: the kit lets nobody change it {where}",
        hint=f"what may change: {', '.join(allowed) or 'nothing'}",
    )


def _changes(change: Change) -> bool:
    return change.direction is not Direction.NEVER


def _is_among(difference: FieldDifference, fields: Iterable[str]) -> bool:
    own = [str(step) for step in difference.steps]
    return any(own[: len(steps)] == steps for steps in map(steps_of, fields))


def _too_far(kit: Kit, change: Change, difference: FieldDifference) -> str:
    """Say why the direction forbids it; empty if it does not."""
    if change.direction is Direction.ANY:
        return ""
    schema = schema_at(kit.spec_schema, difference.path)
    default = schema.get("default", ABSENT)
    given = replace(
        difference,
        old=default if difference.old is ABSENT else difference.old,
        new=default if difference.new is ABSENT else difference.new,
    )
    if given.old is ABSENT:
        return ""
    if given.new is ABSENT:
        return "it may not be taken away"
    order = schema.get("enum") or ()
    if change.direction is Direction.GROW:
        return _not_grown(given, order)
    return _no_step(given, order, schema.get("multipleOf", 1))


def _not_grown(found: FieldDifference, order: Sequence[Any]) -> str:
    old, new = found.old, found.new
    if isinstance(old, list) and isinstance(new, list):
        lost = [each for each in old if not any(same(each, other) for other in new)]
        return f"it may only grow, and {shown(lost[0])} is missing" if lost else ""
    distance = _distance(old, new, order)
    if distance is None:
        return "it may only grow, and these cannot be compared"
    return "it may only grow" if distance < 0 else ""


def _no_step(found: FieldDifference, order: Sequence[Any], step: float) -> str:
    distance = _distance(found.old, found.new, order)
    if distance is None:
        return "it may only go step by step, and these cannot be compared"
    if order:
        step = 1
    if abs(distance) <= step:
        return ""
    following = order[order.index(found.old) + (1 if distance > 0 else -1)] if order else None
    told = f"; next is {shown(following)}" if order else ""
    return f"it may only change by one step at a time{told}"


def _distance(old: Any, new: Any, order: Sequence[Any]) -> float | None:
    """Return how far on `new` is; None if the two have no order."""
    if old in order and new in order:
        return order.index(new) - order.index(old)
    numbers = all(isinstance(each, int | float) for each in (old, new))
    return (
        float(new) - float(old)
        if numbers and isinstance(old, bool) is isinstance(new, bool)
        else None
    )
