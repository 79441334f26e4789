"""
Twins of kagent and of Kyverno, as far as the kit sees them: no agent thinks, no policy holds.

kagent makes a Deployment of each Agent, under the Agent's name and as field manager ``kagent``,
and does not say how many replicas: so whoever owns that field switches it. An Agent is Ready while
its Deployment has replicas available. ModelConfigs, RemoteMCPServers and Kyverno's Policies are
accepted as they are. The CRDs are permissive ones of the demo.

Works on any ``ports.cluster.Cluster``; called by ``story``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orderkit.adapters.embedded.assembly.events import text_of
from orderkit.adapters.embedded.controller import Controller
from orderkit.adapters.embedded.providers.crds import OPEN, crd
from orderkit.core.objects.conditions import Condition, merged
from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey, controller, dig, metadata
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster

AGENT = Kind("kagent.dev", "v1alpha2", "Agent")
MODEL_CONFIG = Kind("kagent.dev", "v1alpha2", "ModelConfig")
TOOL_SERVER = Kind("kagent.dev", "v1alpha2", "RemoteMCPServer")
POLICY = Kind("kyverno.io", "v1", "Policy")
DEPLOYMENT = Kind("apps", "v1", "Deployment")
OWNER = "kagent"
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
        self._controller.watch(DEPLOYMENT, _agents_of)

    def start(self) -> None:
        """Bring the CRDs and begin."""
        for kind in _KINDS:
            self._cluster.apply(crd(kind, namespaced=True, spec=OPEN, status=OPEN), owner=OWNER)
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    def _reconcile(self, key: ObjectKey) -> float | None:
        found = self._cluster.get(key)
        if found is None or metadata(found).get("deletionTimestamp"):
            return None
        if key.kind == AGENT:
            deployment = self._cluster.apply(_deployment(found), owner=OWNER)
            up = bool(dig(deployment, "status", "availableReplicas", default=0))
            self._say(found, (_ACCEPTED, _READY if up else _UNREADY))
        else:
            self._say(found, (_READY,) if key.kind == POLICY else (_ACCEPTED,))
        return None

    def _say(self, found: Manifest, conditions: Sequence[Condition]) -> None:
        meta = metadata(found)
        said = merged(
            dig(found, "status", "conditions", default=None) or (),
            *conditions,
            generation=int(meta.get("generation", 1)),
            now=text_of(self._clock.now()),
        )
        head = {"apiVersion": found["apiVersion"], "kind": found["kind"]}
        place = {"name": meta["name"], "namespace": meta["namespace"]}
        status = {**head, "metadata": place, "status": {"conditions": said}}
        self._cluster.apply(status, owner=OWNER, status=True)


def _agents_of(deployment: Manifest) -> Iterable[ObjectKey]:
    owner = controller(deployment)
    if owner is None or owner.get("kind") != AGENT.kind:
        return ()
    return (ObjectKey(AGENT, owner["name"], metadata(deployment)["namespace"]),)


def _deployment(agent: Manifest) -> Manifest:
    """Return what kagent makes of an Agent; how many replicas is not its business."""
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
