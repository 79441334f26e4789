"""
``github:webhook`` and ``github:actions:dispatch``.

A webhook learns of every push, so a step may add one only to a repository that the same task has
published. GitHub has no key that makes a dispatch idempotent: a commit status on the branch or tag
says that a task asked for a run. A second run of the task finds it and asks no more; if the first
one was cut off in between, the workflow's own runs on that commit tell whether it began.
"""

from __future__ import annotations

import hashlib
import time

from ground.errors import InvalidInputError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.flows.template.actions.action_context import (
    FLAG,
    MAP,
    NUMBER,
    TEXT,
    TEXTS,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from orderkit.flows.template.actions.publish_repository import (
    check_forge,
    check_kind,
    open_repository,
    refuse_inputs,
    repository_of,
)
from orderkit.ports.forge import CommitStatus, Webhook
from orderkit.ports.workflows import ForgeWorkflows
from softwaretemplates.render.javascript import text

_CONTEXT = "orderkit/dispatch"
_RUN_SHOWN_S = 10.0
_WHY = "Orderkit acts with the platform's own credentials"


def _webhook(context: ActionContext, inputs: Inputs) -> Outputs:
    forge = check_kind(context, "github:webhook", "github")
    refuse_inputs(inputs, ("token",), _WHY)
    repo = repository_of(inputs["repoUrl"], forge)
    # a webhook learns of every push
    if repo not in context.published:
        raise InvalidInputError(
            "repoUrl",
            inputs["repoUrl"],
            "is not a repository that an earlier step of this task published",
            hint="put a publish:github step for it before this step",
        )
    for name, wanted, default in (
        ("contentType", "json", "form"),
        ("active", True, True),
        ("insecureSsl", False, False),
    ):
        if inputs.get(name, default) != wanted:
            raise InvalidInputError(
                name,
                inputs.get(name, default),
                "is not supported: webhooks are active, deliver JSON and check certificates",
                hint=f"write {name}: {str(wanted).lower()}",
            )
    events = tuple(inputs.get("events", ["push"]))
    hook = Webhook(inputs["webhookUrl"], events, inputs.get("webhookSecret", ""))
    forge.ensure_webhook(repo, hook)
    context.log(f"{repo} reports {', '.join(events)} to {hook.url}")
    return {}


def _dispatch(context: ActionContext, inputs: Inputs) -> Outputs:
    forge = check_kind(context, "github:actions:dispatch", "github")
    refuse_inputs(inputs, ("token",), _WHY)
    repo, workflow = repository_of(inputs["repoUrl"], forge), inputs["workflowId"]
    open_repository(context, repo)
    workflows = forge.workflows
    if workflows is None:
        raise RefusedError(f"{forge.capabilities.title} runs no workflows for templates")
    ref = inputs["branchOrTagName"]
    newest = forge.commits(repo, ref=ref, limit=1)
    if not newest:
        raise InvalidInputError("branchOrTagName", ref, f"is no branch or tag of {repo}")
    commit = newest[0].id
    _once(context, workflows, repo, commit, inputs)
    context.log(f"{workflow} of {repo} on {ref}")
    if not inputs.get("returnWorkflowRunDetails"):
        return {}
    return _run_details(workflows, repo, workflow, commit)


def _once(
    context: ActionContext,
    workflows: ForgeWorkflows,
    repo: RepoId,
    commit: CommitSha,
    inputs: Inputs,
) -> None:
    """Start the workflow unless this task did so before."""
    forge, workflow, ref = context.services.forge, inputs["workflowId"], inputs["branchOrTagName"]
    given = {name: text(value) for name, value in (inputs.get("workflowInputs") or {}).items()}
    asked = repr((context.task_id, workflow, ref, sorted(given.items())))
    name = f"{_CONTEXT}/{hashlib.sha256(asked.encode()).hexdigest()[:12]}"
    known = {status.context: status.state for status in forge.statuses(repo, commit)}
    if known.get(name) == "success":
        context.log(f"{workflow} was started before")
        return
    # cut off after the status: the workflow's own runs on that commit tell whether it began
    if known.get(name) is None or not workflows.workflow_runs(repo, workflow, commit):
        # before the dispatch, for which GitHub has no key that makes it idempotent
        forge.set_status(repo, commit, CommitStatus(name, "pending", f"starts {workflow}"))
        workflows.dispatch_workflow(repo, workflow, ref, given)
    forge.set_status(repo, commit, CommitStatus(name, "success", f"started {workflow}"))


def _run_details(
    workflows: ForgeWorkflows, repo: RepoId, workflow: str, commit: CommitSha
) -> Outputs:
    """Return the newest run; a run may appear seconds after it was asked for."""
    until = time.monotonic() + _RUN_SHOWN_S
    while not (runs := workflows.workflow_runs(repo, workflow, commit)):
        if time.monotonic() > until:
            return {}
        time.sleep(0.5)
    return {
        "workflowRunId": runs[0].number,
        "workflowRunUrl": runs[0].api_url,
        "workflowRunHtmlUrl": runs[0].web_url,
    }


GITHUB_WEBHOOK = TemplateAction(
    "github:webhook",
    inputs_schema(
        ("repoUrl", "webhookUrl"),
        repoUrl=TEXT,
        webhookUrl=TEXT,
        webhookSecret=TEXT,
        events=TEXTS,
        active=FLAG,
        contentType={"enum": ["form", "json"]},
        insecureSsl=FLAG,
        token=TEXT,
    ),
    _webhook,
    remote=True,
    check=check_forge,
)
GITHUB_ACTIONS_DISPATCH = TemplateAction(
    "github:actions:dispatch",
    inputs_schema(
        ("repoUrl", "workflowId", "branchOrTagName"),
        repoUrl=TEXT,
        workflowId=TEXT,
        branchOrTagName=TEXT,
        workflowInputs=MAP,
        returnWorkflowRunDetails=FLAG,
        token=TEXT,
    ),
    _dispatch,
    outputs_schema(workflowRunId=NUMBER, workflowRunUrl=TEXT, workflowRunHtmlUrl=TEXT),
    remote=True,
    check=check_forge,
)
