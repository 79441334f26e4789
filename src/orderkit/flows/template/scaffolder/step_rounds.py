"""
The rounds of a step, one or one per item of ``each``: which of them run, with which inputs.

All inputs are rendered and checked before the first round runs, as Backstage does. ``if`` is
evaluated once for a plain step and per item for a step with ``each``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ground.errors import InvalidInputError
from orderkit.flows.template.actions.action_context import TemplateAction
from orderkit.flows.template.scaffolder.task_check import (
    PASSED_ON,
    RUNS_ANYWAY,
    check_inputs,
    hinted,
)
from orderkit.flows.template.scaffolder.task_values import TemplateTask
from softwaretemplates.render import RenderError, Undefined, Unknown, render_data, truthy
from softwaretemplates.render.javascript import ordered
from softwaretemplates.template import TemplateStep


@dataclass(frozen=True, slots=True)
class Round:
    """One run of an action: its inputs, and the same with secrets masked."""

    inputs: Mapping[str, Any]
    shown_inputs: Mapping[str, Any]


def rounds(task: TemplateTask, step: TemplateStep, action: TemplateAction) -> list[Round]:
    """
    Return the rounds that run; none if the step is skipped.

    Raises:
        RenderError: An expression fails. InvalidInputError: ``each`` is not a list or map, or the
            action refuses an input. Nothing has run then.
    """
    if task.failure and not isinstance(step.condition, str):
        return []
    if step.each is None:
        return [_round(task, step, action, {})] if _runs(task, step, {}) else []
    # A literal false skips all; after a failure the condition must ask for it even without items.
    if step.condition is False or (task.failure and not _asks(task, step)):
        return []
    return [
        _round(task, step, action, item)
        for item in _items(task, step)
        if not step.condition or _runs(task, step, item)
    ]


def _items(task: TemplateTask, step: TemplateStep) -> Iterator[dict[str, Any]]:
    name = f"steps.{step.id}.each"
    items = _rendered(step.each, task.secret_scope(visibility="plain"), name)
    if task.has_secrets:
        task.masker.learn(items, _without_secrets(task, step.each, {}))
    if isinstance(items, Unknown):
        items = [items.part("item")]  # at least one round is planned
    if isinstance(items, list):
        items = {str(at): item for at, item in enumerate(items)}
    if not isinstance(items, dict):
        masked = None if isinstance(items, Undefined) else task.masker.value(items)
        raise InvalidInputError(
            name,
            masked,
            "is neither a list nor a map",
            hint="write `${{ x or [] }}` if it may be missing",
        )
    for key, value in ordered(items):
        yield {"each": {"key": key, "value": value}}


def _round(
    task: TemplateTask, step: TemplateStep, action: TemplateAction, item: dict[str, Any]
) -> Round:
    name = f"steps.{step.id}.input"
    inputs = _rendered(dict(step.input), task.secret_scope(visibility="plain", **item), name)
    for old, new in action.renamed.items():
        if old in inputs:
            inputs = {new: inputs[old], **{k: v for k, v in inputs.items() if k != old}}
            task.context.log(
                f"{name}.{old}: is called '{new}' now, and is read as that; Backstage ignores the "
                "old name"
            )
    for old in inputs.keys() & set(action.ignored):
        inputs = {key: value for key, value in inputs.items() if key != old}
        task.context.log(
            f"{name}.{old}: is no input of {action.id} and is ignored; newer Backstage refuses it"
        )
    if not task.has_secrets:
        _check(task, step, action, inputs, item)
        return Round(inputs, inputs)
    task.masker.learn(inputs, _without_secrets(task, dict(step.input), item))
    _check(task, step, action, inputs, item)
    return Round(inputs, task.masker.value(inputs))


def _check(
    task: TemplateTask,
    step: TemplateStep,
    action: TemplateAction,
    inputs: Mapping[str, Any],
    item: dict[str, Any],
) -> None:
    if task.options.dry_run and not action.dry_run and "steps" in repr(step.input):
        return  # examples of earlier steps stand in it; the real values may well fit
    key = item["each"]["key"] if item else ""
    check_inputs(step, action, inputs, task.masker, key=key)


def _without_secrets(task: TemplateTask, source: Any, item: dict[str, Any]) -> Any:
    """Render without secrets; return nothing if that fails."""
    try:
        return render_data(source, task.secret_scope(visibility="none", **item), name="")
    except RenderError:
        return None


def _rendered(source: Any, scope: Mapping[str, Any], name: str) -> Any:
    try:
        return render_data(source, scope, name=name)
    except RenderError as error:
        raise hinted(error, PASSED_ON) from error


def _runs(task: TemplateTask, step: TemplateStep, item: dict[str, Any]) -> bool:
    """Evaluate ``if``: an empty list is false; after a failure it must test for the failure."""
    if step.condition is None:
        return task.failure is None
    condition, calls_status = _judged(task, step, item)
    if task.failure and not calls_status:
        return False
    return len(condition) > 0 if isinstance(condition, list) else truthy(condition)


def _asks(task: TemplateTask, step: TemplateStep) -> bool:
    try:
        return _judged(task, step, {})[1]
    except RenderError:
        return False


def _judged(task: TemplateTask, step: TemplateStep, item: dict[str, Any]) -> tuple[Any, bool]:
    """Return what ``if`` renders to, and whether it called ``always()`` or ``failure()``."""
    calls_status = False

    def ask(*, answer: bool) -> bool:
        nonlocal calls_status
        calls_status = True
        return answer

    functions = {
        "always": lambda: ask(answer=True),
        "failure": lambda: ask(answer=task.failure is not None),
    }
    scope = {**task.scope(**item), **functions}
    try:
        return render_data(step.condition, scope, name=f"steps.{step.id}.if"), calls_status
    except RenderError as error:
        raise hinted(error, RUNS_ANYWAY) from error
