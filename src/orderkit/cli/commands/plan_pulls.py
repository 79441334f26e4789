"""``orderkit plan --pull-request``: the plan of a pull request, for a pipeline of the forge."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ground.errors import InvalidInputError, NotFoundError, OrderkitError, RefusedError, RemoteError
from ground.names import RepoId
from orderkit.cli.inputs import prices_of
from orderkit.cli.options import connect_to
from orderkit.cli.output import emit_json, say
from orderkit.cli.time_limits import within
from orderkit.cli.views.plan_views import Screen, Shape, draw, lines_of
from orderkit.core.plan.plan_json import exit_code, plan_document
from orderkit.flows.plan.order_plan import Basis
from orderkit.flows.plan.pull_requests import PullPlan, plan_pull, publish, say_failed

if TYPE_CHECKING:
    from orderkit.cli.commands.plan_request import PlanRequest

_PULL = re.compile(r"([^#]+)#([1-9][0-9]{0,9})\Z")


def parse_pull(text: str) -> tuple[RepoId, int]:
    """
    Read OWNER/REPO#N.

    Raises:
        InvalidInputError: It is none.
    """
    match = _PULL.match(text)
    repo = RepoId.parse(match[1]) if match else None
    if not match or repo is None:
        raise InvalidInputError(
            "--pull-request", text, "is not an OWNER/REPO#N", hint="for example ae86/garage-ae86#7"
        )
    return repo, int(match[2])


def run(request: PlanRequest) -> int:
    """
    Plan a pull request, post the plan on the forge, print it; return the exit code.

    Raises:
        OrderkitError: What `plan_pull` and `publish` raise, or a bad price table.
    """
    repo, number = parse_pull(request.pull or "")
    platform = connect_to(request.platform_file)
    basis = Basis(request.offline, prices_of(request.prices_file))
    try:
        with within(request.time_limit_s):
            plan = plan_pull(platform, repo, number, basis=basis)
    except (NotFoundError, RefusedError, RemoteError):
        raise
    except OrderkitError as error:  # out of time
        if not request.no_post:
            say_failed(platform.forge, repo, number, str(error))
        raise
    if not request.no_post:
        publish(platform.forge, repo, plan)
    show(plan, request.shape, request.screen)
    if request.graph and plan.judged.plan is not None:
        draw(plan.judged.plan, request.graph)
    return code_of(plan)


def show(plan: PullPlan, shape: Shape | None, screen: Screen) -> None:
    """Print it to stdout."""
    judged = plan.judged
    if shape == "markdown":
        say(plan.text)
    elif shape == "json":
        emit_json("orderkit.plan/v1", {"order": plan.order, **_json(plan)})
    else:
        screen.echo([(f"{plan.order} #{plan.pull.number}: {judged.summary}", "")])
        screen.echo((f"  refused     {text}", "red") for text in judged.refused)
        screen.echo((f"  note        {text}", "yellow") for text in plan.notes)
        if judged.plan is not None:
            screen.echo(lines_of(judged.plan, screen))


def _json(pull_plan: PullPlan) -> dict[str, object]:
    plan = pull_plan.judged.plan
    document = {} if plan is None else plan_document(plan).to_json()
    pull = {
        "number": pull_plan.pull.number,
        "head": pull_plan.head,
        "state": pull_plan.judged.state,
        "summary": pull_plan.judged.summary,
        "refused": list(pull_plan.judged.refused),
        "notes": list(pull_plan.notes),
    }
    return {**document, "pull": pull}


def code_of(plan: PullPlan) -> int:
    """Return what the command ends with: as for every plan."""
    judged = plan.judged
    if judged.refused:
        return RefusedError.exit_code
    return OrderkitError.exit_code if judged.plan is None else exit_code(judged.plan)
