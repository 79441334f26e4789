"""
The model, the two agents that kagent runs, and their prompts.

kagent makes a Deployment of each Agent, under the Agent's name; the budget sets its replicas. The
prompts are in a ConfigMap, with the owner's description exactly as it was entered.
"""

from __future__ import annotations

from orderkit.stations import Manifest, manifest

from .agent import KEY_SECRET, Agent

_KAGENT = "kagent.dev/v1alpha2"
_PROMPTS = "prompts"
_PLANNER = (
    "You plan analyses of one dataset. Break the question into small steps, hand each to the agent "
    "'worker', check what comes back, and answer in plain words. Never make up a number."
)
_WORKER = (
    "You analyse one dataset with Python in the sandbox. The file is already there: read it, do "
    "what the planner asks for, and answer with the numbers and the code that gave them."
)


def prompts(agent: Agent) -> Manifest:
    """Return the prompts, and the description exactly as it was entered."""
    dataset = agent.dataset
    about = f"The dataset is {dataset['displayName']} ({dataset['gcsPath']})."
    texts = {
        "description": str(agent.spec["description"]),
        "dataset": about,
        "planner": _prompt(_PLANNER, about, agent),
        "worker": _prompt(_WORKER, about, agent),
    }
    return manifest("v1", "ConfigMap", _PROMPTS, data=texts)


def _prompt(role: str, about: str, agent: Agent) -> str:
    return f"{role}\n\n{about}\n\nWhat its owner says:\n{agent.spec['description']}\n"


def model_config(agent: Agent) -> Manifest:
    """Return the model, with the key that pays for it."""
    model = agent.settings.get("model") or {}
    spec = {
        "provider": "GeminiVertexAI",
        "model": model.get("name", "gemini-2.5-flash"),
        "apiKeySecret": KEY_SECRET,
        "apiKeySecretKey": "private_key",
        "geminiVertexAI": {
            "projectID": agent.spec["projectId"],
            "location": model.get("location", "europe-west1"),
        },
    }
    return manifest(_KAGENT, "ModelConfig", "model", spec=spec)


def planner(_: Agent) -> Manifest:
    """Return the agent that people talk to; its tool is the worker."""
    tool = {
        "type": "Agent",
        "agent": {"apiGroup": "kagent.dev", "kind": "Agent", "name": "worker"},
    }
    return _agent("planner", "Plans analyses and answers.", tool)


def worker(_: Agent) -> Manifest:
    """Return the agent that computes; its tool is the sandbox."""
    server = {"apiGroup": "kagent.dev", "kind": "RemoteMCPServer", "name": "sandbox"}
    tool = {"type": "McpServer", "mcpServer": {**server, "toolNames": ["run_python"]}}
    return _agent("worker", "Runs analyses in the sandbox.", tool)


def _agent(name: str, description: str, tool: Manifest) -> Manifest:
    declarative = {
        "modelConfig": "model",
        "systemMessageFrom": {"type": "ConfigMap", "name": _PROMPTS, "key": name},
        "tools": [tool],
    }
    spec = {"type": "Declarative", "description": description, "declarative": declarative}
    return manifest(_KAGENT, "Agent", name, spec=spec)
