"""
Station ``emit-budget``: the agent's budget, an XR of its own in the agent's Namespace.

It has the agent's name, by which the chat looks it up. It decides by itself whether the agent may
continue; this station knows nothing of money. It is ready once it was observed Ready with its
newest values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.stations import StationRequest, StationResponse, manifest

from .agent import BUDGET_PART, Agent, start


def emit_budget(request: StationRequest) -> StationResponse:
    """Want the XAgentBudget, and show its amount in the status."""
    agent = start(request)
    if not agent.dataset:
        return agent.response
    spec = agent.spec
    optional = {key: spec[key] for key in ("windowStart",) if key in spec}
    if "pricingRef" in agent.settings:
        optional["pricingRef"] = agent.settings["pricingRef"]
    budget_spec = {
        "agentName": agent.name,
        "budgetUsd": spec["budgetUsd"],
        "owner": spec["owner"],
        "enforcement": spec.get("enforcement", "enabled"),
        **optional,
        "targets": [{"name": "planner", "replicas": 1}, {"name": "worker", "replicas": 1}],
    }
    budget = manifest("whisperops.io/v1alpha1", "XAgentBudget", agent.name, spec=budget_spec)
    agent.parts.want(BUDGET_PART, budget, ready=_is_applied(agent, budget_spec))
    agent.response.merge_status({"budget": f"{spec['budgetUsd']:.2f}", **_spending(agent)})
    return agent.response


def _spending(agent: Agent) -> dict[str, Any]:
    """Return what people see of the budget on the agent itself; empty until it is known."""
    status = agent.parts.observed(BUDGET_PART, "status") or {}
    return {key: status[key] for key in ("spentUsd", "paused", "cause") if key in status}


def _is_applied(agent: Agent, budget_spec: Mapping[str, Any]) -> bool:
    """
    Return whether the budget was observed Ready with exactly these values.

    Auto-ready would accept the Ready of the previous values: then an agent would count as ready
    before its raised budget lets it run again.
    """
    budget = agent.request.observed_resource(BUDGET_PART) or {}
    generation = (budget.get("metadata") or {}).get("generation")
    conditions = {
        condition.get("type"): condition
        for condition in (budget.get("status") or {}).get("conditions") or ()
        if generation in (None, condition.get("observedGeneration", generation))
    }
    spec = budget.get("spec") or {}
    return all(spec.get(key) == value for key, value in budget_spec.items()) and all(
        conditions.get(type_, {}).get("status") == "True" for type_ in ("Synced", "Ready")
    )
