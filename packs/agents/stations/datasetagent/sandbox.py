"""Where the worker's Python runs: a Deployment with the dataset, and kagent's entry for it."""

from __future__ import annotations

from orderkit.stations import Manifest, manifest

from .agent import KEY_SECRET, MEMORY, Agent
from .pods import Program, deployment, service

_NAME = "sandbox"
_KEYS = "/var/run/gcp"


def sandbox(agent: Agent) -> Manifest:
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


def sandbox_service(_: Agent) -> Manifest:
    """Return its Service."""
    return service(_NAME)


def sandbox_tools(agent: Agent) -> Manifest:
    """Return kagent's entry for the tools that the sandbox serves."""
    spec = {
        "description": "Runs Python over the dataset.",
        "protocol": "STREAMABLE_HTTP",
        "url": f"http://{_NAME}.{agent.namespace}.svc/mcp",
        "timeout": "120s",
    }
    return manifest("kagent.dev/v1alpha2", "RemoteMCPServer", _NAME, spec=spec)
