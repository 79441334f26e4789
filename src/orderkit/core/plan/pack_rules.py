"""What a pack declares about outcomes, apart from how it assembles them: schemas, rights, data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ground.objects.kube_objects import Kind, Manifest
from kubeschema.known import Behaviour, Behaviours, GroupKind, Layer
from kubeschema.known.behaviours import behaviour_of
from orderkit.core.kit.kit_file import AcceptedDanger, Import

ANY_GROUP = "*"


@dataclass(frozen=True, slots=True)
class PackRules:
    """The rules for judging plans of a pack's orders; facts of a cluster are added to them."""

    delivered: Layer = field(default_factory=dict)
    """Kinds of the pack's CRDs and XRDs, and of its ``schemas/``."""
    described: frozenset[GroupKind] = frozenset()
    """Kinds of these that only ``schemas/`` has: the pack brings them to no cluster."""
    supplied: Layer = field(default_factory=dict)
    """Kinds passed for this plan. They take precedence over the cluster's."""
    roles: Sequence[Manifest] = ()
    """ClusterRoles that are aggregated to Crossplane's."""
    data_kinds: Mapping[GroupKind, bool] = field(default_factory=dict)
    """Kinds that the pack declares to hold data, or not; the group may be `ANY_GROUP`."""
    behaviours: Behaviours = field(default_factory=dict)
    """What managed kinds are like, by the pack's ``schemas/behaviour.yaml``."""
    team_fields: Mapping[GroupKind, str] = field(default_factory=dict)
    """The field of ``spec`` that names an order's team, dotted, by the kind of its XR."""

    imports: Mapping[GroupKind, Import] = field(default_factory=dict)
    """How orders take over what exists in the cloud, by the kind of their XR."""
    public_keys: Mapping[GroupKind, frozenset[str]] = field(default_factory=dict)
    """Keys of Secrets that kits declare public, by the kind of their XR."""
    accepts: Mapping[GroupKind, Sequence[AcceptedDanger]] = field(default_factory=dict)
    """Dangers that kits accept, by the kind of their XR."""
    settings: Sequence[Manifest] = ()
    """The pack's EnvironmentConfigs. A plan reads the cluster's instead."""

    def joined(self, other: PackRules) -> PackRules:
        """Return the rules of two packs combined. `other` takes precedence."""
        brought = {*self._brought, *other._brought}
        return PackRules(
            delivered={**self.delivered, **other.delivered},
            described=(self.described | other.described) - brought,
            supplied={**self.supplied, **other.supplied},
            roles=(*self.roles, *other.roles),
            data_kinds={**self.data_kinds, **other.data_kinds},
            behaviours={**self.behaviours, **other.behaviours},
            team_fields={**self.team_fields, **other.team_fields},
            imports={**self.imports, **other.imports},
            public_keys={**self.public_keys, **other.public_keys},
            accepts={**self.accepts, **other.accepts},
            settings=(*self.settings, *other.settings),
        )

    @property
    def _brought(self) -> frozenset[GroupKind]:
        return frozenset(self.delivered.keys() - self.described)

    def behaviour(self, kind: Kind) -> Behaviour:
        """Return how managed resources of a kind behave."""
        return behaviour_of(self.behaviours, kind.group, kind.kind)

    def public_keys_of(self, xr: Manifest) -> frozenset[str]:
        """Return the keys of Secrets that the kit of an XR declares public."""
        kind = Kind.of(xr)
        return self.public_keys.get((kind.group, kind.kind), frozenset())

    @property
    def scopes(self) -> dict[Kind, bool]:
        """Whether kinds are namespaced, in every version."""
        return {
            Kind(group, version, kind): known_kind.namespaced
            for layer in (self.delivered, self.supplied)
            for (group, kind), known_kind in layer.items()
            for version in known_kind.validator.versions
        }
