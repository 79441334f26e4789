"""
The values of a task: its options, state, events and result.

`render_outputs` renders a task's output, and `example_of` makes example outputs for steps that a
dry run did not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

from ground.errors import OrderkitError, RefusedError
from orderkit.flows.template.actions.action_context import ActionContext, Schema
from orderkit.flows.template.scaffolder.task_check import MASK, PASSED_ON, Masker, hinted
from orderkit.ports.processes import ConfinedRenderer
from softwaretemplates.render import (
    RenderError,
    SkeletonFile,
    Unforeseen,
    Unknown,
    render_data,
    truthy,
)
from softwaretemplates.template import Template

State = Literal["done", "planned", "unknown", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class StepEvent:
    """
    The outcome of a step. `summary` is its name, and its last log line if it has one.

    ``planned`` is a step that a dry run did not run, ``unknown`` one whose action Orderkit cannot
    run at all: its outputs are unknown. `inputs` are those of a dry run, one entry per round,
    secrets masked.
    """

    step: str
    action: str
    state: State
    summary: str
    inputs: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """``environment`` of templates: values of the installation for every task."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How a task is run, besides its parameters."""

    secrets: Mapping[str, str] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    dry_run: bool = False
    """Run only actions that change nothing but the workspace; others give example outputs."""
    confined: ConfinedRenderer | None = None
    """Renders untrusted skeletons; None: the renderer of the platform's services."""
    size_limit: int = 0
    """Most bytes that the task may hold in memory; 0: the platform's own limit."""
    is_strict: bool = True
    """Whether a skeleton that prints a value that nobody passed is refused, unlike in Backstage."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A finished task: rendered output, each step's outputs by id, the log, the workspace."""

    outputs: Mapping[str, Any]
    steps: Mapping[str, Mapping[str, Any]]
    log: tuple[str, ...]
    workspace: Mapping[PurePosixPath, SkeletonFile]


@dataclass(slots=True)
class TemplateTask:
    """A running task. `failure` is the first error; later steps may test for it."""

    template: Template
    parameters: Mapping[str, Any]
    context: ActionContext
    options: TaskOptions
    masker: Masker
    on_step: Callable[[StepEvent], None]
    log: list[str]
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    failure: OrderkitError | None = None
    problems: list[OrderkitError] = field(default_factory=list)
    """What a dry run found. It goes on to find the rest, but runs no further step."""

    def scope(self, **extra: Any) -> dict[str, Any]:
        """Return the names that ``if`` and ``output`` may use: no secrets."""
        user: dict[str, Any] = {"ref": self.context.user.ref}
        parameters: Mapping[str, Any] = dict(self.options.environment.parameters)
        if self.context.user.entity is not None:
            user["entity"] = dict(self.context.user.entity)
        elif self.options.dry_run:
            user["entity"] = Unknown.at("user.entity")
        if self.options.dry_run:
            parameters = Unforeseen(parameters, "environment.parameters")
        return {
            "parameters": self.parameters,
            "steps": self.steps,
            "user": user,
            "context": {"task": {"id": self.context.task_id}},
            "environment": {"parameters": parameters},
            **extra,
        }

    def secret_scope(self, *, visibility: Literal["plain", "masked", "none"], **extra: Any) -> Any:
        """Return the names that ``input`` and ``each`` may use, with secrets as requested."""
        scope = self.scope(**extra)
        template_secrets, installed = self.options.secrets, self.options.environment.secrets
        scope["secrets"] = _visible_secrets(template_secrets, visibility)
        scope["environment"]["secrets"] = _visible_secrets(installed, visibility)
        return scope

    @property
    def has_secrets(self) -> bool:
        return bool(self.options.secrets or self.options.environment.secrets)


def _visible_secrets(secrets: Mapping[str, str], how: str) -> dict[str, str]:
    if how == "none":
        return {}
    return dict(secrets) if how == "plain" else dict.fromkeys(secrets, MASK)


EXAMPLES: Mapping[str, Any] = {"string": Unknown("<example>"), "number": 0, "boolean": False}
"""The placeholder of Backstage's dry run for unknown outputs."""


def render_outputs(task: TemplateTask) -> dict[str, Any]:
    """
    Render ``spec.output``; links and texts whose ``if`` is false are left out.

    Raises:
        RenderError: An expression fails; the steps have run already.
        RefusedError: It would contain a secret.
    """
    scope = task.scope()
    output = dict(task.template.output)
    for key in ("links", "text"):
        if isinstance(output.get(key), list):
            entries = [v for at, v in enumerate(output[key]) if _is_shown(v, scope, f"{key}[{at}]")]
            output[key] = [_without_if(item) for item in entries]
    try:
        rendered: dict[str, Any] = render_data(output, scope, name="output")
    except RenderError as error:
        raise hinted(error, PASSED_ON) from error
    leak = task.masker.leak(rendered, "output")
    if leak:
        raise RefusedError(
            f"{leak}: a secret would stand in the task's output, which anybody may read",
            hint="take it out of spec.output; the steps have run",
        )
    return rendered


def _is_shown(item: Any, scope: Mapping[str, Any], name: str) -> bool:
    if not isinstance(item, dict) or "if" not in item:
        return True
    condition = render_data(item["if"], scope, name=f"output.{name}.if")
    return len(condition) > 0 if isinstance(condition, list) else truthy(condition)


def _without_if(item: Any) -> Any:
    return {k: v for k, v in item.items() if k != "if"} if isinstance(item, dict) else item


def example_of(schema: Schema) -> Any:
    """Return an example of a schema, as Backstage's dry run makes them."""
    kind = schema.get("type")
    if kind == "object":
        return {key: example_of(item) for key, item in schema.get("properties", {}).items()}
    if kind == "array":
        return [example_of(schema["items"])] if schema.get("items") is not None else []
    return EXAMPLES.get(str(kind), Unknown("<unknown>"))
