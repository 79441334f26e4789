"""
Station ``emit-budget``: the agent's budget, an XR of its own in the agent's Namespace.

Its name is the agent's name: the chat looks it up by that. It decides by itself whether the agent
may go on; nothing here looks at money. Ready is it once it was seen Ready with its newest values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.crossplane.station import StationRequest, StationResponse

from .agent import BUDGET_PART, Agent, started


def emit_budget(request: StationRequest) -> StationResponse:
    """Want the XAgentBudget, and show the budget as people write money."""
    agent = started(request)
    if not agent.dataset:
        return agent.response
    spec = agent.spec
    more = {key: spec[key] for key in ("windowStart",) if key in spec}
    if "pricingRef" in agent.settings:
        more["pricingRef"] = agent.settings["pricingRef"]
    wanted = {
        "agentName": agent.name,
        "budgetUsd": spec["budgetUsd"],
        "owner": spec["owner"],
        "enforcement": spec.get("enforcement", "enabled"),
        **more,
        "targets": [{"name": "planner", "replicas": 1}, {"name": "worker", "replicas": 1}],
    }
    agent.want(
        BUDGET_PART,
        {
            "apiVersion": "whisperops.io/v1alpha1",
            "kind": "XAgentBudget",
            "metadata": agent.metadata(agent.name),
            "spec": wanted,
        },
    )
    agent.settle(BUDGET_PART, ready=_applied(agent, wanted))
    agent.response.merge_status({"budget": f"{spec['budgetUsd']:.2f}"})
    return agent.response


def _applied(agent: Agent, wanted: Mapping[str, Any]) -> bool:
    """
    Say whether the budget was seen to be Ready with just these values.

    Auto-ready would take the Ready of the values before: then an agent counts as ready while its
    raised budget has not let it run again yet.
    """
    seen = agent.request.observed_resource(BUDGET_PART) or {}
    generation = (seen.get("metadata") or {}).get("generation")
    conditions = {
        found.get("type"): found
        for found in (seen.get("status") or {}).get("conditions") or ()
        if generation in (None, found.get("observedGeneration", generation))
    }
    spec = seen.get("spec") or {}
    return all(spec.get(key) == value for key, value in wanted.items()) and all(
        conditions.get(type_, {}).get("status") == "True" for type_ in ("Synced", "Ready")
    )
