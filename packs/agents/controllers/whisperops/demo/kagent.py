"""
Twins of kagent and of Kyverno, as far as the kit sees them: no agent thinks, no policy applies.

kagent makes a Deployment of each Agent, under the Agent's name and as field manager ``kagent``,
and leaves ``spec.replicas`` to whoever owns that field. An Agent is Ready while its Deployment has
replicas available. ModelConfigs, RemoteMCPServers and Kyverno's Policies are accepted as they are.
The CRDs accept anything.

Works on every ``Cluster``; used by ``story`` and ``playing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orderkit.controllers import (
    Cluster,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    SystemClock,
    dig,
    merge_conditions,
    metadata,
)
from orderkit_standins.testing import Controller, permissive_crd

AGENT = Kind("kagent.dev", "v1alpha2", "Agent")
MODEL_CONFIG = Kind("kagent.dev", "v1alpha2", "ModelConfig")
TOOL_SERVER = Kind("kagent.dev", "v1alpha2", "RemoteMCPServer")
POLICY = Kind("kyverno.io", "v1", "Policy")
DEPLOYMENT = Kind("apps", "v1", "Deployment")
FIELD_MANAGER = "kagent"
_ACCEPTED = Condition("Accepted", "True", "Reconciled")
_READY = Condition("Ready", "True", "Ready")
_UNREADY = Condition("Ready", "False", "DeploymentNotReady")
_KINDS = (AGENT, MODEL_CONFIG, TOOL_SERVER, POLICY)


class Operators:
    """Both operators of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._clock = cluster, SystemClock()
        self._controller = Controller("kagent", cluster, self._reconcile, workers=1)
        for kind in _KINDS:
            self._controller.watch(kind)
        self._controller.watch(DEPLOYMENT, _owning_agents)

    def start(self) -> None:
        """Apply the CRDs and start reconciling."""
        for kind in _KINDS:
            self._cluster.apply(permissive_crd(kind, namespaced=True), owner=FIELD_MANAGER)
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    def _reconcile(self, key: ObjectKey) -> float | None:
        manifest = self._cluster.get(key)
        if manifest is None or metadata(manifest).get("deletionTimestamp"):
            return None
        if key.kind == AGENT:
            deployment = self._cluster.apply(_deployment(manifest), owner=FIELD_MANAGER)
            available = bool(dig(deployment, "status", "availableReplicas", default=0))
            self._set_conditions(manifest, (_ACCEPTED, _READY if available else _UNREADY))
        else:
            self._set_conditions(manifest, (_READY,) if key.kind == POLICY else (_ACCEPTED,))
        return None

    def _set_conditions(self, manifest: Manifest, new: Sequence[Condition]) -> None:
        meta = metadata(manifest)
        conditions = merge_conditions(
            dig(manifest, "status", "conditions", default=None) or (),
            *new,
            generation=int(meta.get("generation", 1)),
            now=self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        status = {
            "apiVersion": manifest["apiVersion"],
            "kind": manifest["kind"],
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "status": {"conditions": conditions},
        }
        self._cluster.apply(status, owner=FIELD_MANAGER, status=True)


def _owning_agents(deployment: Manifest) -> Iterable[ObjectKey]:
    meta = metadata(deployment)
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") == AGENT.kind:
            yield ObjectKey(AGENT, reference["name"], meta["namespace"])


def _deployment(agent: Manifest) -> Manifest:
    """Return what kagent makes of an Agent, without replicas."""
    meta = metadata(agent)
    labels = {"app": "kagent", "kagent": meta["name"]}
    owner = {
        "apiVersion": agent["apiVersion"],
        "kind": agent["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    container = {"name": "agent", "image": "example.org/kagent/app:1"}
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
