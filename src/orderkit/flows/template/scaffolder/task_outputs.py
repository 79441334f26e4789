"""A task's output, and example outputs for steps that a dry run did not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.errors import RefusedError
from orderkit.flows.template.actions.action_context import Schema
from orderkit.flows.template.scaffolder.task_check import PASSED_ON, hinted
from orderkit.flows.template.scaffolder.task_values import TemplateTask
from softwaretemplates.render import RenderError, Unknown, render_data, truthy

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
