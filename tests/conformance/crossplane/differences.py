"""
Where the embedded platform, or a plan, differs from a real core on a real API server, exactly.

An entry that no longer holds fails the suite, as does a difference that has no entry. What
accounts leave out stands in `seeing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EMBEDDED, PLAN = "embedded", "plan"


@dataclass(frozen=True, slots=True)
class Difference:
    """What is seen of one place of a subject, in one step or in all that have it."""

    scene: str
    subject: str
    place: str
    real: Any
    ours: Any
    reason: str
    step: str = ""
    """Empty: every step of the scene in which the subject is there."""
    who: frozenset[str] = frozenset({EMBEDDED, PLAN})


_MEMORY = "spec → template → spec → containers → 0 → resources → {} → memory"
_QUANTITY = "an API server writes a quantity of its own kinds in the shortest form; ours keeps it"

_HOPE = "a plan takes for granted that whoever else is needed does their part: here, an agent"
_NO_AGENT = ("a_budget_pauses", "XAgentBudget meter")

DIFFERENCES = (
    *(
        Difference(scene, f"{agent}/sandbox", _MEMORY.format(which), "1Gi", "1024Mi", _QUANTITY)
        for scene, agent in (("an_agent_lives", "bot"), ("an_agent_loses_its_dataset", "lost"))
        for which in ("limits", "requests")
    ),
    *(
        Difference(*_NO_AGENT, *seen, _HOPE, step="no agent, no record", who=frozenset({PLAN}))
        for seen in (
            ("ready", "False", "True"),
            ("status → cause", "agent-unreachable", "unknown"),
        )
    ),
)
