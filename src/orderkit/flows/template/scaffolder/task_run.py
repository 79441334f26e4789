"""
Run a task: check it, run its steps in order, render its output.

`rounds` says which rounds of a step run (one, or one per item of ``each``), and with which inputs.
All inputs are rendered and checked before the first round runs, as Backstage does. ``if`` is
evaluated once for a plain step and per item for a step with ``each``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from ground.errors import InvalidInputError, OrderkitError, RefusedError, raise_problems
from orderkit.flows.template.actions import ACTIONS
from orderkit.flows.template.actions.action_context import (
    ActionContext,
    Inputs,
    MemoryFolder,
    Services,
    TemplateAction,
    TemplateFolder,
    User,
)
from orderkit.flows.template.scaffolder.task_check import (
    PASSED_ON,
    RUNS_ANYWAY,
    Masker,
    action_of,
    check_inputs,
    check_maskable,
    check_secrets,
    check_template,
    hinted,
    nearest_action,
)
from orderkit.flows.template.scaffolder.task_values import (
    State,
    StepEvent,
    TaskOptions,
    TaskResult,
    TemplateTask,
    example_of,
    render_outputs,
)
from softwaretemplates.render import (
    FileOutcome,
    RenderError,
    SkeletonFile,
    Tree,
    TreeOptions,
    Undefined,
    Unknown,
    render_data,
    truthy,
)
from softwaretemplates.render.integrations import integrations, planning
from softwaretemplates.render.javascript import ordered
from softwaretemplates.size_limit import SIZE_LIMIT
from softwaretemplates.template import Template, TemplateStep


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


_DEFAULTS = TaskOptions()
_NOT_RUN = (
    "not run, because of a problem, an unknown input, files of a step that was not run, or because"
    " no platform is connected"
)
_UNKNOWN = "<unknown"
"""How an unknown output begins, also inside a text."""
_USES_ENTITY = re.compile(r"\buser\b(?!\s*\.\s*ref\b|:)")
"""An expression that may look at more of the user than the reference."""
_PARAMETER = re.compile(r"\bparameters(?:\.|\[\\?['\"])(\w+)")


def run(
    template: Template,
    parameters: Mapping[str, Any],
    *,
    files: TemplateFolder | Mapping[PurePosixPath, bytes | SkeletonFile],
    services: Services | None,
    user: User,
    task_id: str,
    on_step: Callable[[StepEvent], None],
    options: TaskOptions = _DEFAULTS,
) -> TaskResult:
    """
    Validate the parameters, run every step in order, render the output.

    As idempotent as its actions; all of ours are. Parameters, secrets, action names and all
    expressions are checked before anything is written.

    Args:
        files: The folder of template.yaml, by paths relative to it.
        services: None runs without a platform, for templates that need none.
        task_id: The value of ``context.task.id``; a repeated task keeps its id.

    Raises:
        InvalidInputError: A parameter, a secret, an action's name or its input is wrong.
        RenderError: A template in a step, or in the skeleton, is.
        UsageError: A step needs a platform, and there is none.
        RefusedError: The output would contain a secret.
        OrderkitError: An action failed. Steps with ``always()`` have still run.
    """
    secrets = {**options.environment.secrets, **options.secrets}
    check_maskable(secrets)
    check_secrets(template, options.secrets)
    values = template.validate(parameters)
    with planning(is_on=options.dry_run):
        check_template(template, platform=services is not None, dry_run=options.dry_run)
    masker = Masker(secrets.values())
    log: list[str] = []
    folder = MemoryFolder(files) if isinstance(files, Mapping) else files
    context = ActionContext(
        folder,
        template.entity["ref"],
        services,
        _with_entity(user, template, services),
        task_id,
        lambda line: log.append(masker.text(line)),
        options.confined or (services.confined if services else _refused),
        options.dry_run,
        size_limit=options.size_limit or (services.size_limit if services else SIZE_LIMIT),
        is_strict=options.is_strict,
    )
    task = TemplateTask(template, values, context, options, masker, on_step, log)
    for note in template.notes:
        context.log(note)
    with integrations(_hosts(services)), planning(is_on=options.dry_run):
        for step in template.steps:
            _run_step(task, step)
        if task.failure:
            raise task.failure
        try:
            result = _result(task)
        except OrderkitError as error:
            raise_problems([*task.problems, error])
            raise
    raise_problems(task.problems)
    return result


def _refused(
    files: Tree,  # noqa: ARG001 - the port's signature
    values: Mapping[str, Any] | None,  # noqa: ARG001
    options: TreeOptions,  # noqa: ARG001
) -> list[FileOutcome]:
    raise RefusedError("templates that nobody vouches for cannot be rendered here")


def _hosts(services: Services | None) -> list[str] | None:
    """Return the hosts with a portal integration: the platform's forge, if there is one."""
    return None if services is None else [urlsplit(services.forge.base_url).netloc.lower()]


def _result(task: TemplateTask) -> TaskResult:
    try:
        outputs = render_outputs(task)
    except OrderkitError as error:
        raise task.masker.error(error) from error
    steps = {
        step: task.masker.value(record["output"])
        for step, record in task.steps.items()
        if not isinstance(record["output"], Unknown)
    }
    return TaskResult(outputs, steps, tuple(task.log), dict(task.context.workspace))


