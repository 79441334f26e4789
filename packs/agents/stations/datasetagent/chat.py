"""The chat in the browser: it may read the agent's budget, and is reachable from outside."""

from __future__ import annotations

from orderkit.stations import Manifest, manifest

from .agent import Agent
from .pods import Program, deployment, service

_NAME, _RBAC = "chat", "rbac.authorization.k8s.io"


def chat_account(_: Agent) -> Manifest:
    """Return the account that the chat runs as."""
    return manifest("v1", "ServiceAccount", _NAME)


def chat_reader(agent: Agent) -> Manifest:
    """Return its right to read budgets, in this Namespace only."""
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "whisperops-read-budgets"}
    return manifest(
        f"{_RBAC}/v1",
        "RoleBinding",
        "chat-reads-budget",
        roleRef=role,
        subjects=[{"kind": "ServiceAccount", "name": _NAME, "namespace": agent.namespace}],
    )


def chat(agent: Agent) -> Manifest:
    """Return the Deployment."""
    images = agent.settings.get("images") or {}
    return deployment(
        agent,
        Program(
            _NAME,
            str(images.get("chat", "chat")),
            {
                "AGENT": agent.name,
                "AGENT_NAMESPACE": agent.namespace,
                "PLANNER": f"{agent.namespace}/planner",
                "BUDGET": agent.name,
                "TITLE": str(agent.dataset["displayName"]),
            },
            "256Mi",
            account=_NAME,
        ),
    )


def chat_service(_: Agent) -> Manifest:
    """Return its Service."""
    return service(_NAME)


def chat_ingress(agent: Agent) -> Manifest:
    """Return the Ingress; it uses the ingress controller's own certificate."""
    backend = {"service": {"name": _NAME, "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec = {
        "ingressClassName": agent.settings.get("ingressClass", "nginx"),
        "tls": [{"hosts": [agent.host]}],
        "rules": [{"host": agent.host, "http": {"paths": [path]}}],
    }
    return manifest("networking.k8s.io/v1", "Ingress", _NAME, spec=spec)
