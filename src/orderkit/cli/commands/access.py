"""``orderkit access``: let programs use the service."""

from __future__ import annotations

import click

from orderkit.cli.options import json_option, platform_option
from orderkit.cli.output import say

_DAYS_MAX = 3650
_RIGHTS = ("read", "order", "change", "end", "approve", "observe")
"""As in ``core.platform.service_access``, which help must not import."""


@click.group("access")
def access_command() -> None:
    """Let programs use the service."""


@access_command.command("add")
@click.argument("name")
@click.option(
    "--team", "teams", multiple=True, help="A team that the client may act for. Repeatable."
)
@click.option("--everywhere", is_flag=True, help="The client may act for every team.")
@click.option(
    "--right",
    "rights",
    multiple=True,
    type=click.Choice(_RIGHTS),
    default=("read",),
    show_default=True,
    help="A right of the client. Repeatable.",
)
@click.option(
    "--requester", metavar="REF", help="The client's catalog reference. Default: user:default/NAME."
)
@click.option(
    "--days",
    type=click.IntRange(1, _DAYS_MAX),
    default=365,
    show_default=True,
    help="Days until the token expires.",
)
@platform_option
@json_option
def access_add(
    name: str,
    teams: tuple[str, ...],
    everywhere: bool,
    rights: tuple[str, ...],
    requester: str | None,
    days: int,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Create a token for a program. Stores its digest and prints the token once.

    Replaces the token of an existing client of that name. A running service picks it up.

    Example: orderkit access add ci --team ae86 --right read --right change
    """
    from orderkit.cli.commands.access_clients import NewClient, add_client
    from orderkit.cli.output import emit_json

    new_client = NewClient(name, teams, everywhere, rights, requester, days)
    token, path = add_client(new_client, platform_file)
    if as_json:
        emit_json("orderkit.access/v1", {"client": name, "token": token, "file": str(path)})
        return
    say(token)
    say(f"the token is shown only once; its digest is in {path}", err=True)
