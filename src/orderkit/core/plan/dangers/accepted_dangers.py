"""
Dangers that a kit accepts for all of its orders, with a reason: plans list them apart.

A kit names the code, the part, and perhaps words of the sentence. Every other danger stays one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ground.objects.kube_objects import Kind
from orderkit.core.kit.kit_file import AcceptedDanger
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Danger, DangerContext


@dataclass(frozen=True, slots=True, order=True)
class AcceptedPlanDanger:
    """A danger of a plan, and why the kit accepts it."""

    danger: Danger
    reason: str


def accepted_apart(
    dangers: Sequence[Danger], after: Assembly, context: DangerContext | None
) -> tuple[tuple[Danger, ...], tuple[AcceptedPlanDanger, ...]]:
    """Return the dangers that nobody accepted, and those that the order's kit accepts."""
    kind = Kind.of(after.xr)
    rules = context.laws.accepts.get((kind.group, kind.kind), ()) if context else ()
    reasons = {danger: _reason(danger, rules) for danger in dangers}
    return (
        tuple(danger for danger in dangers if not reasons[danger]),
        tuple(AcceptedPlanDanger(d, reasons[d]) for d in dangers if reasons[d]),
    )


def _reason(danger: Danger, rules: Sequence[AcceptedDanger]) -> str:
    for rule in rules:
        is_meant = rule.code == danger.code and fnmatchcase(danger.path, rule.part)
        if is_meant and rule.words in danger.message:
            return rule.reason
    return ""
