"""
Run a scaffolder Template: the same template.yaml the portal runs, the same steps.

Inputs are rendered as Backstage's scaffolder renders them (``core.render.data``) and checked
against each action's schema. Where Backstage swallows an error (a broken ``if`` runs its
step, a broken expression is passed on as text) this fails and says so. Not done: secrets,
dry runs, custom filters. Called by ``flows.ordering``; knows no forge and no cluster, only
what `Services` gives.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orderkit.core.errors import InvalidInputError, OrderkitError
from orderkit.core.render import RenderError, render_data, truthy
from orderkit.core.template import Step, Template
from orderkit.flows.actions import ACTIONS
from orderkit.flows.actions.context import (
    Action,
    ActionContext,
    Files,
    Published,
    PublishRequest,
    Services,
    User,
)

__all__ = [
    "PublishRequest",
    "Published",
    "Services",
    "StepEvent",
    "TaskResult",
    "User",
    "run",
]


@dataclass(frozen=True, slots=True)
class StepEvent:
    """What became of a step. `summary` is its name, and its last log line if it has one."""

    step: str
    action: str
    state: Literal["done", "skipped", "failed"]
    summary: str


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A finished task: rendered output, each step's outputs by id, the log."""

    outputs: Mapping[str, Any]
    steps: Mapping[str, Mapping[str, Any]]
    log: tuple[str, ...]


@dataclass(slots=True)
class _Task:
    """A running task. `failure` is the first error; later steps may still ask for it."""

    template: Template
    parameters: Mapping[str, Any]
    context: ActionContext
    on_step: Callable[[StepEvent], None]
    log: list[str]
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    failure: OrderkitError | None = None


def run(
    template: Template,
    parameters: Mapping[str, Any],
    *,
    files: Files,
    services: Services,
    user: User,
    task_id: str,
    on_step: Callable[[StepEvent], None],
) -> TaskResult:
    """
    Validate the parameters, run every step in order, render the output.

    As idempotent as its actions: all of ours are *ensure*. Nothing is written before the
    parameters and the names of all actions are checked.

    Args:
        files: The folder of template.yaml, by paths relative to it.
        task_id: What ``context.task.id`` is; the same task run again has the same.

    Raises:
        InvalidInputError: A parameter, an action's name or an action's input is wrong.
        RenderError: A template in a step, or in the skeleton, is.
        OrderkitError: What an action raises. Steps with ``always()`` have run all the same.
    """
    values = template.validate(parameters)
    for step in template.steps:
        _action(step)
    log: list[str] = []
    context = ActionContext(files, services, user, task_id, log.append)
    task = _Task(template, values, context, on_step, log)
    for step in template.steps:
        _run_step(task, step)
    if task.failure:
        raise task.failure
    outputs = _outputs(template, _scope(task))
    return TaskResult(outputs, {i: s["output"] for i, s in task.steps.items()}, tuple(log))


