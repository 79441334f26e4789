"""
Rules of approval: which agreements an order or a change needs, and what is wrong with a rule.

Pure. A rule that cannot be evaluated needs its agreement: a condition must not be passed by a value
that nobody foresaw.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import available_timezones

from kubeschema.cel.expressions import Subject, condition
from kubeschema.pruning import default
from orderkit.core.kit.field_problems import KitProblem
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import ApprovalRule

_TEXT, _FLAG, _NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "number"}
_COST = {"before": _NUMBER, "after": _NUMBER, "difference": _NUMBER, "currency": _TEXT}
_REQUESTER = {"ref": _TEXT, "name": _TEXT, "proved": _FLAG}
_ORDER = {"name": _TEXT, "team": _TEXT, "kit": _TEXT, "isNew": _FLAG}

_COMPARES = re.compile(r"\b(old|cost)\b")


@dataclass(frozen=True, slots=True)
class Subjects:
    """What rules are evaluated over."""

    old: Mapping[str, Any] | None
    """The XR's spec before; None: a new order."""
    new: Mapping[str, Any]
    requester: Mapping[str, Any]
    order: Mapping[str, Any]
    cost: Mapping[str, Any]
    """Empty: not known."""


@dataclass(frozen=True, slots=True)
class Need:
    """An agreement that is needed."""

    by: tuple[str, ...]
    count: int
    because: str
    unknown: bool = False
    """The rule could not be evaluated."""

    @property
    def who(self) -> str:
        """Return who may agree, in words."""
        names = " or ".join(map(_words, self.by))
        return names if self.count == 1 else f"{self.count} people of {names}"

    def __str__(self) -> str:
        doubt = " (the rule cannot be evaluated, so it counts)" if self.unknown else ""
        return f"{self.who}, because {self.because}{doubt}"


def foretold(kit: Kit) -> str:
    """Return what a form says beforehand of a kit's rules of approval; empty if there are none."""
    needs = (Need(rule.by, rule.count, rule.because) for rule in kit.approval.rules)
    rules = "; ".join(dict.fromkeys(f"by {need}" for need in needs))
    return f"It may need an approval before it is delivered: {rules}." if rules else ""


def _words(approver: str) -> str:
    kind, _, name = approver.partition(":default/")
    if not name:
        return {"team": "the team", "platform": "the platform team"}[approver]
    return name if kind == "user" else f"group {name}"


def needs_of(kit: Kit, subjects: Subjects, within: str = "") -> tuple[Need, ...]:
    """Return the agreements that a kit's rules demand; with `within`, those of that window."""
    rules = [rule for rule in kit.approval.rules if within in ("", rule.within)]
    if not rules:
        return ()
    schema = kit.spec_schema
    values = _subject(kit).values(
        {
            "old": default(schema, subjects.old) if subjects.old else {},
            "new": default(schema, subjects.new),
            "cost": subjects.cost,
            "requester": subjects.requester,
            "order": subjects.order,
        }
    )
    verdicts = [(rule, condition(rule.when).judge(values)) for rule in rules]
    return tuple(
        Need(rule.by, rule.count, rule.because, unknown=not verdict.is_known)
        for rule, verdict in verdicts
        if verdict.holds or not verdict.is_known
    )


def reads_cost(kit: Kit) -> bool:
    """Say whether a rule may read what an order costs, which takes a plan."""
    return any("cost" in rule.when for rule in kit.approval.rules)


def sentence(needs: Iterable[Need]) -> str:
    """Return who has to agree, and why, in one sentence."""
    return "; and ".join(map(str, needs))


def _subject(kit: Kit) -> Subject:
    return Subject(
        {
            "old": kit.spec_schema,
            "new": kit.spec_schema,
            "cost": {"properties": _COST},
            "requester": {"properties": _REQUESTER},
            "order": {"properties": _ORDER},
        }
    )


def approval_problems(kit: Kit) -> Iterator[KitProblem]:
    """Yield what is wrong with a kit's rules of approval."""
    for at, rule in enumerate(kit.approval.rules):
        steps = ("spec", "approval", "rules", at)
        if fault := _subject(kit).fault(rule.when):
            hint = "write a CEL condition over old, new, cost, requester and order: new.size > 3"
            yield KitProblem("kit", (*steps, "when"), rule.when, f"is refused: {fault}", hint)
        if rule.within and not _COMPARES.search(rule.when):
            hint = "compare with old or cost in 'when', or remove 'within'"
            yield KitProblem("kit", (*steps, "within"), rule.within, "compares nothing", hint)
        if rule.count > _people(rule):
            text = f"is more than the {_people(rule)} people that 'by' names"
            yield KitProblem("kit", (*steps, "count"), rule.count, text, "name more, or a group")


def window_problems(kit: Kit) -> Iterator[KitProblem]:
    """Yield what is wrong with a kit's maintenance windows."""
    for at, window in enumerate(kit.windows):
        if window.zone not in available_timezones():
            hint = "for example Europe/Berlin or UTC"
            steps = ("spec", "windows", at, "zone")
            yield KitProblem("kit", steps, window.zone, "is not a time zone", hint)


def _people(rule: ApprovalRule) -> float:
    """Return how many people may agree at most, as far as that is known."""
    is_known = all(approver.startswith("user:") for approver in rule.by)
    return len({approver.lower() for approver in rule.by}) if is_known else float("inf")
