"""
The kit's rules for changes: which fields, how far, by whom, and how.

The XRD says which values an order may have; ``changes`` in kit.yaml say how they may change. In a
kit without ``changes``, every visible field may change directly. Fields that name an order or its
team, and fields with a value of the platform, never change: they identify the order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ground.errors import InvalidInputError, OrderkitError, RefusedError, every
from ground.names import fold_reference
from ground.objects.values import ABSENT, same, shown, value_at
from ground.suggestions import did_you_mean
from kubeschema.field_paths import schema_at, steps_of
from orderkit.core.kit.kit_file import Direction, How, KitChange
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import fields_of
from orderkit.core.order.change.differences import FieldDifference


@dataclass(frozen=True, slots=True)
class ChangeVerdict:
    """The rules' verdict on an allowed change."""

    changes: tuple[KitChange, ...]
    """The kit's changes that it consists of; empty for a kit without changes."""

    @property
    def how(self) -> How:
        """Review if any of the changes needs one."""
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
    """Who requests a change, and the people of the order."""

    ref: str
    groups: frozenset[str]
    """Groups confirmed by the portal; empty for an unauthenticated `ref`."""
    ordered_by: str
    team: str
    platform: str
    """The entity reference of the kit's owner."""


def judge_rules(
    kit: Kit, differing: Sequence[FieldDifference], *, change: str | None = None
) -> ChangeVerdict:
    """
    Return the kit's changes that allow these differences.

    Args:
        change: Name of the change; None to find it by the fields.

    Raises:
        InvalidInputError: The kit has no change of that name.
        RefusedError: A field may not change, not in this change, or not that far.
        SeveralProblemsError: Several fields may not.
    """
    secrets = [field.path for top in fields_of(kit).top for field in top.secrets()]
    if change and not kit.changes:
        raise _no_such_change(kit, change)
    candidates = [_change_by_name(kit, change)] if change else list(kit.changes)

    def judged(difference: FieldDifference) -> list[KitChange]:
        _refuse_identity(kit, difference)
        _refuse_secret(secrets, difference)
        return [_judge(kit, candidates, difference, change)] if kit.changes else []

    allowing = every(partial(judged, difference) for difference in differing)
    return ChangeVerdict(tuple(dict.fromkeys(itertools.chain(*allowing))))


