"""The demo's stages about money: spend rises, the budget cuts, an outage, a raise by review."""

from __future__ import annotations

from typing import Any

from orderkit.controllers import condition, dig
from orderkit_standins.testing import Story, TrialOrder, expect, wait
from whisperops.demo.site import (
    AGENT,
    BUDGET,
    MODEL,
    Site,
    budget_status,
    owners_of_replicas,
    wait_ready,
)

_OPEN, _EXHAUSTED = 200, 402


def tell(story: Story, site: Site, order: TrialOrder) -> None:
    """
    Run these stages.

    Raises:
        OrderkitError: An expectation did not hold.
    """
    _spend_rises(story, site)
    _budget_cuts(story, site)
    _prometheus_fails(story, site)
    _budget_is_raised(story, site, order)


def _measure(site: Site) -> None:
    result = site.meter.run_pass()
    expect(not result.failures, f"the meter measures: {result.failures}")


def _wait_budget(site: Site, what: str, **expected: Any) -> dict[str, Any]:
    """Wait until the budget's status has these values; return the status."""
    return wait(
        what, lambda: budget_status(site), lambda status: expected.items() <= status.items()
    )


def _replicas(site: Site) -> list[Any]:
    return [dig(site.deployment(name), "spec", "replicas") for name in ("planner", "worker")]


def _spend_rises(story: Story, site: Site) -> None:
    site.counters.count(AGENT, MODEL, input=1_700_000, output=380_000)
    _measure(site)
    status = _wait_budget(site, "29 % being spent", spentUsd=1.46, paused=False)
    runs = status["cause"] == "running" and status["ratioPct"] == "29.20%"
    expect(runs, f"it runs: {status}")
    expect(_replicas(site) == [1, 1], "planner and worker run")
    expect(site.gate_status() == _OPEN, "the gate is open")
    story.stage("spend", f"{status['spentUsd']} of 5.00 dollars, {status['ratioPct']}; gate 200")


def _budget_cuts(story: Story, site: Site) -> None:
    site.counters.count(AGENT, MODEL, output=1_425_000)
    _measure(site)
    cut = {"paused": True, "cause": "budget-exhausted", "applied": True}
    status = _wait_budget(site, "the cut", **cut)
    expect(_replicas(site) == [0, 0], "planner and worker stand still")
    owners = owners_of_replicas(site.deployment("planner"))
    fields = list(owners.values())
    expect(len(owners) == 1 and fields == [["f:replicas"]], f"one owner, one field: {owners}")
    expect(site.gate_status() == _EXHAUSTED, "the gate says 402")
    wait_ready(site)
    replicas = f"replicas 0 and 0; {next(iter(owners))} owns spec.replicas alone"
    story.stage("cut", f"{status['ratioPct']}: {replicas}; gate 402")


def _prometheus_fails(story: Story, site: Site) -> None:
    before = budget_status(site)
    site.counters.down = True
    result = site.meter.run_pass()
    expect(result.failures, "the meter sees that nothing can be measured")
    wait(
        "Measured being False",
        lambda: condition(site.cluster.get(BUDGET) or {}, "Measured") or {},
        lambda measured: measured.get("status") == "False",
    )
    after = budget_status(site)
    for name in ("spentUsd", "paused", "cause"):
        expect(after[name] == before[name], f"{name} is the last known one: {after}")
    site.counters.down = False
    _measure(site)
    story.stage("outage", "Prometheus answers HTML: Measured=False, the last known value stays")


def _budget_is_raised(story: Story, site: Site, order: TrialOrder) -> None:
    pull = site.platform.change_by_review(order, "budgetUsd", 10, reason="a good month")
    status = _wait_budget(site, "the agent running again", paused=False, budget="10.00")
    wait("both running", lambda: _replicas(site), lambda replicas: replicas == [1, 1])
    wait_ready(site)
    expect(site.gate_status() == _OPEN, "the gate is open")
    proof = f"pull request {pull} merged: {status['ratioPct']} of 10.00, replicas 1 and 1; gate 200"
    story.stage("raised", proof)
