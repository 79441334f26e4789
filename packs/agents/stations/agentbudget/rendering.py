"""
Station ``render``: the replicas of the agent's Deployments, and nothing else of them.

The Deployments belong to kagent. So each is changed through an Object of provider-kubernetes that
may only observe and update, with a manifest of one field: under server-side apply its manager owns
``spec.replicas`` only. It neither creates nor deletes a Deployment. The Object is of the
namespaced kind, because a namespaced XR can compose only namespaced kinds.
"""

from __future__ import annotations

from typing import Any

from orderkit.stations import StationRequest, StationResponse, managed, manifest

from .deciding import PAUSED
from .targets import Target, targets_of


def render(request: StationRequest) -> StationResponse:
    """
    Want 0 replicas while paused, else the targets' replicas.

    An Object is ready once its Deployment was observed with the desired replicas. Until then the XR
    is not Ready, so whoever waits for Ready knows that the agent was paused, or runs again.
    ``applied`` says the same of those Deployments that exist.
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
    deployment = manifest("apps/v1", "Deployment", spec={"replicas": replicas})
    deployment["metadata"] = {"name": target.deployment, "namespace": namespace}
    wrapper = managed(
        "kubernetes.m.crossplane.io/v1alpha1",
        "Object",
        {"manifest": deployment},
        provider_config=settings.get("providerConfig", "in-cluster"),
        policies=("Observe", "Update"),
    )
    return {**wrapper, "metadata": {"name": target.part, "namespace": namespace}}
