"""Commands cost and prices: what orders cost, and where prices come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli import completion
from orderkit.cli.options import PathOption, connect_to, json_option, platform_option

if TYPE_CHECKING:
    from pathlib import Path


@click.command("cost")
@click.option(
    "--team", default="", metavar="TEAM", shell_complete=completion.teams, help="Only this team."
)
@click.option(
    "--kit", default="", metavar="KIT", shell_complete=completion.kits, help="Only this kit."
)
@click.option("--month", default="", metavar="YYYY-MM", help="A month, in UTC.")
@click.option(
    "--since", default="", metavar="TIME", help="A day or a time. Default: the first of the month."
)
@click.option("--until", default="", metavar="TIME", help="Excluded. Default, and at most: now.")
@click.option("--csv", "as_csv", is_flag=True, help="Print each interval as a line of CSV.")
@platform_option
@json_option
def cost_command(
    team: str,
    kit: str,
    month: str,
    since: str,
    until: str,
    as_csv: bool,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Say what orders cost in a period, by team and kit: who had what for how long, from Git.

    Example: orderkit cost --team ae86 --month 2026-10 --csv
    """
    from ground.errors import UsageError
    from orderkit.cli.views import cost_views
    from orderkit.core.plan.cost_statement import month_of, period_of
    from orderkit.flows.plan.cost_statements import StatementRequest, make_statement

    if month and (since or until):
        raise UsageError(
            "--month and --since or --until contradict each other",
            hint="--month 2026-10, or --since 2026-10-01 --until 2026-11-01",
        )
    if as_csv and as_json:
        raise UsageError("--csv and --json contradict each other", hint="leave one of them out")
    platform = connect_to(platform_file)
    period = month_of(month) if month else period_of(since, until, platform.clock.now())
    statement = make_statement(platform, StatementRequest(*period, team, kit))
    if as_csv:
        cost_views.print_csv(statement)
    else:
        cost_views.show_statement(statement, as_json=as_json)


@click.group("prices")
def prices_command() -> None:
    """Make price tables, which say what resources cost a month."""


@prices_command.command("import", short_help="Make a price table from a cloud's price list.")
@click.argument("provider", type=click.Choice(["aws", "gcp"]))
@click.argument("file", type=PathOption(exists=True, dir_okay=False))
@click.option(
    "--map",
    "map_file",
    required=True,
    type=PathOption(exists=True, dir_okay=False),
    metavar="FILE",
    help="Which price of the list is that of which kind (docs/cost.md).",
)
@click.option("--currency", default="USD", show_default=True, help="Of the prices to take.")
@json_option
def import_command(provider: str, file: Path, map_file: Path, currency: str, as_json: bool) -> None:
    """
    Print a price table made from FILE, the public price list of a cloud.

    aws: an offer file (index.json or index.csv). gcp: SKUs of the Cloud Billing Catalog (JSON).

    Example: orderkit prices import aws index.json --map map.yaml > gitops/prices.yaml
    """
    from orderkit.cli.output import emit_json, say
    from orderkit.core.plan.price_lists import imported_table
    from yamlfiles import yaml11

    table = imported_table(
        provider,
        (str(file), file.read_bytes()),
        (str(map_file), map_file.read_bytes()),
        currency=currency,
    )
    if as_json:
        emit_json("orderkit.prices/v1", {"table": table})
    else:
        say(yaml11.dump(table), nl=False)
