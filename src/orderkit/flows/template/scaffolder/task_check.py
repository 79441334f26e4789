"""
Checks before a step runs: actions, expressions, secrets, and each step's inputs.

Backstage finds most errors only when it reaches the step, or never: it passes on a broken
expression as its source text, and runs a step whose ``if`` is broken.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ground.errors import InvalidInputError, OrderkitError, UsageError, raise_problems
from orderkit.flows.template.actions import ACTIONS
from orderkit.flows.template.actions.action_context import TemplateAction
from orderkit.flows.template.scaffolder.masking import MASK, Masker
from softwaretemplates import form_schema
from softwaretemplates.render import RenderError, Unknown, compile_template
from softwaretemplates.template import Template, TemplateStep

PASSED_ON = "Backstage would pass the text on as it stands"
RUNS_ANYWAY = "Backstage would run the step"
_TAGS = re.compile(r"\$\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
_TEXTS = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_SECRETS = re.compile(r"(?<![.\w])(?:secrets|environment\s*\.\s*secrets)\b")


def action_of(step: TemplateStep, *, dry_run: bool) -> TemplateAction:
    """
    Return a step's action; for a dry run, an unknown one with any inputs.

    Raises:
        InvalidInputError: The action does not exist; the message names the nearest and lists all.
    """
    action = ACTIONS.get(step.action)
    if action is not None:
        return action
    if dry_run:
        return TemplateAction(
            step.action, {}, lambda _context, _inputs: {}, writes=lambda _: ["."], is_known=False
        )
    raise InvalidInputError(
        f"steps.{step.id}.action",
        step.action,
        "is not an action that Orderkit knows",
        hint=f"{nearest_action(step.action)}known: {', '.join(ACTIONS)}",
    )


def nearest_action(name: str) -> str:
    """Return a question that names the action which an unknown one resembles, or nothing."""
    near = difflib.get_close_matches(name, ACTIONS, n=1)
    return f"did you mean '{near[0]}'? " if near else ""


def check_template(template: Template, *, platform: bool, dry_run: bool) -> None:
    """
    Check everything that does not depend on values.

    Raises:
        InvalidInputError: An unknown action, or secrets where Backstage has none.
        RenderError: An expression is malformed or refused; named by its path.
        UsageError: A step needs a platform, and there is none.
        SeveralProblemsError: More than one of these; all are named.
    """
    raise_problems(list(_problems(template, platform=platform, dry_run=dry_run)))


def _problems(template: Template, *, platform: bool, dry_run: bool) -> Iterator[OrderkitError]:
    for step in template.steps:
        try:
            action = action_of(step, dry_run=dry_run)
        except InvalidInputError as error:
            yield error
            continue
        if action.remote and not platform and not dry_run:
            yield UsageError(
                f"steps.{step.id}: {action.id} needs a platform, and none is connected",
                hint="name one with --platform FILE, or start one with 'orderkit up'",
            )
    for name, source, secret, instead in _expressions(template):
        try:
            _check_expression(name, source, instead)
            if not secret:
                _check_no_secret(name, source)
        except (RenderError, InvalidInputError) as error:
            yield error


def _expressions(template: Template) -> Iterator[tuple[str, str, bool, str]]:
    """Yield each templated text: path, text, whether it may use secrets, what Backstage does."""
    for step in template.steps:
        step_path = f"steps.{step.id}"
        if isinstance(step.condition, str):
            yield f"{step_path}.if", step.condition, False, RUNS_ANYWAY
        for name, value in (("input", step.input), ("each", step.each)):
            for path, text in _texts(value, f"{step_path}.{name}"):
                yield path, text, True, PASSED_ON
    for path, text in _texts(template.output, "output"):
        yield path, text, False, PASSED_ON


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]")


def _check_expression(name: str, source: str, instead: str) -> None:
    if not any(mark in source for mark in ("${{", "{%", "{#", "#}")):
        return
    try:
        compile_template(source, capture=True)
    except RenderError as error:
        raise hinted(error.named(name), instead) from error


def hinted(error: RenderError, instead: str) -> RenderError:
    """Add to an error's hint what Backstage would do."""
    error.hint = f"{error.hint} ({instead})".strip()
    return error


def _check_no_secret(name: str, source: str) -> None:
    for tag in _TAGS.finditer(source):
        code = _TEXTS.sub("''", tag[1] or tag[2] or "")
        if _SECRETS.search(code):
            raise InvalidInputError(
                name,
                source,
                "uses secrets, which exist only in `input` and `each`",
                hint="Backstage reads them as undefined here: decide by a parameter",
            )


def check_secrets(template: Template, secrets: Mapping[str, str]) -> None:
    """
    Check the secrets against ``spec.secrets.schema``. No value is shown.

    Raises:
        InvalidInputError: One is missing or refused.
    """
    problem = form_schema.first_problem(template.secrets, dict(secrets))
    if problem is None:
        return
    if problem.validator == "required":
        missing = next(name for name in problem.validator_value if name not in problem.instance)
        raise InvalidInputError(
            f"secrets.{missing}",
            None,
            "is missing: the template requires it",
            hint=f"pass it with --secret {missing}=@FILE or --secret {missing}=env",
        )
    field = ".".join(["secrets", *map(str, problem.absolute_path)])
    rule = f"is refused by the template's rule '{problem.validator}'"
    if problem.validator == "additionalProperties":
        rule += f"; it knows {', '.join(template.secrets.get('properties', {})) or 'none'}"
    raise InvalidInputError(field, MASK, rule)


def check_inputs(
    step: TemplateStep,
    action: TemplateAction,
    inputs: Mapping[str, Any],
    masker: Masker,
    *,
    key: str = "",
) -> None:
    """
    Check rendered inputs against the action's schema. Secrets in them are not shown.

    Raises:
        InvalidInputError: One is missing, unknown or refused.
    """
    problem = form_schema.first_problem(action.schema, inputs)
    if problem is None or isinstance(problem.instance, Unknown):
        return
    path = ".".join(["steps", step.id, "input", *map(str, problem.absolute_path)])
    masked = masker.value(problem.instance)
    # The library's message contains the value, escaped and cut: use it only without secrets.
    message = problem.message if masked == problem.instance else problem.validator
    raise InvalidInputError(
        f"{path} (each.key {key})" if key else path,
        masked,
        f"is refused: {message}",
        hint=f"inputs of {action.id}: {', '.join(action.schema['properties'])}",
    )
