"""
Run a scaffolder Template: the same template.yaml the portal runs, the same steps.

Inputs are rendered as Backstage's scaffolder renders them (``core.portal.render.data``) and checked
against each action's schema. Where Backstage swallows an error (a broken ``if`` runs its
step, a broken expression is passed on as text) this fails and says so, most of it before
anything runs. Secrets never reach logs, events, outputs or errors. ``docs/templates.md``
lists what is run and where it differs on purpose.

Called by ``flows.order.placing``; knows no forge and no cluster,
only what `Services` gives. Layers: ``masking, tasks < checking < rounds < running``.
"""

from orderkit.flows.template.actions.action_context import (
    MemoryFolder,
    Published,
    PublishRequest,
    Services,
    TemplateFolder,
    User,
)
from orderkit.flows.template.scaffolder.masking import MASK
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
    "Published",
    "Services",
    "StepEvent",
    "TaskOptions",
    "TaskResult",
    "TemplateFolder",
    "User",
    "run",
]
