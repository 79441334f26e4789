"""``debug:log`` and ``debug:wait``: log a message, list the workspace, wait."""

from __future__ import annotations

import time

from ground.errors import InvalidInputError
from orderkit.flows.template.actions.action_context import (
    NUMBER,
    TEXT,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
)

WAIT_MAX_S = 600
"""Backstage's own limit."""


def _log(context: ActionContext, inputs: Inputs) -> Outputs:
    if "message" in inputs:
        context.log(inputs["message"])
    if inputs.get("listWorkspace"):
        context.log("Workspace: " + ", ".join(str(path) for path in sorted(context.workspace)))
        if inputs["listWorkspace"] == "with-contents":
            for path in sorted(context.workspace):
                data = context.workspace[path].data
                context.log(f"{path}\n{data.decode(errors='replace')}")
    return {}


def _wait(context: ActionContext, inputs: Inputs) -> Outputs:
    wanted_s = (
        inputs.get("minutes", 0) * 60
        + inputs.get("seconds", 0)
        + inputs.get("milliseconds", 0) / 1000
    )
    if not 0 <= wanted_s <= WAIT_MAX_S:
        raise InvalidInputError(
            "debug:wait",
            f"{wanted_s} s",
            f"is not between 0 and {WAIT_MAX_S} seconds",
            hint=f"wait at most {WAIT_MAX_S} seconds",
        )
    context.log(f"waiting {wanted_s:g} s")
    time.sleep(wanted_s)
    return {}


DEBUG_LOG = TemplateAction(
    "debug:log",
    inputs_schema(
        (),
        message=TEXT,
        listWorkspace={"enum": [True, False, "with-contents", "with-filenames"]},
    ),
    _log,
    dry_run=True,
)
DEBUG_WAIT = TemplateAction(
    "debug:wait", inputs_schema((), minutes=NUMBER, seconds=NUMBER, milliseconds=NUMBER), _wait
)
