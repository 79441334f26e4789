"""Commands about changes of living orders: history."""

from __future__ import annotations

import click

from orderkit.cli.options import connect_to, json_option, platform_option


@click.command("history")
@click.argument("order")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="COMMITS",
    help="How many commits to tell of, newest first.",
)
@platform_option
@json_option
def history_command(order: str, limit: int, platform_file: str | None, as_json: bool) -> None:
    """
    Tell who changed which field of ORDER from what to what, why, and in which commit.

    Commits by hand are told too.

    Example: orderkit history garage-ae86
    """
    from orderkit.cli import changeviews
    from orderkit.flows.history import history

    changeviews.show_history(order, history(connect_to(platform_file), order, limit=limit), as_json)