def refuse_unchanged(
    kit: Kit, spec: Mapping[str, Any], *, paths: Iterable[str], change: str | None = None
) -> None:
    """
    Refuse a request that changes nothing, for changes with ``differs`` in kit.yaml.

    Args:
        spec: The order's present ``spec``.
        paths: The fields to be set.

    Raises:
        RefusedError: The fields have these values already.
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
                f"{field} is already {shown(value)}: nothing would change",
                hint="use another value",
            )


def judge_who(verdict: ChangeVerdict, asking: ChangeRequester) -> None:
    """
    Check that the requester may make the change.

    Raises:
        RefusedError: They may not.
    """
    for change in verdict.changes:
        if not any(_includes(who, asking) for who in change.who):
            raise RefusedError(
                f"{asking.ref} may not {change.title.lower()}: only {' or '.join(change.who)} may",
                hint=f"ask {_people_text(change.who, asking)}",
            )


def _includes(who: str, asking: ChangeRequester) -> bool:
    if who == "requester":
        return fold_reference(asking.ref) == fold_reference(asking.ordered_by)
    proved = {asking.ref, *asking.groups}
    return _reference_of(who, asking) in {fold_reference(ref) for ref in proved}


def _reference_of(who: str, asking: ChangeRequester) -> str:
    """Return the full reference of a word (team, platform) or a short reference."""
    words = {"team": f"group:default/{asking.team}", "platform": asking.platform}
    who = words.get(who, who)
    kind, colon, name = who.rpartition(":")
    namespace, slash, bare = name.rpartition("/")
    reference = f"{kind if colon else 'group'}:{namespace if slash else 'default'}/{bare}"
    return fold_reference(reference)


def _people_text(who: Iterable[str], asking: ChangeRequester) -> str:
    return " or ".join(
        asking.ordered_by if w == "requester" else _reference_of(w, asking) for w in who
    )


def _refuse_identity(kit: Kit, difference: FieldDifference) -> None:
    naming = {*kit.name_from, kit.team_from, kit.xr_name} - {""}
    if _is_among(difference, naming):
        raise RefusedError(
            f"{difference} is refused: the field names the order or its team",
            hint="place a new order with the other name, and end this order",
        )
    if _is_among(difference, kit.hidden):
        raise RefusedError(
            f"{difference} is refused: the platform sets this value",
            hint="ask the platform team",
        )


def _refuse_secret(secrets: Iterable[str], difference: FieldDifference) -> None:
    """Refuse a new secret without quoting it; removing one is allowed."""
    own_names = [step for step in difference.steps if isinstance(step, str)]
    for secret in secrets:
        path = secret.replace("[]", "")
        names = path.split(".")
        shared = min(len(names), len(own_names))
        if names[:shared] == own_names[:shared] and _has(difference.new, names[shared:]):
            raise RefusedError(
                f"{path} looks like a secret, and everybody who may read the repository could "
                "read it",
                hint="put it into a Secret and refer to that; if it is not a secret, the kit's "
                f"author writes fields: {{{path}: {{secret: false}}}} in kit.yaml",
            )


def _has(value: Any, names: Sequence[str]) -> bool:
    """Return whether a value has something below these names, in any entry of its lists."""
    if isinstance(value, list):
        return any(_has(entry, names) for entry in value)
    if not names:
        return value is not ABSENT
    return isinstance(value, Mapping) and names[0] in value and _has(value[names[0]], names[1:])


def _change_by_name(kit: Kit, name: str) -> KitChange:
    for change in kit.changes:
        if change.name == name:
            return change
    raise _no_such_change(kit, name)


def _no_such_change(kit: Kit, name: str) -> InvalidInputError:
    names = [change.name for change in kit.changes]
    hint = did_you_mean(name, names, f"changes: {', '.join(names) or 'none'}")
    return InvalidInputError("change", name, f"is not a change of kit {kit.name}", hint=hint)


def _judge(
    kit: Kit, candidates: Sequence[KitChange], difference: FieldDifference, name: str | None
) -> KitChange:
    """Return the first change that allows it, else raise the refusal of the first candidate."""
    covering = [change for change in kit.changes if _is_among(difference, change.fields)]
    for change in covering:
        if change.direction is Direction.NEVER:
            raise RefusedError(
                f"{difference} is refused: this field never changes",
                hint=change.warning or "place a new order with the other value, and end this order",
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
        f"{difference} is refused: the kit does not allow this change {scope}",
        hint=f"fields that may change: {', '.join(changeable) or 'none'}",
    )


def _changes(change: KitChange) -> bool:
    return change.direction is not Direction.NEVER


def _is_among(difference: FieldDifference, fields: Iterable[str]) -> bool:
    own_steps = [str(step) for step in difference.steps]
    return any(own_steps[: len(steps)] == steps for steps in map(steps_of, fields))


def _too_far(kit: Kit, change: KitChange, difference: FieldDifference) -> str:
    """Return why the direction forbids it; empty if it does not."""
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
        return "it may not be removed"
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
        return "it may only grow, and these values cannot be compared"
    return "it may only grow" if distance < 0 else ""


def _no_step(difference: FieldDifference, order: Sequence[Any], step: float) -> str:
    distance = _distance(difference.old, difference.new, order)
    if distance is None:
        return "it may only change step by step, and these values cannot be compared"
    if order:
        step = 1
    if abs(distance) <= step:
        return ""
    following = order[order.index(difference.old) + (1 if distance > 0 else -1)] if order else None
    next_step = f"; next is {shown(following)}" if order else ""
    return f"it may only change by one step at a time{next_step}"


def _distance(old: Any, new: Any, order: Sequence[Any]) -> float | None:
    """Return the signed distance from `old` to `new`; None if they cannot be compared."""
    if old in order and new in order:
        return order.index(new) - order.index(old)
    numbers = all(isinstance(number, int | float) for number in (old, new))
    return (
        float(new) - float(old)
        if numbers and isinstance(old, bool) is isinstance(new, bool)
        else None
    )
