"""The facts that outcomes are judged by, and the codes of the rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from kubeschema.known.known_kinds import GroupKind, SchemaSet
from kubeschema.known.managed_behaviour import Behaviours


class OutcomeRule(StrEnum):
    """The rule that a fault breaks. The values are stable."""

    SCHEMA = "schema"
    """The API server would refuse the object, or drop a field it does not know."""
    TRANSITION = "transition"
    """The API server would refuse the change from the old object to the new one."""
    IMMUTABLE = "immutable"
    """The API server would refuse another value of a field of its own kinds."""
    REPLACES = "needs-replacement"
    """The provider would refuse the change: only another resource could have the value."""
    UNKNOWN_KIND = "unknown-kind"
    """Nothing serves or delivers the kind."""
    SCOPE = "scope"
    """A namespaced XR composes a cluster-scoped object, or a namespace is missing."""
    NO_NAMESPACE = "no-namespace"
    """The namespace does not exist, and the order does not create it."""
    MISSING = "missing"
    """A ProviderConfig or a Secret does not exist, and the order does not create it."""
    OWNER = "owner"
    """Owner references that the API server refuses, or that the garbage collector acts on."""
    RIGHTS = "rights"
    """Crossplane may not compose the kind."""
    NAME = "name"
    """A name, label or annotation that Kubernetes refuses."""
    COLLISION = "collision"
    """Two resources of the order, or of two orders, are the same object."""
    TAKEN = "taken"
    """The object exists, and something else controls it."""
    LIMIT = "limit"
    """More than the team's limit."""


@dataclass(frozen=True, slots=True)
class JudgingFacts:
    """What is known when an outcome is judged; None or empty: not looked up."""

    schemas: SchemaSet = field(default_factory=SchemaSet)
    assembled: Collection[GroupKind] = ()
    """Kinds of XRs that are judged where they are assembled."""
    roles: Sequence[Manifest] = ()
    """ClusterRoles of the pack and of the cluster."""
    unserved: Collection[Kind] = ()
    """Kinds that the cluster does not serve and the pack does not deliver."""
    unserved_inside: Collection[tuple[Kind, ObjectKey]] = ()
    """The same of wrapped objects, each with its Object's config, if that makes them here."""
    missing_namespaces: Collection[str] = ()
    """Namespaces that the cluster does not have."""
    missing: Collection[ObjectKey] = ()
    """ProviderConfigs and Secrets that objects refer to, and the cluster does not have."""
    living: Mapping[ObjectKey, Manifest] = field(default_factory=dict)
    """Objects in the cluster under names that the order would use."""
    existing_paths: Collection[str] | None = None
    """Paths of the order's objects in the cluster; None: those of the outcome before."""
    behaviours: Behaviours = field(default_factory=dict)
    """What managed kinds are like."""
    other_orders: Mapping[ObjectKey, str] = field(default_factory=dict)
    """Names that other orders use, and which order."""
