"""
Checks before a step of a task runs, and what keeps its secrets out of sight.

Actions, expressions, secrets and each step's inputs are checked (`check_template`, `check_secrets`,
`check_inputs`). Backstage finds most errors only when it reaches the step, or never: it passes on a
broken expression as its source text, and runs a step whose ``if`` is broken.

`Masker` keeps a task's secrets out of its logs, events, outputs and errors. As in Backstage, every
input that contains a secret is masked as a whole, so ``Bearer ${{ secrets.token }}`` becomes
``***`` and not ``Bearer ***``. Encoded, escaped and cut forms of a secret are masked too. Secrets
shorter than four characters are refused, because masking them would mask ordinary words.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ground import secrets as registry
from ground.errors import InvalidInputError, OrderkitError, UsageError, raise_problems
from orderkit.flows.template.actions import ACTIONS
from orderkit.flows.template.actions.action_context import TemplateAction
from softwaretemplates import form_schema
from softwaretemplates.render import RenderError, Unknown, compile_template
from softwaretemplates.template import Template, TemplateStep

MASK = registry.MASK
_DERIVED_SHORTEST = 8
"""Shorter texts made with a secret may be plain words ("true"): masked, but not refused."""


class Masker:
    """The texts to hide in one task. Grows while steps are rendered."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._hidden: set[str] = set()
        self._leaks: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        for secret in secrets:
            registry.register(secret)
            self._add(secret, leak=True)

    def learn(self, rendered: Any, without: Any) -> None:
        """Hide the texts of `rendered` that differ when rendered without secrets."""
        if not self._hidden:
            return
        if isinstance(rendered, str):
            if rendered != without and len(rendered) >= registry.SHORTEST:
                self._add(rendered, leak=len(rendered) >= _DERIVED_SHORTEST)
        elif isinstance(rendered, dict):
            other = without if isinstance(without, dict) else {}
            for key, value in rendered.items():
                self.learn(value, other.get(key))
        elif isinstance(rendered, list):
            items = without if isinstance(without, list) else []
            for at, value in enumerate(rendered):
                self.learn(value, items[at] if at < len(items) else None)

    def text(self, text: str) -> str:
        """Return `text` with all hidden texts masked; overlapping ones become one mask."""
        if self._pattern is None:
            return text
        pieces, end = [], 0
        for start, stop in self._ranges(text):
            pieces.append(text[end:start])
            end = stop
        pieces.append(text[end:])
        return self._uncut(MASK.join(pieces))

    def value(self, value: Any) -> Any:
        """Return a copy of JSON-like data with every text in it masked, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def error(self, error: OrderkitError) -> OrderkitError:
        """Mask an error in place, including the attributes of its class; return it."""
        error.args = tuple(self.value(argument) for argument in error.args)
        for name, value in list(vars(error).items()):
            setattr(error, name, self.value(value))
        return error

    def leak(self, value: Any, path: str) -> str | None:
        """Return the path of the first text that contains a secret, or None."""
        if isinstance(value, Mapping):
            leaks = (self.leak([key, item], f"{path}.{key}") for key, item in value.items())
            return next((self.text(leak_path) for leak_path in leaks if leak_path), None)
        if isinstance(value, list):
            leaks = (self.leak(item, path) for item in value)
            return next((leak_path for leak_path in leaks if leak_path), None)
        text = value if isinstance(value, str) else str(value)
        return path if any(hidden in text for hidden in self._leaks) else None

    def _add(self, hidden: str, *, leak: bool) -> None:
        forms = {form for plain in (hidden, hidden.strip()) for form in _forms(plain)}
        self._hidden |= {form for form in forms if len(form) >= registry.SHORTEST}
        if leak:
            self._leaks |= {form for form in forms if len(form) >= registry.SHORTEST}
        # a look-ahead finds forms that overlap; of those that begin at one place, the longest
        longest_first = sorted(self._hidden, key=lambda form: (-len(form), form))
        self._pattern = re.compile(f"(?=({'|'.join(map(re.escape, longest_first))}))")

    def _ranges(self, text: str) -> Iterator[tuple[int, int]]:
        assert self._pattern is not None  # noqa: S101 - the caller looked
        begin, end = -1, -1
        for match in self._pattern.finditer(text):
            start, stop = match.span(1)
            if start < end:
                end = max(end, stop)
                continue
            if begin >= 0:
                yield begin, end
            begin, end = start, stop
        if begin >= 0:
            yield begin, end

    def _uncut(self, text: str) -> str:
        """Mask the beginning of a secret that a message cut off with an ellipsis."""
        if "…" not in text:
            return text
        for form in self._hidden:
            for size in range(len(form) - 1, registry.SHORTEST - 1, -1):
                if f"{form[:size]}…" in text:
                    text = text.replace(f"{form[:size]}…", f"{MASK}…")
                    break
        return text


def _forms(plain: str) -> set[str]:
    """Return a text as messages may contain it: encoded, escaped, in one line."""
    forms = registry.forms_of(plain) | {plain, " ".join(plain.split())}
    for form in list(forms):
        escaped = json.dumps(form, ensure_ascii=False)[1:-1]
        forms |= {escaped, json.dumps(form)[1:-1], repr(form)[1:-1], repr(repr(form))[2:-2]}
    return forms


def check_maskable(secrets: Mapping[str, str]) -> None:
    """
    Refuse secrets that cannot be masked.

    Raises:
        InvalidInputError: One has fewer than four characters, or half a character in it.
    """
    for name, value in secrets.items():
        if len(" ".join(value.split())) < registry.SHORTEST:
            raise InvalidInputError(
                f"secrets.{name}",
                MASK,
                f"has fewer than {registry.SHORTEST} characters",
                hint="so short a text cannot be masked in logs without eating ordinary words",
            )
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidInputError(f"secrets.{name}", MASK, "holds half a character")


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
