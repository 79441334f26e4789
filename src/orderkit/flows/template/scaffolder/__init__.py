"""
Run a scaffolder Template: the same template.yaml and steps as in the portal.

Inputs are rendered as Backstage's scaffolder renders them (``softwaretemplates.render.engine``) and
checked against each action's schema. Where Backstage ignores an error (a broken ``if`` runs its
step, a broken expression is passed on as text), this fails, mostly before any step runs. Secrets
never reach logs, events, outputs or errors. ``docs/templates.md`` lists what is supported and the
intended differences.

It uses no forge and no cluster directly, only `Services`. Layers: ``task_check < task_values <
task_run``.
"""

from orderkit.flows.template.actions.action_context import (
    MemoryFolder,
    PublishRequest,
    Services,
    TemplateFolder,
    User,
)
from orderkit.flows.template.scaffolder.task_check import MASK
from orderkit.flows.template.scaffolder.task_run import run
from orderkit.flows.template.scaffolder.task_values import (
    Environment,
    StepEvent,
    TaskOptions,
    TaskResult,
)

__all__ = [
    "MASK",
    "Environment",
    "MemoryFolder",
    "PublishRequest",
    "Services",
    "StepEvent",
    "TaskOptions",
    "TaskResult",
    "TemplateFolder",
    "User",
    "run",
]
