"""Commands about teams."""

from __future__ import annotations

import click

from orderkit.cli.options import connect_to, json_option, platform_option, requester_option


@click.group("team")
def team_command() -> None:
    """Say who may order: an organisation, an AppProject, a part of the ledger."""


@team_command.command("add", short_help="Let a team order.")
@click.argument("name")
@requester_option
@platform_option
@json_option
def add(name: str, requester: str | None, platform_file: str | None, as_json: bool) -> None:
    """
    Let team NAME order; repeating it changes nothing.

    Example: orderkit team add rx7
    """
    from orderkit.cli import views
    from orderkit.flows import teams
    from orderkit.flows.platform import default_requester

    platform = connect_to(platform_file)
    added = teams.add_team(platform, name, requester=requester or default_requester())
    views.show_team_added(added, as_json)


@team_command.command("list", short_help="List the teams.")
@platform_option
@json_option
def list_(platform_file: str | None, as_json: bool) -> None:
    """
    List the teams of the ledger.

    Example: orderkit team list
    """
    from orderkit.cli import views
    from orderkit.flows import teams

    views.show_teams(teams.list_teams(connect_to(platform_file)), as_json)
