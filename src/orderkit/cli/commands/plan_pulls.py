"""``orderkit plan --pull-request``: the plan of a pull request, for a pipeline of the forge."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click

from orderkit.cli.inputs import prices_of
from orderkit.cli.output import emit_json
from orderkit.cli.time_limits import within
from orderkit.cli.views.plan_views import Screen, Shape, draw, lines_of
from orderkit.core.errors import (
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
)
from orderkit.core.names import RepoId
from orderkit.core.plan.plan_json import REFUSED, exit_code, to_json
from orderkit.flows.plan.order_plan import Basis
from orderkit.flows.plan.pull_requests import PullPlan, plan_pull, publish, say_failed
from orderkit.flows.platform import Platform

_PULL = re.compile(r"([A-Za-z0-9._-]+)/([A-Za-z0-9._-]+)#([1-9][0-9]{0,9})\Z")


def parse_pull(text: str) -> tuple[RepoId, int]:
    """
    Read OWNER/REPO#N.

    Raises:
        InvalidInputError: It is none.
    """
    found = _PULL.match(text)
    if not found:
        raise InvalidInputError(
            "--pull-request", text, "is no OWNER/REPO#N", hint="for example ae86/garage-ae86#7"
        )
    return RepoId(found[1], found[2]), int(found[3])


@dataclass(frozen=True, slots=True)
class PullAsked:
    """Which pull request, by what it is planned, and whether the forge is told."""

    repository: RepoId
    number: int
    prices: Path | None = None
    offline: bool = False
    post: bool = True
    limit_s: float = 120.0


def run(
    platform: Platform, asked: PullAsked, view: tuple[Shape | None, Screen], picture: Path | None
) -> int:
    """
    Plan a pull request, say so on the forge, print it; return what the command ends with.

    Raises:
        OrderkitError: What `plan_pull` and `publish` say, or a bad price table.
    """
    prices = prices_of(asked.prices)
    repo, number = asked.repository, asked.number
    try:
        with within(asked.limit_s):
            found = plan_pull(platform, repo, number, basis=Basis(asked.offline, prices))
    except (NotFoundError, RefusedError, RemoteError):
        raise
    except OrderkitError as error:  # out of time
        if asked.post:
            say_failed(platform, repo, number, str(error))
        raise
    if asked.post:
        publish(platform, repo, found)
    show(found, *view)
    if picture and found.judged.plan is not None:
        draw(found.judged.plan, picture)
    return code_of(found)


def show(found: PullPlan, shape: Shape | None, screen: Screen) -> None:
    """Print it to stdout."""
    judged = found.judged
    if shape == "markdown":
        click.echo(found.text)
    elif shape == "json":
        emit_json("orderkit.plan/v1", {"order": found.order, **_json(found)})
    else:
        screen.echo([(f"{found.order} #{found.pull.number}: {judged.summary}", "")])
        screen.echo((f"  refused     {text}", "red") for text in judged.refused)
        screen.echo((f"  note        {text}", "yellow") for text in found.notes)
        if judged.plan is not None:
            screen.echo(lines_of(judged.plan, screen))


def _json(found: PullPlan) -> dict[str, object]:
    plan = to_json(found.judged.plan) if found.judged.plan is not None else {}
    pull = {
        "number": found.pull.number,
        "head": found.head,
        "state": found.judged.state,
        "summary": found.judged.summary,
        "refused": list(found.judged.refused),
        "notes": list(found.notes),
    }
    return {**plan, "pull": pull}


def code_of(found: PullPlan) -> int:
    """Return what the command ends with: as for every plan."""
    judged = found.judged
    if judged.refused:
        return REFUSED
    return OrderkitError.exit_code if judged.plan is None else exit_code(judged.plan)
