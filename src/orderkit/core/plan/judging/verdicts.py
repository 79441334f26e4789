"""What a judgement is made of: the facts that are at hand, and the codes of what is found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.core.schema.known.known_kinds import GroupKind, SchemaSet


class OutcomeRule(StrEnum):
    """Which rule a fault breaks. The values are stable."""

    SCHEMA = "schema"
    """The API server would refuse the object, or drop a field it does not know."""
    TRANSITION = "transition"
    """It would refuse the step from the old object to the new one."""
    UNKNOWN_KIND = "unknown-kind"
    """Nothing serves or delivers the kind."""
    SCOPE = "scope"
    """A namespaced XR composes what has no namespace, or a namespaced object has none."""
    NO_NAMESPACE = "no-namespace"
    """The namespace does not exist, and nothing here makes it."""
    OWNER = "owner"
    """Owner references that the API server refuses, or that the garbage collector acts on."""
    RIGHTS = "rights"
    """Crossplane may not compose the kind."""
    NAME = "name"
    """A name, label or annotation that Kubernetes does not take."""
    COLLISION = "collision"
    """Two parts of the order, or of two orders, are the same object."""
    TAKEN = "taken"
    """The object exists, and something else controls it."""
    LIMIT = "limit"
    """More than the team may have."""


@dataclass(frozen=True, slots=True)
class JudgingFacts:
    """What is known when an outcome is judged; None and empty: not asked."""

    schemas: SchemaSet = field(default_factory=SchemaSet)
    assembled: Collection[GroupKind] = ()
    """Kinds of XRs that are judged where they are assembled."""
    roles: Sequence[Manifest] = ()
    """ClusterRoles, those of the pack and those of the cluster."""
    unserved: Collection[Kind] = ()
    """Kinds that the cluster was asked for and does not serve, and the pack does not deliver."""
    missing_namespaces: Collection[str] = ()
    """Namespaces that the cluster was asked for and does not have."""
    living: Mapping[ObjectKey, Manifest] = field(default_factory=dict)
    """Objects of the cluster under names that the order would take."""
    existing_paths: Collection[str] | None = None
    """Paths of what the order has in the cluster; None: everything that it was to have before."""
    other_orders: Mapping[ObjectKey, str] = field(default_factory=dict)
    """Names that other orders take, and which order."""
