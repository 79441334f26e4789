"""
Predict what a change will do, down to composed resources, before anybody merges it.

`assemble` computes everything that is composed for an XR; `compare` turns two assemblies into a
`Plan`; `dangers` reports what to check before merging. ``plan_markdown`` and ``plan_json`` write
plans. Pure: callers provide the state of the cluster and the pack's stations.
"""

from orderkit.core.plan.comparison import Action, Plan, ResourceChange, compare
from orderkit.core.plan.composed_tree import (
    Assembly,
    AssemblyContext,
    Blueprint,
    Fault,
    Guess,
    assemble,
)
from orderkit.core.plan.dangers import Code, Danger
from orderkit.core.plan.unknown_fields import with_guesses

__all__ = [
    "Action",
    "Assembly",
    "AssemblyContext",
    "Blueprint",
    "Code",
    "Danger",
    "Fault",
    "Guess",
    "Plan",
    "ResourceChange",
    "assemble",
    "compare",
    "with_guesses",
]
