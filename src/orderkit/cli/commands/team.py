"""Commands about teams."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orderkit.cli import completion
from orderkit.cli.options import (
    adopt_option,
    connect_to,
    json_option,
    platform_option,
    requester_option,
    timeout_option,
)

if TYPE_CHECKING:
    from orderkit.flows.team.teams import TeamChange

F = TypeVar("F", bound=Callable[..., Any])


def decision_options(function: F) -> F:
    """Add the options that set members, kits, namespaces and limits of a team."""
    options = (
        click.option(
            "--member",
            "members",
            metavar="LOGIN",
            multiple=True,
            help="A member (forge user); name all of them. Default: no change.",
        ),
        click.option(
            "--kit",
            "kits",
            metavar="KIT",
            shell_complete=completion.kits,
            multiple=True,
            help="A kit the team may order; name all of them. "
            "Default: no change, at first every kit.",
        ),
        click.option(
            "--namespace",
            "namespaces",
            metavar="NAME",
            multiple=True,
            help="A namespace the team may deliver to besides its own; name all of them.",
        ),
        click.option(
            "--limit",
            "limits",
            metavar="LIMIT=MOST",
            multiple=True,
            help="orders=20, orders.KIT=5, KIT.FIELD=MOST, or cost=500 (a month, all orders).",
        ),
        click.option(
            "--over",
            type=click.Choice(["refuse", "ask"]),
            help="What happens to more: it is refused, or it needs the platform team's approval. "
            "Default: no change, at first refuse.",
        ),
        click.option(
            "--agents",
            type=click.Choice(["read", "propose", "write"]),
            help="What AI agents of its members may do: read, propose by pull requests, or write "
            "as their person may. Default: no change, at first propose.",
        ),
        adopt_option,
    )
    return functools.reduce(lambda command, option: option(command), reversed(options), function)


@click.group("team")
def team_command() -> None:
    """Manage teams: who may order, which kits and how much."""


@team_command.command("add", short_help="Add a team.")
@click.argument("name")
@decision_options
@requester_option
@platform_option
@json_option
def add(name: str, requester: str, platform_file: str | None, **decisions: Any) -> None:
    """
    Add team NAME, so that it may order. Repeating it only updates its part of the ledger.

    Example: orderkit team add rx7 --member alice --kit garage --limit orders=20
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.team import teams

    as_json = decisions.pop("as_json")
    team_change = _team_change(**decisions)
    platform = connect_to(platform_file)
    added = teams.add_team(platform, name, requester=requester, change=team_change)
    team_views.show_team_added(added, as_json)


@team_command.command("change", short_help="Change members, kits and limits of a team.")
@click.argument("name")
@decision_options
@click.option("--all-kits", is_flag=True, help="Allow every kit.")
@click.option("--no-member", is_flag=True, help="Remove all members.")
@click.option("--no-namespace", is_flag=True, help="Allow only the team's own namespace.")
@click.option(
    "--no-limit", "dropped", metavar="LIMIT", multiple=True, help="A limit to remove. Repeatable."
)
@requester_option
@platform_option
@json_option
def change(name: str, requester: str, platform_file: str | None, **decisions: Any) -> None:
    """
    Change who belongs to team NAME and what it may order. Existing orders are not affected.

    Example: orderkit team change rx7 --limit orders=30 --no-limit garage.stage
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.team import teams

    as_json = decisions.pop("as_json")
    team_change = _team_change(**decisions)
    platform = connect_to(platform_file)
    changed = teams.change_team(platform, name, requester=requester, change=team_change)
    team_views.show_team_changed(changed, as_json)


@team_command.command("list", short_help="List the teams.")
@platform_option
@json_option
def list_(platform_file: str | None, as_json: bool) -> None:
    """
    List the teams of the ledger.

    Example: orderkit team list
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.team import teams

    team_views.show_teams(teams.list_teams(connect_to(platform_file)), as_json)


@team_command.command("show", short_help="Show a team.")
@click.argument("name")
@platform_option
@json_option
def show(name: str, platform_file: str | None, as_json: bool) -> None:
    """
    Show members, allowed kits, limits and orders of team NAME.

    Example: orderkit team show rx7
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.team import teams

    team_views.show_team(teams.show_team(connect_to(platform_file), name), as_json)


@team_command.command("remove", short_help="Remove a team without orders.")
@click.argument("name")
@requester_option
@timeout_option("60s")
@platform_option
@json_option
def remove(
    name: str, requester: str, timeout_s: float, platform_file: str | None, as_json: bool
) -> None:
    """
    Remove team NAME. Refused while it has orders. Its organisation on the forge stays.

    Example: orderkit team remove rx7
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.team import teams

    removed = teams.remove_team(
        connect_to(platform_file),
        name,
        requester=requester,
        timeout_s=timeout_s,
    )
    team_views.show_team_removed(removed, as_json)


def _team_change(**decisions: Any) -> TeamChange:
    """
    Read the options of `decision_options`.

    Raises:
        UsageError: Two of them contradict each other, or a limit has no ``=``.
    """
    from orderkit.cli.views.order_views import assignments
    from orderkit.flows.team.teams import TeamChange

    return TeamChange(
        members=_list("--member", decisions["members"], "--no-member", decisions.get("no_member")),
        kits=_list("--kit", decisions["kits"], "--all-kits", decisions.get("all_kits")),
        namespaces=_list(
            "--namespace", decisions["namespaces"], "--no-namespace", decisions.get("no_namespace")
        ),
        limits=assignments(decisions["limits"], example="orders=20"),
        dropped=tuple(decisions.get("dropped", ())),
        over=decisions["over"],
        agents=decisions["agents"],
        adopted=tuple(decisions["adopted"]),
    )


def _list(
    option: str, values: Sequence[str], other: str, is_emptied: bool | None
) -> tuple[str, ...] | None:
    from ground.errors import UsageError

    if is_emptied and values:
        raise UsageError(
            f"{option} and {other} contradict each other", hint="leave one of them out"
        )
    return () if is_emptied else (tuple(values) or None)
