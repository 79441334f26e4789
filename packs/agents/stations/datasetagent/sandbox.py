"""Where the worker's Python runs: a Deployment with the dataset, and kagent's entry for it."""

from __future__ import annotations

from typing import Any

from .agent import KEY_SECRET, MEMORY, Agent
from .pods import Program, deployment, service

_NAME = "sandbox"
_KEYS = "/var/run/gcp"


def sandbox(agent: Agent) -> dict[str, Any]:
    """Return the Deployment, with enough memory for this dataset."""
    images = agent.settings.get("images") or {}
    return deployment(
        agent,
        Program(
            _NAME,
            str(images.get("sandbox", "sandbox")),
            {
                "DATASET": str(agent.dataset["gcsPath"]),
                "BUCKET": agent.bucket,
                "GOOGLE_APPLICATION_CREDENTIALS": f"{_KEYS}/private_key",
            },
            f"{int(agent.request.context[MEMORY])}Mi",
            mounts={_KEYS: {"secret": {"secretName": KEY_SECRET}}},
        ),
    )


def sandbox_service(agent: Agent) -> dict[str, Any]:
    """Return its Service."""
    return service(agent, _NAME)


def sandbox_tools(agent: Agent) -> dict[str, Any]:
    """Return kagent's entry for the tools that the sandbox serves."""
    return {
        "apiVersion": "kagent.dev/v1alpha2",
        "kind": "RemoteMCPServer",
        "metadata": agent.metadata(_NAME),
        "spec": {
            "description": "Runs Python over the dataset.",
            "protocol": "STREAMABLE_HTTP",
            "url": f"http://{_NAME}.{agent.namespace}.svc/mcp",
            "timeout": "120s",
        },
    }
