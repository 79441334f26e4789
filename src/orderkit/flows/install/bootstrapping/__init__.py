"""
Bring a platform up to the point where teams can order, or say what that would take.

One list of steps for every target (`steps_of`): each can be looked at without a write (`plan`) and
be made sure of (`bootstrap`). Repeating the whole finishes what a crash left and otherwise changes
nothing. Argo CD is driven through its custom resources only.
"""

from orderkit.flows.install.bootstrapping.bootstrap_run import (
    REACH,
    Bootstrapped,
    bootstrap,
    plan,
    steps_of,
)
from orderkit.flows.install.bootstrapping.steps import (
    BootstrapRequest,
    BootstrapStep,
    Look,
    ProbeRequest,
    RepositoryAccess,
    StepDone,
    StepVerdict,
)

__all__ = [
    "REACH",
    "BootstrapRequest",
    "BootstrapStep",
    "Bootstrapped",
    "Look",
    "ProbeRequest",
    "RepositoryAccess",
    "StepDone",
    "StepVerdict",
    "bootstrap",
    "plan",
    "steps_of",
]
