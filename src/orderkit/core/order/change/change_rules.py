"""
The kit's own rules for changes: which fields, how far, by whom, and how.

The XRD says what an order may be; kit.yaml's ``changes`` say what it may become. A kit without
them lets every visible field change, directly. The fields that name an order or its team, and
those with a value of the platform, never change: the order would no longer be itself.

Called by the flow that changes orders, once the new XR is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orderkit.core.errors import InvalidInputError, OrderkitError, RefusedError
from orderkit.core.kit.model import Direction, How, Kit, KitChange
from orderkit.core.objects.values import ABSENT, same, shown, value_at
from orderkit.core.order.change.differences import FieldDifference
from orderkit.core.schema.validate.hints import schema_at, steps_of
from orderkit.core.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class ChangeVerdict:
    """What the rules say of a change that they allow."""

    changes: tuple[KitChange, ...]
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
class ChangeRequester:
    """Who asks, and what an order says of its people."""

    ref: str
    groups: frozenset[str]
    """What the portal vouches for; empty for somebody who only claims to be `ref`."""
    ordered_by: str
    team: str
    platform: str
    """The reference of the kit's owner."""


def judge_rules(
    kit: Kit, differing: Sequence[FieldDifference], *, change: str | None = None
) -> ChangeVerdict:
    """
    Return which of the kit's changes this is.

    Args:
        change: The one that is meant; None to find it by the fields.

    Raises:
        InvalidInputError: The kit has no change of that name.
        RefusedError: A field may not change, not in this change, or not this far.
    """
    for difference in differing:
        _refuse_identity(kit, difference)
    if not kit.changes:
        if change:
            raise _no_such_change(kit, change)
        return ChangeVerdict(())
    candidates = [_named(kit, change)] if change else list(kit.changes)
    allowing = [_judge(kit, candidates, difference, change) for difference in differing]
    return ChangeVerdict(tuple(dict.fromkeys(allowing)))


def refuse_unchanged(
    kit: Kit, spec: Mapping[str, Any], *, paths: Iterable[str], change: str | None = None
) -> None:
    """
    Check that no change that must differ was asked for what holds already.

    Args:
        spec: The order's ``spec`` as it is.
        paths: The fields that were to be set.

    Raises:
        RefusedError: It was, and nothing would change.
    """
    requested = list(paths)
    for kit_change in kit.changes:
        is_meant = (
            kit_change.name == change
            if change
            else any(
                _is_among(FieldDifference(tuple(steps_of(path)), None, None), kit_change.fields)
                or any(field.startswith(f"{path}.") for field in kit_change.fields)
                for path in requested
            )
        )
        if kit_change.differs and is_meant:
            field = kit_change.fields[0]
            value = value_at(spec, tuple(steps_of(field)))
            raise RefusedError(
                f"{field} is {shown(value)} already: nothing would change",
                hint="give another value",
            )


def judge_who(verdict: ChangeVerdict, asking: ChangeRequester) -> None:
    """
    Check that the one who asks may.

    Raises:
        RefusedError: They may not.
    """
    for change in verdict.changes:
        if not any(_includes(who, asking) for who in change.who):
            raise RefusedError(
                f"{asking.ref} may not {change.title.lower()}: that is for "
                f"{' or '.join(change.who)}",
                hint=f"ask {_people_text(change.who, asking)}",
            )


def _includes(who: str, asking: ChangeRequester) -> bool:
    if who == "requester":
        return asking.ref.lower() == asking.ordered_by.lower()
    return _reference_of(who, asking) in {asking.ref.lower(), *map(str.lower, asking.groups)}


def _reference_of(who: str, asking: ChangeRequester) -> str:
    """Return the reference that a word or a short reference stands for."""
    words = {"team": f"group:default/{asking.team}", "platform": asking.platform}
    who = words.get(who, who)
    kind, colon, name = who.rpartition(":")
    namespace, slash, bare = name.rpartition("/")
    return f"{kind if colon else 'group'}:{namespace if slash else 'default'}/{bare}".lower()


