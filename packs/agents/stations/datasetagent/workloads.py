"""
Station ``render-workloads``: the Namespace, and the fourteen things of Kubernetes inside it.

The Namespace is always wanted, the rest once it is observed. kagent's ModelConfig and
RemoteMCPServer are ready once kagent has accepted them. Planner and worker of a paused agent have
no replicas on purpose and count as ready.
"""

from __future__ import annotations

from orderkit.stations import StationRequest, StationResponse

from .agent import NAMESPACE_PART, Agent, start
from .brain import model_config, planner, prompts, worker
from .chat import chat, chat_account, chat_ingress, chat_reader, chat_service
from .fences import defaults_policy, namespace, network_policy
from .sandbox import sandbox, sandbox_service, sandbox_tools


def render_workloads(request: StationRequest) -> StationResponse:
    """Want the Namespace and its parts, and set the readiness of some."""
    agent = start(request)
    if not agent.dataset:
        return agent.response
    agent.response.want(NAMESPACE_PART, namespace(agent))
    for part, make in _PARTS.items():
        agent.parts.want(part, make(agent), ready=_readiness(agent, part))
    agent.response.merge_status({"namespace": agent.namespace, "url": agent.url})
    return agent.response


_PARTS = {
    "prompts": prompts,
    "network-policy": network_policy,
    "model-config": model_config,
    "planner": planner,
    "worker": worker,
    "sandbox": sandbox,
    "sandbox-service": sandbox_service,
    "sandbox-tools": sandbox_tools,
    "chat-account": chat_account,
    "chat-reader": chat_reader,
    "chat": chat,
    "chat-service": chat_service,
    "chat-ingress": chat_ingress,
    "policy": defaults_policy,
}


def _readiness(agent: Agent, part: str) -> bool | None:
    if part in {"model-config", "sandbox-tools"}:
        return agent.parts.has_condition(part, "Accepted", "Ready")
    return agent.parts.exists(part) if agent.paused and part in {"planner", "worker"} else None
