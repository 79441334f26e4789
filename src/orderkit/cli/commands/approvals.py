"""Commands about approvals: approve, approvals."""

from __future__ import annotations

import click

from orderkit.cli import completion
from orderkit.cli.options import connect_to, json_option, platform_option, requester_option


@click.command("approve")
@click.argument("order", shell_complete=completion.orders)
@click.option(
    "--pull",
    "number",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="The pull request of a change. Default: the order itself waits.",
)
@click.option("--decline", is_flag=True, help="Decline: withdraw the order or the change.")
@click.option("--reason", default="", metavar="TEXT", help="With --decline: why.")
@requester_option
@platform_option
@json_option
def approve_command(
    order: str,
    number: int | None,
    decline: bool,
    reason: str,
    requester: str,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Agree to ORDER, or to a change of it, with your own credentials for the forge; or decline.

    It is a review of the newest commit on the forge, which proves who you are; Orderkit's service
    then delivers or withdraws. Declining also closes the pull request if you may. The platform's
    own account proves nobody: with it, the command delivers what everybody agreed to, or withdraws.
    An approval that does not count is said to, with the reason; exit code 4.

    Example: orderkit approve garage-ae86, or: orderkit approve garage-ae86 --pull 3 --decline
    """
    from ground.errors import RefusedError, UsageError
    from orderkit.cli.views import change_views
    from orderkit.flows.approval.deciding import approve_on_forge, decline_on_forge

    if reason and not decline:
        raise UsageError(
            "--reason says why you decline; add --decline", hint="--decline --reason TEXT"
        )
    platform = connect_to(platform_file)
    if decline:
        decision = decline_on_forge(platform, order, requester, number=number, reason=reason)
    else:
        decision = approve_on_forge(platform, order, number=number)
    change_views.show_decision(decision, as_json)
    return RefusedError.exit_code if decision.does_not_count else 0


@click.command("approvals")
@platform_option
@json_option
def approvals_command(platform_file: str | None, as_json: bool) -> None:
    """
    List the orders and changes that wait for approval, who has to agree, and why.

    FOR YOU says whether you may approve it, by your credentials for the forge.

    Example: orderkit approvals
    """
    from orderkit.cli.views import change_views
    from orderkit.flows.approval.pending import pending_for_credentials

    approvals = list(pending_for_credentials(connect_to(platform_file)))
    change_views.show_approvals(approvals, as_json)
