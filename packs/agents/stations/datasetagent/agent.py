"""
The agent that an XR describes: names that several stations must agree on, and shared functions.

`Agent.of` reads the XR and what earlier stations put into the context. `Agent.want` adds parts
inside the agent's Namespace only once that Namespace is observed: Crossplane gives up the whole
round at the first object whose namespace is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.stations import StationRequest, StationResponse

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
    spec: Mapping[str, Any]
    dataset: Mapping[str, Any]
    """``name``, ``displayName``, ``gcsPath``, ``sizeBytes``; empty before validate-dataset."""
    settings: Mapping[str, Any]
    """``settings`` of the step's input, which the pack's owner may change."""

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
        """The labels of every part that people may look for."""
        return {"whisperops.io/agent": self.name, "whisperops.io/owner": str(self.spec["owner"])}

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
        """Want a part inside the agent's Namespace, once that is observed."""
        if self.request.observed_resource(NAMESPACE_PART) is not None:
            self.response.want(part, manifest)

    def set_ready(self, part: str, *, ready: bool) -> None:
        """Set the readiness of a part that auto-ready cannot judge, if it is wanted already."""
        if part in self.response.desired.resources:
            self.response.set_ready(part, ready=ready)

    def exists(self, part: str) -> bool:
        return self.request.observed_resource(part) is not None

    def has_condition(self, part: str, *types: str) -> bool:
        """Return whether one of these conditions of a part is True."""
        status = (self.request.observed_resource(part) or {}).get("status") or {}
        return any(
            condition.get("type") in types and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        )


def start(request: StationRequest) -> Agent:
    """Start a station that needs the dataset's facts; a fatal result says if they are missing."""
    agent = Agent.of(request, StationResponse.to(request))
    if not agent.dataset:
        agent.response.fatal("no dataset in the context: step validate-dataset must come first")
    return agent
