"""
Judge an outcome: what neither Crossplane nor its render says before it is too late.

`judge` holds an assembly against `JudgingFacts` and returns it with more faults, and with what
could not be judged. `wanted_facts` says what to look up. Pure; ``flows.plan.cluster_verdicts``
looks things up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from orderkit.core.objects.conditions import first_and_more
from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.judging.crossplane_rights import judge_rights, missing_rights
from orderkit.core.plan.judging.object_names import adopted, judge_names, judge_neighbours, takers
from orderkit.core.plan.judging.object_owners import judge_places
from orderkit.core.plan.judging.object_schemas import judge_shapes
from orderkit.core.plan.judging.verdicts import JudgingFacts, OutcomeRule
from orderkit.core.plan.outcome_objects import parts_of

__all__ = [
    "JudgingFacts",
    "OutcomeRule",
    "WantedFacts",
    "collisions",
    "judge",
    "missing_rights",
    "wanted_facts",
]


def judge(before: Assembly, after: Assembly, facts: JudgingFacts) -> Assembly:
    """Return the assembly with every fault that can be found, each once. Deterministic."""
    shapes, unjudged = judge_shapes(before, after, facts)
    found = [
        *after.faults,
        *shapes,
        *judge_places(after, facts),
        *judge_names(after),
        *judge_neighbours(before, after, facts),
        *judge_rights(after, facts),
    ]
    unknowns = dict.fromkeys((*after.unknowns, *unjudged))
    return replace(
        after,
        faults=tuple(dict.fromkeys(found)),
        unknowns=tuple(unknowns),
        notes=(*after.notes, *adopted(before, after, facts)),
    )


@dataclass(frozen=True, slots=True)
class WantedFacts:
    """What a cluster should be asked before an outcome is judged."""

    kinds: frozenset[Kind]
    """Also of what Objects wrap."""
    composed: frozenset[Kind]
    """Composed themselves; what an order makes CRDs for is left out."""
    namespaces: frozenset[str]
    keys: frozenset[ObjectKey]
    """Names that are not taken by the order yet."""


def wanted_facts(
    before: Assembly, after: Assembly, *, made: Collection[str] | None = None
) -> WantedFacts:
    """
    Return what to look up.

    Args:
        made: As `JudgingFacts.made`.
    """
    made = before.observed if made is None else made
    parts = list(parts_of(after))
    defined = {_defined(part.manifest) for part in parts if part.kind.kind.endswith("Definition")}
    composed = {part.kind for part in parts if not part.prefix}
    here = {metadata(part.manifest).get("name") for part in parts if part.kind.kind == "Namespace"}
    homes = {metadata(part.manifest).get("namespace") for part in parts if not part.prefix}
    homes -= {metadata(after.xr).get("namespace"), None, ""}
    new = {
        ObjectKey.of(part.manifest)
        for part in parts
        if not part.prefix and part.path not in made
        and metadata(part.manifest).get("name")
    }  # fmt: skip
    return WantedFacts(
        frozenset(part.kind for part in parts),
        frozenset(kind for kind in composed if (kind.group, kind.kind) not in defined),
        frozenset(str(home) for home in homes - here),
        frozenset(new),
    )


def _defined(manifest: Manifest) -> tuple[str, str]:
    """Return group and kind that a CRD or XRD defines."""
    return str(dig(manifest, "spec", "group")), str(dig(manifest, "spec", "names", "kind"))


def collisions(orders: Mapping[str, Assembly]) -> Mapping[str, Mapping[ObjectKey, str]]:
    """
    Return for each order the names that another order takes too, and which one.

    For whoever has the assemblies of many orders at hand; give each its part as
    `JudgingFacts.others`.
    """
    first: dict[ObjectKey, list[str]] = {}
    for order, assembly in orders.items():
        for key in takers(assembly):
            first.setdefault(key, []).append(order)
    found: dict[str, dict[ObjectKey, str]] = {}
    for key, names in first.items():
        for name in names if len(names) > 1 else ():
            found.setdefault(name, {})[key] = first_and_more(sorted(set(names) - {name}))
    return found
