"""
What is known about kinds (schema, scope, plural) from CRDs, XRDs and OpenAPI documents.

The layers of a `SchemaSet`: schemas passed for this plan, schemas that the cluster serves, schemas
that the pack delivers or keeps in ``schemas/``. The first decides about scope and names; an object
must fit all of them, because one of them may accept anything (a stand-in's, an old one's). A kind
in no layer is unknown, and callers report that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ground.objects.kube_objects import CRD, XRD, Kind, Manifest, dig, is_namespaced, metadata
from kubeschema.known.managed_behaviour import completed_crd
from kubeschema.pruning import PRESERVE
from kubeschema.validate import Validator
from kubeschema.xrd import BrokenXrdError, claim_crd_for, crd_for

__all__ = ["GroupKind", "KnownKind", "SchemaSet", "is_servers_own"]

_SERVERS_GROUPS = {"", "apps", "batch", "autoscaling", "policy", "extensions"}
_CROSSPLANES_GROUPS = {"apiextensions", "ops", "pkg", "protection"}
_GRANTED_BY = ("pkg.crossplane.io", "apiextensions.crossplane.io")
"""API groups of the owners of CRDs whose objects Crossplane's RBAC manager lets it compose."""


@dataclass(frozen=True, slots=True)
class KnownKind:
    """What is known about one kind."""

    validator: Validator
    namespaced: bool
    plural: str
    granted: bool = False
    """Crossplane's RBAC manager grants the rights: an XR, or a kind installed by a package."""
    partial: bool = False
    """Only some versions are known. A version that is missing is unknown, not refused."""

    def is_open(self, version: str) -> bool:
        """Say whether the schema accepts any ``spec``, or any ``spec.forProvider``."""
        if version not in self.validator.versions:
            return False
        spec = dig(self.validator.schema(version), "properties", "spec", default={})
        for_provider = dig(spec, "properties", "forProvider", default={})
        return any(
            part.get(PRESERVE) and not part.get("properties") for part in (spec, for_provider)
        )


GroupKind = tuple[str, str]
Layer = Mapping[GroupKind, KnownKind]


@dataclass(frozen=True, slots=True)
class SchemaSet:
    """Kinds by group and kind."""

    layers: tuple[Layer, ...] = ()

    def find(self, kind: Kind) -> KnownKind | None:
        """Return what is known about a kind in any version; None if unknown."""
        for layer in self.layers:
            known_kind = layer.get((kind.group, kind.kind))
            if known_kind and not (
                known_kind.partial and kind.version not in known_kind.validator.versions
            ):
                return known_kind
        return None

    def every(self, kind: Kind) -> tuple[KnownKind, ...]:
        """Return all schemas of a kind: what `find` returns, then others with its version."""
        known = [
            layer[kind.group, kind.kind]
            for layer in self.layers
            if (kind.group, kind.kind) in layer
        ]
        first = self.find(kind)
        others = [other for other in known if kind.version in other.validator.versions]
        return tuple(dict.fromkeys(([first] if first else []) + others))

    def namespaced(self, kind: Kind) -> bool | None:
        """Return whether objects of a kind are namespaced; None if unknown."""
        known_kind = self.find(kind)
        if known_kind is not None:
            return known_kind.namespaced
        return is_namespaced(kind) if is_servers_own(kind) else None


def is_servers_own(kind: Kind) -> bool:
    """Return whether Kubernetes or Crossplane provides the kind; our table has its scope then."""
    group = kind.group
    head, _, parent_domain = group.partition(".")
    plain = group in _SERVERS_GROUPS or (parent_domain == "k8s.io" and head != "gateway")
    return (
        plain
        or group.endswith(".authorization.k8s.io")
        or (parent_domain == "crossplane.io" and head in _CROSSPLANES_GROUPS)
    )


def layer_of(manifests: Iterable[Manifest]) -> Layer:
    """Return the kinds that CRDs and XRDs among the objects define. Broken XRDs are skipped."""
    layer: dict[GroupKind, KnownKind] = {}
    for manifest in manifests:
        for crd in _definitions(manifest):
            definition = known_kind(crd)
            if definition is not None:
                names = crd["spec"]["names"]
                granted = definition.granted or Kind.of(manifest).kind == XRD.kind
                layer[crd["spec"]["group"], names["kind"]] = (
                    KnownKind(
                        definition.validator, definition.namespaced, definition.plural, granted=True
                    )
                    if granted
                    else definition
                )
    return layer


def _definitions(manifest: Manifest) -> list[Manifest]:
    kind = Kind.of(manifest)
    if (kind.group, kind.kind) == (CRD.group, CRD.kind):
        return [manifest]
    if (kind.group, kind.kind) != (XRD.group, XRD.kind):
        return []
    try:
        claim = claim_crd_for(manifest)
        return [crd_for(manifest), *([claim] if claim else [])]
    except (BrokenXrdError, KeyError, TypeError, AttributeError):
        return []  # `kit check` reports what is wrong


def known_kind(crd: Manifest) -> KnownKind | None:
    """Return what a CRD defines; None if it cannot be read."""
    names: Any = dig(crd, "spec", "names", default=None) or {}
    try:
        crd = completed_crd(crd)
        validator = Validator({**crd, "kind": CRD.kind})
    except (KeyError, TypeError, AttributeError):
        return None
    owners = metadata(crd).get("ownerReferences") or ()
    groups = {str(owner.get("apiVersion", "")).partition("/")[0] for owner in owners}
    return KnownKind(
        validator,
        dig(crd, "spec", "scope") == "Namespaced",
        str(names.get("plural") or ""),
        granted=not groups.isdisjoint(_GRANTED_BY),
    )
