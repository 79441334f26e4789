"""
Predict what a change will do, down to composed resources, before anybody merges it.

`assemble` computes everything that is composed for an XR; `compare` turns two assemblies into a
`Plan`; `dangers` reports what to check before merging; ``masking`` takes the values of
Secrets out. ``plan_markdown`` and ``plan_json`` write
plans. Pure: callers provide the state of the cluster and the pack's stations.
"""

from orderkit.core.plan.assembly import Assembly, Fault, Guess
from orderkit.core.plan.comparison import Action, Plan, ResourceChange
from orderkit.core.plan.composed_tree import AssemblyContext, Blueprint, assemble
from orderkit.core.plan.dangers import Code, Danger
from orderkit.core.plan.masking import compare
from orderkit.core.plan.secret_traces import with_guesses, with_secret_traces

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
    "with_secret_traces",
]
