"""
The rights that Crossplane needs for what it is to compose, held against ClusterRoles.

Granted without a role of one's own: the kinds of Crossplane's own role, XRs, managed resources.
Everything else needs a ClusterRole that is aggregated to Crossplane's; ``kit generate`` writes one.
"""

from __future__ import annotations

from collections.abc import Iterator

from orderkit.core.crossplane.granted_rights import (
    AGGREGATE,
    WRITE,
    handing_on,
    is_granted,
    verbs_granted,
)
from orderkit.core.kit.model import plural_of
from orderkit.core.objects.kube_objects import Kind
from orderkit.core.plan.assembly import Assembly, Fault
from orderkit.core.plan.judging.verdicts import JudgingFacts, OutcomeRule
from orderkit.core.plan.outcome_objects import parts_of


def judge_rights(after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield one fault per kind that Crossplane may not compose, at its first resource."""
    told: set[Kind] = set()
    for part in parts_of(after):
        if part.prefix or part.kind in told:
            continue
        told.add(part.kind)
        missing = sorted(missing_rights(part.kind, facts))
        if missing:
            yield Fault(
                part.path,
                f"Crossplane may not compose {part.kind}: no right to {', '.join(missing)}",
                "kind",
                "name the kind in kit.yaml under spec.composes and run 'orderkit kit generate', "
                f"or label a ClusterRole that has it {AGGREGATE}: 'true'",
                code=OutcomeRule.RIGHTS,
            )


def missing_rights(kind: Kind, facts: JudgingFacts) -> set[str]:
    """Return the verbs that no role gives, each with its resource."""
    known = facts.schemas.find(kind)
    plural = (known.plural if known else "") or plural_of(kind.kind)
    missing: set[str] = set()
    if not (is_granted(kind) or (known is not None and known.granted)):
        lacking = set(WRITE) - verbs_granted(facts.roles, kind.group, plural)
        missing |= {f"{verb} {plural}" for verb in lacking}
    handed = handing_on(kind)
    if handed is not None:
        verb, resource = handed
        if verb not in verbs_granted(facts.roles, kind.group, resource):
            missing.add(f"{verb} {resource}")
    return missing
