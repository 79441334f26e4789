"""
Station ``render-workloads``: the Namespace, and the fourteen things of Kubernetes inside it.

The Namespace is wanted always, the rest once it is observed. Kinds that function-auto-ready never
judges are judged here: NetworkPolicy and RoleBinding are ready once they exist, kagent's
ModelConfig and RemoteMCPServer once kagent has accepted them; planner and worker of a paused agent
run nothing on purpose, and count as ready.
"""

from __future__ import annotations

from orderkit.core.crossplane.station import StationRequest, StationResponse

from .agent import NAMESPACE_PART, Agent, started
from .brain import model_config, planner, prompts, worker
from .chat import chat, chat_account, chat_ingress, chat_reader, chat_service
from .fences import defaults_policy, namespace, network_policy
from .sandbox import sandbox, sandbox_service, sandbox_tools


def render_workloads(request: StationRequest) -> StationResponse:
    """Want the Namespace and what runs in it, and say what of it is ready."""
    agent = started(request)
    if not agent.dataset:
        return agent.response
    agent.response.want(NAMESPACE_PART, namespace(agent))
    for part, make in _PARTS.items():
        agent.want(part, make(agent))
    _settle(agent)
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


def _settle(agent: Agent) -> None:
    for part in ("network-policy", "chat-reader"):
        agent.settle(part, ready=agent.exists(part))
    for part in ("model-config", "sandbox-tools"):
        agent.settle(part, ready=agent.says(part, "Accepted", "Ready"))
    if agent.paused:
        for part in ("planner", "worker"):
            agent.settle(part, ready=agent.exists(part))
