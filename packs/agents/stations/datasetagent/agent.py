"""
The agent that an XR asks for: names that several stations must agree on, and what they share.

`Agent.of` reads the XR and what earlier stations put into the context. Parts inside the agent's
Namespace are wanted through `Agent.want`, which holds them back until that Namespace is observed:
Crossplane gives up the whole round at the first object whose namespace is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.core.crossplane.station import StationRequest, StationResponse

DATASET, MEMORY = "whisperops.io/dataset", "whisperops.io/sandbox-memory"
"""Keys of the context: facts of the dataset, and the sandbox's memory in MiB."""
NAMESPACE_PART, BUDGET_PART = "namespace", "budget"
KEY_SECRET = "gcp-key"  # noqa: S105 - the name of a Secret
GRAFANA_LABEL = {"grafana_dashboard": "1"}


@dataclass(frozen=True, slots=True)
class Agent:
    """One order, understood."""

    request: StationRequest
    response: StationResponse
    spec: Mapping[str, Any]
    dataset: Mapping[str, Any]
    """``name``, ``displayName``, ``gcsPath``, ``sizeBytes``; empty before validate-dataset."""
    settings: Mapping[str, Any]
    """``settings`` of the step's input: what the pack's owner may set."""

    @classmethod
    def of(cls, request: StationRequest, response: StationResponse) -> Agent:
        """Read the request."""
        return cls(
            request,
            response,
            request.xr["spec"],
            request.context.get(DATASET) or {},
            request.input.get("settings") or {},
        )

    @property
    def name(self) -> str:
        return str(self.spec["agentName"])

    @property
    def namespace(self) -> str:
        return f"agent-{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything that people look for."""
        return {"whisperops.io/agent": self.name, "whisperops.io/owner": str(self.spec["owner"])}

    @property
    def bucket(self) -> str:
        """The agent's own bucket; bucket names are the world's, so the project is in it."""
        return f"{self.spec['projectId']}-agent-{self.name}"

    @property
    def account_email(self) -> str:
        return f"agent-{self.name}@{self.spec['projectId']}.iam.gserviceaccount.com"

    @property
    def host(self) -> str:
        """The host's name; ``baseDomain`` may carry a port, which is no part of it."""
        return f"agent-{self.name}.{str(self.spec['baseDomain']).partition(':')[0]}"

    @property
    def url(self) -> str:
        return f"https://agent-{self.name}.{self.spec['baseDomain']}/"

    @property
    def paused(self) -> bool:
        """Whether the budget has paused the agent: its own status is the only truth."""
        budget = self.request.observed_resource(BUDGET_PART) or {}
        return bool((budget.get("status") or {}).get("paused"))

    def metadata(self, name: str, **labels: str) -> dict[str, Any]:
        """Return the metadata of a part inside the agent's Namespace."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**self.labels, **labels},
        }

    def want(self, part: str, manifest: dict[str, Any]) -> None:
        """Want a part inside the agent's Namespace, once that is there."""
        if self.request.observed_resource(NAMESPACE_PART) is not None:
            self.response.want(part, manifest)

    def settle(self, part: str, *, ready: bool) -> None:
        """Say of a part, if it is wanted yet, whether it is ready: auto-ready never would."""
        if part in self.response.desired.resources:
            self.response.set_ready(part, ready=ready)

    def exists(self, part: str) -> bool:
        return self.request.observed_resource(part) is not None

    def says(self, part: str, *conditions: str) -> bool:
        """Say whether a part has one of these conditions, and it is True."""
        status = (self.request.observed_resource(part) or {}).get("status") or {}
        return any(
            found.get("type") in conditions and found.get("status") == "True"
            for found in status.get("conditions") or ()
        )


def started(request: StationRequest) -> Agent:
    """Begin a station that needs the dataset's facts; refuses if they are missing."""
    agent = Agent.of(request, StationResponse.to(request))
    if not agent.dataset:
        agent.response.fatal("no dataset in the context: step validate-dataset must come first")
    return agent
