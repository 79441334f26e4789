"""Commands about teams."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orderkit.cli.options import (
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
    """Add the options that say what a team may."""
    options = (
        click.option(
            "--member",
            "members",
            metavar="LOGIN",
            multiple=True,
            help="A user of the forge who belongs to it; give all. Without: as it was.",
        ),
        click.option(
            "--kit",
            "kits",
            metavar="KIT",
            multiple=True,
            help="A kit that it may order; give all. Without: as it was, at first every kit.",
        ),
        click.option(
            "--namespace",
            "namespaces",
            metavar="NAME",
            multiple=True,
            help="A namespace beside its own that it may deliver to; give all.",
        ),
        click.option(
            "--limit",
            "limits",
            metavar="LIMIT=MOST",
            multiple=True,
            help="orders=20, orders.KIT=5 or KIT.FIELD=MOST.",
        ),
    )
    return functools.reduce(lambda command, option: option(command), reversed(options), function)


@click.group("team")
def team_command() -> None:
    """Say who may order, and how much: an organisation, an AppProject, a part of the ledger."""


@team_command.command("add", short_help="Let a team order.")
@click.argument("name")
@decision_options
@requester_option
@platform_option
@json_option
def add(name: str, requester: str | None, platform_file: str | None, **decisions: Any) -> None:
    """
    Let team NAME order; repeating it changes nothing, and brings its part of the ledger up to date.

    Example: orderkit team add rx7 --member alice --kit garage --limit orders=20
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.platform import default_requester
    from orderkit.flows.team import teams

    as_json = decisions.pop("as_json")
    team_change = _wanted(**decisions)
    platform = connect_to(platform_file)
    added = teams.add_team(
        platform, name, requester=requester or default_requester(), change=team_change
    )
    team_views.show_team_added(added, as_json)


@team_command.command("change", short_help="Decide anew about a team.")
@click.argument("name")
@decision_options
@click.option("--all-kits", is_flag=True, help="It may order every kit.")
@click.option("--no-member", is_flag=True, help="Nobody belongs to it.")
@click.option("--no-namespace", is_flag=True, help="It delivers to its own namespace only.")
@click.option("--no-limit", "dropped", metavar="LIMIT", multiple=True, help="A limit to drop.")
@requester_option
@platform_option
@json_option
def change(name: str, requester: str | None, platform_file: str | None, **decisions: Any) -> None:
    """
    Decide anew who belongs to team NAME and what it may order. Living orders stay as they are.

    Example: orderkit team change rx7 --limit orders=30 --no-limit garage.stage
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.platform import default_requester
    from orderkit.flows.team import teams

    as_json = decisions.pop("as_json")
    team_change = _wanted(**decisions)
    platform = connect_to(platform_file)
    changed = teams.change_team(
        platform, name, requester=requester or default_requester(), change=team_change
    )
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


@team_command.command("show", short_help="Say what a team may and has.")
@click.argument("name")
@platform_option
@json_option
def show(name: str, platform_file: str | None, as_json: bool) -> None:
    """
    Say who belongs to team NAME, what it may order, and what it has.

    Example: orderkit team show rx7
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.team import teams

    team_views.show_team(teams.show_team(connect_to(platform_file), name), as_json)


@team_command.command("remove", short_help="Take a team without orders off the platform.")
@click.argument("name")
@requester_option
@timeout_option(60.0)
@platform_option
@json_option
def remove(
    name: str, requester: str | None, timeout_s: float, platform_file: str | None, as_json: bool
) -> None:
    """
    Take team NAME off the platform. Refused while it has orders; its organisation stays.

    Example: orderkit team remove rx7
    """
    from orderkit.cli.views import team_views
    from orderkit.flows.platform import default_requester
    from orderkit.flows.team import teams

    removed = teams.remove_team(
        connect_to(platform_file),
        name,
        requester=requester or default_requester(),
        timeout_s=timeout_s,
    )
    team_views.show_team_removed(removed, as_json)


def _wanted(**decisions: Any) -> TeamChange:
    """
    Read what the options decide.

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
    )


def _list(
    option: str, values: Sequence[str], other: str, is_emptied: bool | None
) -> tuple[str, ...] | None:
    from orderkit.core.errors import UsageError

    if is_emptied and values:
        raise UsageError(f"{option} and {other} contradict each other")
    return () if is_emptied else (tuple(values) or None)
