"""Station ``foundation``: the Namespace, its squad's quota, and who reaches the database."""

from __future__ import annotations

from orderkit.stations import StationRequest, StationResponse

from .environment import NAMESPACE, PORT, Environment, start


def foundation(request: StationRequest) -> StationResponse:
    """Want the Namespace always, quota and NetworkPolicy once it exists."""
    environment = start(request)
    if isinstance(environment, StationResponse):
        return environment
    labels = {
        **environment.labels,
        "pod-security.kubernetes.io/enforce": "restricted",
    }
    environment.response.want(
        NAMESPACE,
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": environment.namespace, "labels": labels},
        },
    )
    _want_quota(environment)
    if not environment.uses_rds:
        _want_network_policy(environment)
    environment.response.merge_status({"namespace": environment.namespace})
    return environment.response


def _want_quota(environment: Environment) -> None:
    quotas = environment.settings.values["quotas"]
    squad_quota = (quotas.get("squads") or {}).get(environment.spec["squad"]) or {}
    environment.parts.want(
        "quota",
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {},
            "spec": {"hard": {**quotas["default"], **squad_quota}},
        },
    )


def _want_network_policy(environment: Environment) -> None:
    """Only the backend reaches the database."""
    environment.parts.want(
        "database-access",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {},
            "spec": {
                "podSelector": {"matchLabels": {"app": "database"}},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"podSelector": {"matchLabels": {"app": "backend"}}}],
                        "ports": [{"protocol": "TCP", "port": PORT}],
                    }
                ],
            },
        },
    )