def _with_entity(user: User, template: Template, services: Services | None) -> User:
    """Fetch the user's entity from the catalog if an expression of the template may read it."""
    if user.entity is not None or services is None:
        return user
    template_text = json.dumps(
        [template.output, [(s.input, s.condition, s.each) for s in template.steps]]
    )
    if not _USES_ENTITY.search(template_text):
        return user
    return replace(user, entity=services.catalog.entity(user.ref))


def _run_step(task: TemplateTask, step: TemplateStep) -> None:
    before = len(task.log)
    state: State = "done"
    try:
        action = action_of(step, dry_run=task.options.dry_run)
        step_rounds = rounds(task, step, action)
        state = _state(task, action, step_rounds)
        if step_rounds:
            task.steps[step.id] = {"output": _outputs(task, step, action, step_rounds, state)}
    except OrderkitError as error:
        _fail(task, step, task.masker.error(_named(step, error)))
        return
    if not step_rounds:
        task.on_step(StepEvent(step.id, step.action, "skipped", step.name))
        return
    inputs_shown = (
        tuple(step_round.shown_inputs for step_round in step_rounds) if task.options.dry_run else ()
    )
    messages = task.log[before:] or _notes(task, step, state, step_rounds)
    summary = task.masker.text(f"{step.name}: {messages[-1]}" if messages else step.name)
    task.on_step(StepEvent(step.id, step.action, state, summary, inputs_shown))


def _fail(task: TemplateTask, step: TemplateStep, error: OrderkitError) -> None:
    """Note an error. A dry run goes on without this step's outputs, to find what else is wrong."""
    if task.options.dry_run:
        task.problems.append(error)
        task.steps[step.id] = {"output": Unknown.at(f"steps.{step.id}.output")}
    else:
        task.failure = task.failure or error
    task.on_step(StepEvent(step.id, step.action, "failed", f"{step.name}: {error}"))


def _named(step: TemplateStep, error: OrderkitError) -> OrderkitError:
    """Name the template's own field if an action refuses an input."""
    if not isinstance(error, InvalidInputError) or error.field not in step.input:
        return error
    source = json.dumps(step.input[error.field])
    names = dict.fromkeys(_PARAMETER.findall(source))
    fields = " and ".join(f"'{name}'" for name in names)
    origin = f"it comes from the form's field {fields}; " if names else ""
    return InvalidInputError(
        f"steps.{step.id}.input.{error.field}",
        error.value,
        error.rule,
        hint=f"{origin}{error.hint}",
    )


def _state(task: TemplateTask, action: TemplateAction, step_rounds: list[Round]) -> State:
    """Return whether an action runs, or is only planned: its outputs are examples, or unknown."""
    if not action.is_known:
        return "unknown"
    if not task.options.dry_run:
        return "done"
    values = [value for r in step_rounds for value in r.inputs.values()]
    is_blind = any(isinstance(value, Unknown) and _UNKNOWN in value for value in values)
    is_blind |= any(_UNKNOWN in str(r.inputs.get("url", "")) for r in step_rounds)
    is_remote = action.remote or any("://" in str(r.inputs.get("url", "")) for r in step_rounds)
    is_cut_off = is_remote and task.context.platform is None
    is_blind |= any(_UNKNOWN in str(path) for r in step_rounds for path in action.reads(r.inputs))
    is_blind |= any(map(task.context.may_lack, _paths(action.reads, step_rounds)))
    if action.dry_run and (task.problems or is_blind or is_cut_off):
        return "unknown"
    return "done" if action.dry_run else "planned"


def _paths(
    named: Callable[[Inputs], Iterable[object]], step_rounds: list[Round]
) -> Iterator[PurePosixPath]:
    """Yield the paths that an action names; of one with an unknown part, the folder before it."""
    for step_round in step_rounds:
        for text in named(step_round.inputs):
            known, unknown, _ = str(text).partition(_UNKNOWN)
            path = PurePosixPath(known.rpartition("/")[0] if unknown else known)
            yield PurePosixPath() if ".." in path.parts else path


def _notes(
    task: TemplateTask, step: TemplateStep, state: State, step_rounds: list[Round]
) -> list[str]:
    """Return what a dry run says of a step that Orderkit cannot run."""
    if state != "unknown":
        return []
    if step.action in ACTIONS:
        return [_NOT_RUN]
    hosts = {str(r.inputs.get("repoUrl", "")).partition("?")[0] for r in step_rounds} - {""}
    forges = _hosts(task.context.platform) or sorted(hosts)
    foreign = ", ".join(sorted(hosts - set(forges)))
    forge = f"; {foreign} is not this platform's forge, {forges[0]}" if foreign else ""
    return [f"Orderkit has no such action. {nearest_action(step.action)}".rstrip() + forge]


def _outputs(
    task: TemplateTask,
    step: TemplateStep,
    action: TemplateAction,
    step_rounds: list[Round],
    state: State,
) -> Any:
    """Run the rounds and return the step's outputs; with ``each``, lists of one entry per round."""
    if state == "unknown":
        task.context.unseen.update(_paths(action.writes, step_rounds))
        return Unknown.at(f"steps.{step.id}.output")
    if state == "planned":
        for step_round in step_rounds:
            action.check(task.context, step_round.inputs)
        examples = example_of(action.outputs)
        return examples if isinstance(examples, dict) else {}
    collected: dict[str, Any] = {}
    for step_round in step_rounds:
        for name, value in action.run(task.context, step_round.inputs).items():
            if step.each is None:
                collected[name] = value
            else:
                collected.setdefault(name, []).append(value)
    return collected
