"""
The life of one agent, in which sown bugs have to show: planned rightly and wrongly, step by step.

Used on the embedded cluster for every bug, and on a real API server for a few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from planproof.bugs import BUGS, CHANGED, ORPHANED, PLACED, Bug, sown
from planproof.comparing import Difference, compare
from planproof.facts import prepare
from planproof.grounds import Ground
from planproof.orders import MISSING, Order
from planproof.proving import Account, Step, carry_out, differing_in, settled
from planproof.reading import Seen

Manifest = dict[str, Any]
STEPS = (PLACED, CHANGED, ORPHANED)
_KIT = "datasetagent"
_SPEC: Mapping[str, Any] = {
    "owner": "ae86",
    "baseDomain": "apps.example.org",
    "projectId": "whisperops-lab",
    "budgetUsd": 5.5,
    "description": "Answers questions.",
    "datasetRef": {"name": "california-housing"},
    "windowStart": "2026-01-01T00:00:00Z",
}
"""Without `enforcement` and `bucketOnEnd`: the XRD's defaults have to come."""
_DATASETS = ("online-retail", "everything", "spotify-tracks")


@dataclass
class Life:
    """What differed at each step: without a bug, and with each."""

    true: dict[str, list[Difference]] = field(default_factory=dict)
    broken: dict[Bug, list[Difference]] = field(default_factory=dict)

    def shows(self, bug: Bug) -> bool:
        """Say whether a bug showed what it should."""
        return _shown(bug, self.broken[bug])


def wrongly_planned(ground: Ground, name: str) -> Life:
    """Carry out true plans of an agent; make each with every bug of that step, too."""
    moved = {"datasetRef": {"name": "online-retail"}, "windowStart": None, "budgetUsd": 7}
    gone = {**moved, "datasetRef": {"name": MISSING}}
    steps = dict(zip(STEPS, (_agent(name), _agent(name, moved), _agent(name, gone)), strict=True))
    order = Order(ground.kits[_KIT], steps[PLACED])
    prepare(ground, [order])
    life, before, present = Life(), settled(ground), None
    for label, wanted in steps.items():
        true, wrong = _planned(ground, order, label, present, wanted), {}
        for bug in BUGS:
            if bug.step == label:
                with sown(bug):
                    wrong[bug] = _planned(ground, order, label, present, wanted)
        seen = carry_out(ground, [true], before, Account())
        life.true[label] = differing_in(true, before, seen)
        life.broken |= {bug: differing_in(each, before, seen) for bug, each in wrong.items()}
        before, present = seen, wanted
    return life


def wrongly_applied(ground: Ground, name: str, bugs: Sequence[Bug]) -> Life:
    """Carry out true plans of an agent, each with another bug on the side that applies."""
    order, life = Order(ground.kits[_KIT], _agent(name)), Life()
    prepare(ground, [order])
    placed = _planned(ground, order, PLACED, None, order.xr)
    before, present = carry_out(ground, [placed], settled(ground), Account()), order.xr
    for bug, dataset in zip(bugs, _DATASETS, strict=False):
        wanted = _agent(name, {"datasetRef": {"name": dataset}})
        step = _planned(ground, order, CHANGED, present, wanted)
        with sown(bug, "apply"):
            ground.deliver(wanted)
            seen = settled(ground, partial(_shows, bug, step, before))
        life.broken[bug] = differing_in(step, before, seen)
        before, present = seen, wanted
    step = _planned(ground, order, CHANGED, present, _agent(name, {"budgetUsd": 9}))
    outcome = carry_out(ground, [step], before, Account()).outcome("XDatasetAgent", name)
    assert outcome is not None
    life.true[CHANGED] = compare(step.plan.after, outcome)
    return life


def _shows(bug: Bug, step: Step, before: Seen, seen: Seen) -> bool:
    return _shown(bug, differing_in(step, before, seen))


def _shown(bug: Bug, found: Sequence[Difference]) -> bool:
    return any(each.sort is bug.shows and each.path.startswith(bug.at) for each in found)


def _agent(name: str, changed: Mapping[str, Any] | None = None) -> Manifest:
    found = {**_SPEC, "agentName": name, **(changed or {})}
    return {
        "apiVersion": "whisperops.io/v1alpha1",
        "kind": "XDatasetAgent",
        "metadata": {"name": name},
        "spec": {key: value for key, value in found.items() if value is not None},
    }


def _planned(ground: Ground, order: Order, name: str, old: Manifest | None, new: Manifest) -> Step:
    plan_order = ground.plan_order(order.kit)
    plan = plan_order.plan_new(new) if old is None else plan_order.plan_step(old, new)
    return Step(order, name, new, plan)
