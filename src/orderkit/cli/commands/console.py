"""``orderkit console`` makes a one-time link into the console of a platform on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import json_option, platform_option, requester_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from orderkit.core.platform.settings import PlatformSettings


@click.command("console")
@click.option(
    "--team",
    "teams",
    multiple=True,
    help="See the console as a member of this team only. Repeatable. Default: every team.",
)
@requester_option
@platform_option
@json_option
def console_command(
    teams: tuple[str, ...], requester: str, platform_file: str | None, *, as_json: bool
) -> None:
    """
    Print a link that signs you in to the console: once, within ten minutes, on this machine.

    For 'orderkit up' and for 'orderkit serve' on the loopback; others sign in with a provider.

    Example: orderkit console --team ae86
    """
    from orderkit.cli.connecting import connect, load_settings
    from orderkit.cli.output import emit_json
    from orderkit.flows.team.teams import check_team

    settings = load_settings(platform_file)
    link = console_link(settings, requester, teams)
    for team in teams:
        check_team(connect(settings), team)
    if as_json:
        emit_json("orderkit.console/v1", {"link": link, "requester": requester})
        return
    say(link)


def console_link(settings: PlatformSettings, requester: str, teams: tuple[str, ...] = ()) -> str:
    """
    Return a one-time link.

    Raises:
        InvalidInputError: The requester or a team cannot be.
        NotFoundError: The service's secret cannot be read.
    """
    from ground.names import check_label, check_person
    from orderkit.cli.connecting import token
    from orderkit.ports.requesters import Requester
    from orderkit.web.console.sessions import link_token

    groups = frozenset(f"group:default/{check_label('--team', team)}" for team in teams)
    person = Requester(check_person(requester), "a one-time link", groups, everywhere=not groups)
    address = settings.service_address
    return f"{address}/sign-in/link?token={link_token(token(settings.service), person)}"
