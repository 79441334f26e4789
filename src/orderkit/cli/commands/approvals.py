"""Commands about approvals: approve, approvals."""

from __future__ import annotations

import click

from orderkit.cli import completion
from orderkit.cli.options import connect_to, json_option, platform_option


@click.command("approve")
@click.argument("order", shell_complete=completion.orders)
@click.option(
    "--pull",
    "number",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="The pull request of a change. Default: the order itself waits.",
)
@platform_option
@json_option
def approve_command(
    order: str, number: int | None, platform_file: str | None, as_json: bool
) -> None:
    """
    Agree to ORDER, or to a change of it, with your own credentials for the forge.

    It is an approving review of the newest commit on the forge, which proves who you are;
    Orderkit's service then delivers. The platform's own account proves nobody: with it, the
    command delivers what everybody agreed to. To decline, close the pull request, or use
    'orderkit destroy ORDER'.

    Example: orderkit approve garage-ae86, or: orderkit approve garage-ae86 --pull 3
    """
    from orderkit.cli.views import approval_views
    from orderkit.flows.approval.deciding import approve_on_forge

    decision = approve_on_forge(connect_to(platform_file), order, number=number)
    approval_views.show_decision(decision, as_json)


@click.command("approvals")
@platform_option
@json_option
def approvals_command(platform_file: str | None, as_json: bool) -> None:
    """
    List the orders that wait for approval, who has to agree, and why.

    With your own credentials for the forge, only those that wait for you; with the platform's, all.

    Example: orderkit approvals
    """
    from orderkit.cli.views import approval_views
    from orderkit.flows.approval.deciding import pending_for_credentials

    approvals = list(pending_for_credentials(connect_to(platform_file)))
    approval_views.show_approvals(approvals, as_json)
