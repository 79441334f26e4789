"""
The agent that an XR describes: names that several stations must agree on, and shared functions.

`Agent.of` reads the XR and what earlier stations put into the context. Its parts are inside the
agent's Namespace and wait until that is observed: Crossplane gives up the whole round at the first
object whose namespace is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.stations import Parts, StationRequest, StationResponse

DATASET, MEMORY = "whisperops.io/dataset", "whisperops.io/sandbox-memory"
"""Keys of the context: facts of the dataset, and the sandbox's memory in MiB."""
NAMESPACE_PART, BUDGET_PART = "namespace", "budget"
KEY_SECRET = "gcp-key"  # noqa: S105 - the name of a Secret
GRAFANA_LABEL = {"grafana_dashboard": "1"}


@dataclass(frozen=True, slots=True)
class Agent:
    """One order: its request, the response so far, and what earlier stations found out."""

    request: StationRequest
    response: StationResponse
    parts: Parts
    spec: Mapping[str, Any]
    dataset: Mapping[str, Any]
    """``name``, ``displayName``, ``gcsPath``, ``sizeBytes``; empty before validate-dataset."""
    settings: Mapping[str, Any]
    """``settings`` of the step's input, which the pack's owner may change."""

    @classmethod
    def of(cls, request: StationRequest, response: StationResponse) -> Agent:
        """Read the request."""
        spec = request.xr["spec"]
        labels = {
            "whisperops.io/agent": str(spec["agentName"]),
            "whisperops.io/owner": str(spec["owner"]),
        }
        return cls(
            request,
            response,
            Parts(request, response, labels, f"agent-{spec['agentName']}", (NAMESPACE_PART,)),
            spec,
            request.context.get(DATASET) or {},
            request.input.get("settings") or {},
        )

    @property
    def name(self) -> str:
        return str(self.spec["agentName"])

    @property
    def namespace(self) -> str:
        return self.parts.namespace

    @property
    def bucket(self) -> str:
        """The agent's own bucket. Bucket names are global, so the project is part of the name."""
        return f"{self.spec['projectId']}-agent-{self.name}"

    @property
    def account_email(self) -> str:
        return f"agent-{self.name}@{self.spec['projectId']}.iam.gserviceaccount.com"

    @property
    def host(self) -> str:
        """The host name, without the port that ``baseDomain`` may have."""
        return f"agent-{self.name}.{str(self.spec['baseDomain']).partition(':')[0]}"

    @property
    def url(self) -> str:
        return f"https://agent-{self.name}.{self.spec['baseDomain']}/"

    @property
    def paused(self) -> bool:
        """Whether the budget has paused the agent, by the budget's own status."""
        return bool(self.parts.observed(BUDGET_PART, "status", "paused"))


def start(request: StationRequest) -> Agent:
    """Start a station that needs the dataset's facts; a fatal result says if they are missing."""
    agent = Agent.of(request, StationResponse.to(request))
    if not agent.dataset:
        agent.response.fatal("no dataset in the context: step validate-dataset must come first")
    return agent