def _action(step: Step) -> Action:
    found = ACTIONS.get(step.action)
    if found is None:
        near = difflib.get_close_matches(step.action, ACTIONS, n=1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        raise InvalidInputError(
            f"steps.{step.id}.action",
            step.action,
            "is no action Orderkit knows",
            hint=f"{guess}known: {', '.join(ACTIONS)}",
        )
    return found


def _scope(task: _Task, **extra: Any) -> dict[str, Any]:
    """Return the names a step's templates may use."""
    user: dict[str, Any] = {"ref": task.context.user.ref}
    if task.context.user.entity is not None:
        user["entity"] = dict(task.context.user.entity)
    return {
        "parameters": task.parameters,
        "steps": task.steps,
        "user": user,
        "context": {"task": {"id": task.context.task_id}},
        "environment": {"parameters": {}},
        **extra,
    }


def _run_step(task: _Task, step: Step) -> None:
    before = len(task.log)
    try:
        rounds = _run_rounds(task, step)
    except OrderkitError as error:
        task.failure = task.failure or error
        task.on_step(StepEvent(step.id, step.action, "failed", f"{step.name}: {error}"))
        return
    if not rounds:
        task.on_step(StepEvent(step.id, step.action, "skipped", step.name))
        return
    said = task.log[before:]
    summary = f"{step.name}: {said[-1]}" if said else step.name
    task.on_step(StepEvent(step.id, step.action, "done", summary))


def _run_rounds(task: _Task, step: Step) -> int:
    """Run a step once, or once per item of ``each``; return how often it ran."""
    action = _action(step)
    collected: dict[str, Any] = {}
    count = 0
    if task.failure and step.condition is None:
        return 0
    for extra in _rounds(task, step):
        scope = _scope(task, **extra)
        if not _wanted(task, step, scope):
            continue
        outputs = _run_action(task, step, action, scope)
        count += 1
        for name, value in outputs.items():
            if step.each is None:
                collected[name] = value
            else:
                collected.setdefault(name, []).append(value)
    if count:
        task.steps[step.id] = {"output": collected}
    return count


def _rounds(task: _Task, step: Step) -> Iterator[dict[str, Any]]:
    if step.each is None:
        yield {}
        return
    name = f"steps.{step.id}.each"
    items = render_data(step.each, _scope(task), name=name)
    if isinstance(items, list):
        items = {str(at): item for at, item in enumerate(items)}
    if not isinstance(items, dict):
        raise InvalidInputError(name, items, "is neither a list nor a map")
    for key, value in items.items():
        yield {"each": {"key": key, "value": value}}


def _wanted(task: _Task, step: Step, scope: Mapping[str, Any]) -> bool:
    """Judge ``if``: an empty list is false; after a failure it must ask for the failure."""
    if step.condition is None:
        return task.failure is None
    asked = False

    def ask(*, answer: bool) -> bool:
        nonlocal asked
        asked = True
        return answer

    functions = {
        "always": lambda: ask(answer=True),
        "failure": lambda: ask(answer=task.failure is not None),
    }
    name = f"steps.{step.id}.if"
    try:
        found = render_data(step.condition, {**scope, **functions}, name=name)
    except RenderError as error:
        error.hint = f"{error.hint} (Backstage would run the step)".strip()
        raise
    if task.failure and not asked:
        return False
    return len(found) > 0 if isinstance(found, list) else truthy(found)


def _run_action(
    task: _Task, step: Step, action: Action, scope: Mapping[str, Any]
) -> dict[str, Any]:
    inputs = render_data(dict(step.input), scope, name=f"steps.{step.id}.input")
    _check_inputs(step, action, inputs)
    return action.run(task.context, inputs)


def _check_inputs(step: Step, action: Action, inputs: Mapping[str, Any]) -> None:
    import jsonschema  # lazy: heavy

    problem = jsonschema.exceptions.best_match(
        jsonschema.Draft7Validator(action.schema).iter_errors(inputs)
    )
    if problem is None:
        return
    path = ".".join(["steps", step.id, "input", *map(str, problem.absolute_path)])
    known = f"inputs of {action.id}: {', '.join(action.schema['properties'])}"
    raise InvalidInputError(path, problem.instance, f"is refused: {problem.message}", hint=known)


def _outputs(template: Template, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Render ``spec.output``; links and texts whose ``if`` is false are left out."""
    written = dict(template.output)
    for key in ("links", "text"):
        if isinstance(written.get(key), list):
            written[key] = [_without_if(v) for v in written[key] if _shown(v, scope, key)]
    rendered: dict[str, Any] = render_data(written, scope, name="output")
    return rendered


def _shown(item: Any, scope: Mapping[str, Any], key: str) -> bool:
    if not isinstance(item, dict) or "if" not in item:
        return True
    return truthy(render_data(item["if"], scope, name=f"output.{key}.if"))


def _without_if(item: Any) -> Any:
    return {k: v for k, v in item.items() if k != "if"} if isinstance(item, dict) else item
