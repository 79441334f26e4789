"""The demo's stages about money: spend rises, the budget cuts, an outage, a raise by review."""

from __future__ import annotations

from typing import Any

from orderkit.cli.demo.narration import PATIENCE_S, Story, expect, wait
from orderkit.core.kit.model import How
from orderkit.core.names import CommitSha
from orderkit.core.objects.kube_objects import condition, dig
from orderkit.core.order.change import FieldEdit
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.order.delivering import await_commit
from orderkit.ports.forge import MergeStyle, Operation
from orderkit.ports.requesters import Requester
from whisperops.demo.looking import (
    AGENT,
    BUDGET,
    MODEL,
    ORDER,
    REPO,
    REQUESTER,
    Site,
    budget,
    owners_of_replicas,
    wait_ready,
)

_OPEN, _EXHAUSTED = 200, 402


def tell(story: Story, site: Site) -> None:
    """
    Tell these stages.

    Raises:
        OrderkitError: An expectation did not hold.
    """
    _rises(story, site)
    _cuts(story, site)
    _outage(story, site)
    _raised(story, site)


def _metered(site: Site) -> None:
    done = site.meter.run_pass()
    expect(not done.failures, f"the meter measures: {done.failures}")


def _wait_budget(site: Site, what: str, **wanted: Any) -> dict[str, Any]:
    return wait(what, lambda: budget(site), lambda seen: wanted.items() <= seen.items())


def _replicas(site: Site) -> list[Any]:
    return [dig(site.deployment(name), "spec", "replicas") for name in ("planner", "worker")]


def _rises(story: Story, site: Site) -> None:
    site.counters.count(AGENT, MODEL, input=1_700_000, output=380_000)
    _metered(site)
    seen = _wait_budget(site, "29 % being spent", spentUsd=1.46, paused=False)
    expect(seen["cause"] == "running" and seen["ratioPct"] == "29.20%", f"it runs: {seen}")
    expect(_replicas(site) == [1, 1], "planner and worker run")
    expect(site.gate() == _OPEN, "the gate is open")
    story.stage("spend", f"{seen['spentUsd']} of 5.00 dollars, {seen['ratioPct']}; gate 200")


def _cuts(story: Story, site: Site) -> None:
    site.counters.count(AGENT, MODEL, output=1_425_000)
    _metered(site)
    seen = _wait_budget(site, "the cut", paused=True, cause="budget-exhausted", applied=True)
    expect(_replicas(site) == [0, 0], "planner and worker stand still")
    owners = owners_of_replicas(site.deployment("planner"))
    fields = list(owners.values())
    expect(len(owners) == 1 and fields == [["f:replicas"]], f"one owner, one field: {owners}")
    expect(site.gate() == _EXHAUSTED, "the gate says 402")
    wait_ready(site)
    told = f"{seen['ratioPct']}: replicas 0 and 0; {next(iter(owners))} owns spec.replicas alone"
    story.stage("cut", f"{told}; gate 402")


def _outage(story: Story, site: Site) -> None:
    before = budget(site)
    site.counters.down = True
    done = site.meter.run_pass()
    expect(done.failures, "the meter sees that nothing can be measured")
    wait(
        "Measured being False",
        lambda: condition(site.cluster.get(BUDGET) or {}, "Measured") or {},
        lambda seen: seen.get("status") == "False",
    )
    after = budget(site)
    for name in ("spentUsd", "paused", "cause"):
        expect(after[name] == before[name], f"{name} is the last known one: {after}")
    site.counters.down = False
    _metered(site)
    story.stage("outage", "Prometheus answers HTML: Measured=False, the last known value stays")


def _raised(story: Story, site: Site) -> None:
    wanted = ChangeRequest(
        order=ORDER,
        edits=(FieldEdit("budgetUsd", "set", 10),),
        requester=Requester(REQUESTER),
        how=How.REVIEW,
        reason="a good month",
    )
    pull = change(site.platform, wanted).pull
    expect(pull, "a raise is proposed")
    assert pull is not None  # noqa: S101 - just expected
    merged = site.platform.forge.merge_pull(
        REPO,
        pull.number,
        head=pull.head_commit,
        style=MergeStyle.MERGE,
        operation=Operation(f"merge-{pull.number}", REQUESTER, f"Merge {pull.title}"),
    )
    await_commit(site.platform, ORDER, CommitSha(merged), timeout_s=2 * PATIENCE_S)
    seen = _wait_budget(site, "the agent running again", paused=False, budget="10.00")
    wait("both running", lambda: _replicas(site), lambda found: found == [1, 1])
    wait_ready(site)
    expect(site.gate() == _OPEN, "the gate is open")
    told = f"pull request {pull.number} merged: {seen['ratioPct']} of 10.00"
    story.stage("raised", f"{told}, replicas 1 and 1; gate 200")
