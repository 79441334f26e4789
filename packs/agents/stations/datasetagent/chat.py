"""The chat in the browser: it may read the agent's budget, and is reachable from outside."""

from __future__ import annotations

from typing import Any

from .agent import Agent
from .pods import Program, deployment, service

_NAME = "chat"


def chat_account(agent: Agent) -> dict[str, Any]:
    """Return the account that the chat runs as."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": agent.metadata(_NAME)}


def chat_reader(agent: Agent) -> dict[str, Any]:
    """Return its right to read budgets, in this Namespace only."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": agent.metadata("chat-reads-budget"),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "whisperops-read-budgets",
        },
        "subjects": [{"kind": "ServiceAccount", "name": _NAME, "namespace": agent.namespace}],
    }


def chat(agent: Agent) -> dict[str, Any]:
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


def chat_service(agent: Agent) -> dict[str, Any]:
    """Return its Service."""
    return service(agent, _NAME)


def chat_ingress(agent: Agent) -> dict[str, Any]:
    """Return the Ingress; it uses the ingress controller's own certificate."""
    backend = {"service": {"name": _NAME, "port": {"name": "http"}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": agent.metadata(_NAME),
        "spec": {
            "ingressClassName": agent.settings.get("ingressClass", "nginx"),
            "tls": [{"hosts": [agent.host]}],
            "rules": [
                {
                    "host": agent.host,
                    "http": {
                        "paths": [{"path": "/", "pathType": "Prefix", "backend": backend}],
                    },
                }
            ],
        },
    }
