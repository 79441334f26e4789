"""
Delete objects of an Application: one during a sync, or all when the Application is deleted.

Deletion is foreground unless told otherwise, guarded by the object's uid, and backwards through
the waves. Objects marked ``Prune=false`` (sync) or ``Delete=false`` (end), CRDs (end) and Helm's
``keep`` are left alone. ``=confirm`` counts as ``=false``: nobody can confirm here. Both options
count at objects only: among those of an Application Argo CD 3.2 does not look for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ground.argocd.sync_rules import deletion_waves, sync_options
from ground.errors import OrderkitError
from ground.objects.kube_objects import CRD, Manifest, ObjectKey, annotations_of, metadata
from orderkit.ports.cluster import Cluster, Propagation
from orderkit_standins.argocd.spec import is_deleting

Code = Literal["Synced", "SyncFailed", "Pruned", "PruneSkipped"]
"""Result codes as they stand in ``syncResult.resources[].status``."""

# "confirm" counts like "false": nobody can confirm here
_KEEP = ("false", "confirm")
_HELM_POLICY = "helm.sh/resource-policy"
_PROPAGATION: dict[str, Propagation] = {
    "PrunePropagationPolicy=background": "Background",
    "PrunePropagationPolicy=orphan": "Orphan",
}


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The result of one object."""

    code: Code
    message: str


def may_prune(live: Manifest, options: frozenset[str]) -> bool:
    """Say whether a sync with these options may delete an extra object, whose own count first."""
    return not _keeps(live, "Prune", options)


def prune_object(
    cluster: Cluster, live: Manifest, *, is_allowed: bool, options: frozenset[str]
) -> PruneResult:
    """
    Delete one extra object, or say why not. Idempotent.

    Args:
        is_allowed: Whether the operation prunes.
    """
    if not is_allowed:
        return PruneResult("PruneSkipped", "ignored (requires pruning)")
    if not may_prune(live, options):
        return PruneResult("PruneSkipped", "ignored (no prune)")
    policies: list[Propagation] = [
        _PROPAGATION[option] for option in options if option in _PROPAGATION
    ]
    try:
        _delete(cluster, live, policies[0] if policies else "Foreground")
    except OrderkitError as error:
        return PruneResult("SyncFailed", str(error))
    return PruneResult("Pruned", "pruned")


def delete_next_wave(
    cluster: Cluster, live: Iterable[Manifest], *, policy: Propagation, options: frozenset[str]
) -> list[ObjectKey]:
    """
    Take one step of an Application's end and return what still has to go.

    Idempotent; an empty answer means that all is gone.
    """
    remaining = list(live)
    doomed = [manifest for manifest in remaining if not _survives(manifest, options)]
    # nothing new goes while an object of this Application waits for its own deletion
    if not any(is_deleting(manifest) for manifest in remaining):
        for manifest in next(iter(deletion_waves(doomed)), []):
            _delete(cluster, manifest, policy)
    return [ObjectKey.of(manifest) for manifest in doomed]


def _survives(live: Manifest, options: frozenset[str]) -> bool:
    kind = ObjectKey.of(live).kind
    is_crd = (kind.group, kind.kind) == (CRD.group, CRD.kind)
    is_kept = annotations_of(live).get(_HELM_POLICY) == "keep"
    return is_crd or is_kept or _keeps(live, "Delete", options)


def _keeps(live: Manifest, verb: str, options: frozenset[str]) -> bool:
    for chosen in (sync_options(live), options):
        values = [option.partition("=")[2] for option in chosen if option.startswith(f"{verb}=")]
        if values:
            return any(value in _KEEP for value in values)
    return False


def _delete(cluster: Cluster, live: Manifest, policy: Propagation) -> None:
    if not is_deleting(live):
        uid = str(metadata(live).get("uid", ""))
        cluster.delete(ObjectKey.of(live), propagation=policy, uid=uid)
