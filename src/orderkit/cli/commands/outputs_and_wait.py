"""Commands for pipelines: outputs, wait."""

from __future__ import annotations

import re

import click

from orderkit.cli import completion
from orderkit.cli.options import (
    connect_to,
    duration_option,
    json_option,
    platform_option,
    timeout_option,
)

_PREFIX = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*)?")
_FORMATS = ("env", "json", "yaml", "github", "gitlab")


@click.command("outputs")
@click.argument("order", shell_complete=completion.orders)
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="env: NAME=value for a shell; github: for $GITHUB_OUTPUT, also in Gitea; gitlab: a dotenv"
    " report. Default: env.",
)
@click.option(
    "--secrets",
    "with_secrets",
    is_flag=True,
    help="Read secret outputs, too. Whoever reads the output of this command has them.",
)
@click.option(
    "--prefix",
    default="",
    metavar="TEXT",
    help="Put this before each name in the formats env and gitlab.",
)
@platform_option
@json_option
def outputs_command(
    order: str,
    format_: str | None,
    with_secrets: bool,
    prefix: str,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Print the outputs of ORDER for programs, once it is Ready.

    In env, names are upper case (bucketName is BUCKET_NAME) and values are quoted for every shell.
    Exit code 10: it is not Ready; others as in 'orderkit wait'.

    Example: eval "$(orderkit outputs garage-ae86)"
    """
    from ground.errors import InvalidInputError
    from orderkit.cli.views import output_views
    from orderkit.flows.order.order_outputs import outputs

    if as_json and format_ not in (None, "json"):
        raise click.UsageError("give --json or --format")
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInputError(
            "--prefix", prefix, "is not the beginning of a variable's name", hint="--prefix DB_"
        )
    read = outputs(connect_to(platform_file), order, secrets=with_secrets)
    output_views.show_outputs(read, "json" if as_json else format_ or "env", prefix=prefix)


@click.command("wait")
@click.argument("order", shell_complete=completion.orders)
@click.option(
    "--for",
    "goal",
    default="ready",
    show_default=True,
    metavar="ready|gone|commit=SHA",
    help="Ready; or ended, with nothing left; or Ready at a commit or at one that contains it.",
)
@timeout_option("20m")
@duration_option(
    "--fail-after",
    "failing_s",
    "60s",
    "Give up when it was Failing for this long without a break; some failures pass.",
)
@platform_option
@json_option
def wait_command(
    order: str,
    goal: str,
    timeout_s: float,
    failing_s: float,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Wait until ORDER is Ready, gone, or Ready at a commit.

    Exit codes: 0 reached, 5 not in time, 11 it fails, is paused or held, 12 it waits for approval,
    13 it has ended, 14 there is no such order. What is waited for is said on stderr.

    Example: orderkit wait garage-ae86 --for ready --timeout 20m
    """
    from orderkit.cli.output import Progress
    from orderkit.cli.views import order_views
    from orderkit.flows.order.awaiting import wait, wait_request

    request = wait_request(order, goal, timeout_s=timeout_s, failing_s=failing_s)
    progress = Progress(enabled=not as_json)
    waited = wait(connect_to(platform_file), request, on_wait=progress.on_wait)
    order_views.show_waited(waited, as_json)
