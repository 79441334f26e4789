"""
Station ``render``: the replicas of the agent's Deployments, and nothing else of them.

The Deployments are kagent's. So each is touched through an Object of provider-kubernetes that may
observe and update, and whose manifest is sparse: by server-side apply its manager owns
``spec.replicas`` alone. It neither creates nor deletes a Deployment. The flavour is the
namespaced one, since a namespaced XR composes namespaced kinds only.
"""

from __future__ import annotations

from typing import Any

from orderkit.core.crossplane.station import StationRequest, StationResponse

from .deciding import PAUSED
from .targets import Target, targets_of


def render(request: StationRequest) -> StationResponse:
    """
    Want no replicas while paused, else those of the targets.

    An Object counts as ready once its Deployment was seen with the wanted replicas: until then the
    XR is not Ready, so whoever waits for Ready knows that the agent was paused, or runs again.
    ``applied`` says the same of those Deployments that are there at all.
    """
    response = StationResponse.to(request)
    paused = request.context.get(PAUSED)
    if paused is None:
        response.fatal("no decision in the context: step decide must come before this one")
        return response
    applied = True
    for target in targets_of(request.xr):
        replicas = 0 if paused else target.replicas
        response.want(target.part, _object(request, target, replicas))
        response.set_ready(target.part, ready=target.has_replicas(request, replicas))
        applied &= target.has_replicas(request, replicas) or target.unreachable(request)
    response.merge_status({"applied": applied})
    return response


def _object(request: StationRequest, target: Target, replicas: int) -> dict[str, Any]:
    namespace = request.xr["metadata"]["namespace"]
    settings: dict[str, Any] = request.input.get("settings") or {}
    return {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {"name": target.part, "namespace": namespace},
        "spec": {
            "managementPolicies": ["Observe", "Update"],
            "forProvider": {
                "manifest": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": target.deployment, "namespace": namespace},
                    "spec": {"replicas": replicas},
                },
            },
            "providerConfigRef": {
                "kind": "ClusterProviderConfig",
                "name": settings.get("providerConfig", "in-cluster"),
            },
        },
    }
