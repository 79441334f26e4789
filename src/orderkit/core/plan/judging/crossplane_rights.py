"""
Whether ClusterRoles grant Crossplane what it needs to compose the resources.

Crossplane has rights to the kinds of its own role, to XRs and to managed resources. Every other
kind needs a ClusterRole that is aggregated to Crossplane's; ``kit generate`` writes one.
"""

from __future__ import annotations

from collections.abc import Iterator

from compositions.granted_rights import (
    AGGREGATE,
    WRITE,
    is_granted,
    right_to_hand_on,
    verbs_granted,
)
from ground.objects.kube_objects import Kind, plural_of
from orderkit.core.plan.assembly import Assembly, Fault
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule
from orderkit.core.plan.outcome_objects import objects_of


def judge_rights(after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield one fault per kind that Crossplane may not compose, at the first resource of it."""
    judged_kinds: set[Kind] = set()
    for obj in objects_of(after):
        if obj.prefix or obj.kind in judged_kinds:
            continue
        judged_kinds.add(obj.kind)
        missing = sorted(missing_rights(obj.kind, facts))
        if missing:
            yield Fault(
                obj.path,
                f"Crossplane may not compose {obj.kind}: no right to {', '.join(missing)}",
                "kind",
                "add the kind to spec.composes in kit.yaml and run 'orderkit kit generate', "
                f"or label a ClusterRole that grants it {AGGREGATE}: 'true'",
                code=OutcomeRule.RIGHTS,
            )


def missing_rights(kind: Kind, facts: JudgingFacts) -> set[str]:
    """Return the verbs that no role grants, each with its resource."""
    known_kind = facts.schemas.find(kind)
    plural = (known_kind.plural if known_kind else "") or plural_of(kind.kind)
    missing: set[str] = set()
    if not (is_granted(kind) or (known_kind is not None and known_kind.granted)):
        lacking = set(WRITE) - verbs_granted(facts.roles, kind.group, plural)
        missing |= {f"{verb} {plural}" for verb in lacking}
    handed = right_to_hand_on(kind)
    if handed is not None:
        verb, resource = handed
        if verb not in verbs_granted(facts.roles, kind.group, resource):
            missing.add(f"{verb} {resource}")
    return missing
