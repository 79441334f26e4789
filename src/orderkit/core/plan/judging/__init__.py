"""
Judge an outcome: faults that neither Crossplane nor its render reports before they happen.

`judge` compares an assembly with `Facts` and returns it with the faults it found and with
what it could not judge. `wanted_facts` says what to look up. Pure;
``flows.composing.cluster_questions`` does the lookups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, first_and_more, metadata
from orderkit.core.plan.assembly import Assembly, OutcomeObject, objects_of
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule
from orderkit.core.plan.judging.object_names import (
    adopted,
    judge_collisions,
    judge_names,
    taken_names,
)
from orderkit.core.plan.judging.object_references import (
    judge_references,
    judge_scopes,
    references_of,
    wrapped_with,
)
from orderkit.core.plan.judging.refused_objects import (
    judge_rights,
    judge_schemas,
    judge_updates,
    missing_rights,
)

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
    """Return the assembly with every fault, each once. Deterministic."""
    shapes, unjudged = judge_schemas(before, after, facts)
    faults = [
        *after.faults,
        *shapes,
        *judge_updates(before, after, facts),
        *judge_scopes(after, facts),
        *judge_references(after, facts),
        *judge_names(after),
        *judge_collisions(before, after, facts),
        *judge_rights(after, facts),
    ]
    unknowns = dict.fromkeys((*after.unknowns, *unjudged))
    return replace(
        after,
        faults=tuple(dict.fromkeys(faults)),
        unknowns=tuple(unknowns),
        notes=(*after.notes, *adopted(before, after, facts)),
    )


@dataclass(frozen=True, slots=True)
class WantedFacts:
    """What to look up in the cluster before an outcome is judged."""

    kinds: frozenset[Kind]
    """Including those of wrapped objects."""
    composed: frozenset[Kind]
    """Kinds that are composed directly, without those whose CRD the order creates."""
    namespaces: frozenset[str]
    keys: frozenset[ObjectKey]
    """Objects that the order does not own yet."""
    references: frozenset[ObjectKey] = frozenset()
    """What its objects refer to and it does not make; configs without a version."""
    wrapped: frozenset[tuple[Kind, ObjectKey]] = frozenset()
    """Kinds that only Objects make, with the Object's config. Empty if a chart may bring them."""


def wanted_facts(
    before: Assembly, after: Assembly, *, existing_paths: Collection[str] | None = None
) -> WantedFacts:
    """
    Return what to look up.

    Args:
        existing_paths: As `Facts.existing_paths`.
    """
    existing_paths = before.observed if existing_paths is None else existing_paths
    objects = list(objects_of(after))
    defined = {_defined(obj.manifest) for obj in objects if obj.kind.kind.endswith("Definition")}
    composed = {obj.kind for obj in objects if not obj.prefix}
    composed_namespaces = {
        metadata(obj.manifest).get("name") for obj in objects if obj.kind.kind == "Namespace"
    }
    homes = {metadata(obj.manifest).get("namespace") for obj in objects if not obj.prefix}
    homes -= {metadata(after.xr).get("namespace"), None, ""}
    new = {
        ObjectKey.of(obj.manifest)
        for obj in objects
        if not obj.prefix and obj.path not in existing_paths
        and metadata(obj.manifest).get("name")
    }  # fmt: skip
    return WantedFacts(
        frozenset(obj.kind for obj in objects),
        frozenset(kind for kind in composed if (kind.group, kind.kind) not in defined),
        frozenset(str(home) for home in homes - composed_namespaces),
        frozenset(new),
        references_of(after),
        frozenset(_wrapped(objects, after, defined)),
    )


def _wrapped(
    objects: Sequence[OutcomeObject], after: Assembly, defined: Collection[tuple[str, str]]
) -> Iterator[tuple[Kind, ObjectKey]]:
    if any(obj.kind.group.startswith("helm.") or obj.kind.kind == "Application" for obj in objects):
        return  # which kinds a chart or another delivery brings is not known
    for obj in objects:
        if obj.prefix and (obj.kind.group, obj.kind.kind) not in defined:
            kind, config = wrapped_with(obj, after)
            if config is not None:
                yield kind, config


def _defined(manifest: Manifest) -> tuple[str, str]:
    """Return group and kind that a CRD or XRD defines."""
    return str(dig(manifest, "spec", "group")), str(dig(manifest, "spec", "names", "kind"))


def collisions(orders: Mapping[str, Assembly]) -> Mapping[str, Mapping[ObjectKey, str]]:
    """
    Return for each order the object names that another order uses too, and which order.

    For callers that have the assemblies of many orders; pass each order its part as
    `Facts.other_orders`.
    """
    first: dict[ObjectKey, list[str]] = {}
    for order, assembly in orders.items():
        for key in taken_names(assembly):
            first.setdefault(key, []).append(order)
    collisions_by_order: dict[str, dict[ObjectKey, str]] = {}
    for key, names in first.items():
        for name in names if len(names) > 1 else ():
            collisions_by_order.setdefault(name, {})[key] = first_and_more(
                sorted(set(names) - {name})
            )
    return collisions_by_order
