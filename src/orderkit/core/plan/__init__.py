"""
What a change will do, down to composed resources, before anybody merges it.

`assemble` makes of an XR everything that is composed for it; `compare` makes a `Plan` of two
assemblies; `dangers` says what to think about. How a plan is shown stands in `markdown` and
`structured`. Pure: what exists in the cluster, and the pack's stations, are the caller's part.
"""

from orderkit.core.plan.assembly import Assembly, AssemblyContext, Blueprint, Fault, Guess, assemble
from orderkit.core.plan.comparison import Action, Plan, ResourceChange, compare
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