def _people_text(who: Iterable[str], asking: ChangeRequester) -> str:
    return " or ".join(
        asking.ordered_by if w == "requester" else _reference_of(w, asking) for w in who
    )


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


def _named(kit: Kit, name: str) -> KitChange:
    for change in kit.changes:
        if change.name == name:
            return change
    raise _no_such_change(kit, name)


def _no_such_change(kit: Kit, name: str) -> InvalidInputError:
    names = [change.name for change in kit.changes]
    hint = did_you_mean(name, names, f"changes: {', '.join(names) or 'none'}")
    return InvalidInputError("change", name, f"is no change of kit {kit.name}", hint=hint)


def _judge(
    kit: Kit, candidates: Sequence[KitChange], difference: FieldDifference, name: str | None
) -> KitChange:
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
        reason = _too_far(kit, change, difference)
        if not reason:
            return change
        refusals.append(RefusedError(f"{difference} is refused: {reason}"))
    if refusals:
        raise refusals[0]
    scope = f"in change '{name}'" if name else f"of a {kit.title} later"
    changeable = [
        field for kit_change in candidates for field in kit_change.fields if _changes(kit_change)
    ]
    raise RefusedError(
        f"{difference} is refused: the kit lets nobody change it {scope}",
        hint=f"what may change: {', '.join(changeable) or 'nothing'}",
    )


def _changes(change: KitChange) -> bool:
    return change.direction is not Direction.NEVER


def _is_among(difference: FieldDifference, fields: Iterable[str]) -> bool:
    own_steps = [str(step) for step in difference.steps]
    return any(own_steps[: len(steps)] == steps for steps in map(steps_of, fields))


def _too_far(kit: Kit, change: KitChange, difference: FieldDifference) -> str:
    """Say why the direction forbids it; empty if it does not."""
    if change.direction is Direction.ANY:
        return ""
    schema = schema_at(kit.spec_schema, difference.path)
    default = schema.get("default", ABSENT)
    with_defaults = replace(
        difference,
        old=default if difference.old is ABSENT else difference.old,
        new=default if difference.new is ABSENT else difference.new,
    )
    if with_defaults.old is ABSENT:
        return ""
    if with_defaults.new is ABSENT:
        return "it may not be taken away"
    order = schema.get("enum") or ()
    if change.direction is Direction.GROW:
        return _not_grown(with_defaults, order)
    return _no_step(with_defaults, order, schema.get("multipleOf", 1))


def _not_grown(difference: FieldDifference, order: Sequence[Any]) -> str:
    old, new = difference.old, difference.new
    if isinstance(old, list) and isinstance(new, list):
        missing = [entry for entry in old if not any(same(entry, other) for other in new)]
        return f"it may only grow, and {shown(missing[0])} is missing" if missing else ""
    distance = _distance(old, new, order)
    if distance is None:
        return "it may only grow, and these cannot be compared"
    return "it may only grow" if distance < 0 else ""


def _no_step(difference: FieldDifference, order: Sequence[Any], step: float) -> str:
    distance = _distance(difference.old, difference.new, order)
    if distance is None:
        return "it may only go step by step, and these cannot be compared"
    if order:
        step = 1
    if abs(distance) <= step:
        return ""
    following = order[order.index(difference.old) + (1 if distance > 0 else -1)] if order else None
    next_step = f"; next is {shown(following)}" if order else ""
    return f"it may only change by one step at a time{next_step}"


def _distance(old: Any, new: Any, order: Sequence[Any]) -> float | None:
    """Return how far on `new` is; None if the two have no order."""
    if old in order and new in order:
        return order.index(new) - order.index(old)
    numbers = all(isinstance(number, int | float) for number in (old, new))
    return (
        float(new) - float(old)
        if numbers and isinstance(old, bool) is isinstance(new, bool)
        else None
    )
