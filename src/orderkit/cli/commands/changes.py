"""Commands about changes of living orders: change, merge, approve, approvals, revert, history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli import completion
from orderkit.cli.options import (
    connect_to,
    json_option,
    platform_option,
    requester_option,
    timeout_option,
)

if TYPE_CHECKING:
    from orderkit.cli.views.change_views import Finished
    from orderkit.core.kit.kit_file import How
    from orderkit.flows.change import Changed, ChangeRequest
    from orderkit.flows.change.applying import FormEntry
    from orderkit.flows.platform import Platform

reason_option = click.option("--reason", default="", metavar="TEXT", help="Why; kept in Git.")
_operation_option = click.option(
    "--operation",
    metavar="ID",
    help="Identifies this change: repeating the same id changes nothing. Default: a new id.",
)
_dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Check everything and show the diff. Nothing is written."
)
accept_loss_option = click.option(
    "--accept-loss",
    is_flag=True,
    help="Make the change even if the plan says that it deletes data.",
)
_how_option = click.option(
    "--pr/--direct",
    "reviewed",
    default=None,
    help="Open a pull request, or commit directly. Default: as the kit says.",
)
_no_wait_option = click.option(
    "--no-wait",
    is_flag=True,
    help="Return when the change is in Git; do not wait until it is Ready.",
)


@click.command("change")
@click.argument("order", metavar="ORDER", shell_complete=completion.orders)
@click.argument(
    "assignments",
    metavar="FIELD=VALUE...",
    nargs=-1,
    shell_complete=completion.order_fields,
)
@click.option(
    "--kit",
    "kit_name",
    metavar="KIT",
    shell_complete=completion.kits,
    help="Instead of ORDER: change all orders of this kit, as a campaign of one wave.",
)
@click.option(
    "--where",
    metavar="CEL",
    help="With --kit: only orders for which this holds, for example spec.stage == 'stage1'.",
)
@click.option(
    "--values",
    metavar="JSON",
    help="Instead of FIELD=VALUE: the form parameters and their values, as a JSON object.",
)
@click.option(
    "--whole",
    "whole_form",
    is_flag=True,
    help="--values is the complete form: remove fields that it leaves out.",
)
@click.option(
    "--base",
    metavar="COMMIT",
    help="The commit you looked at. A field that changed since then is a conflict.",
)
@click.option(
    "--change",
    "name",
    metavar="NAME",
    help="Name of the kit's change. Default: found by the fields.",
)
@reason_option
@_how_option
@_operation_option
@requester_option
@_dry_run_option
@accept_loss_option
@_no_wait_option
@timeout_option("120s")
@platform_option
@json_option
def change_command(
    order: str,
    assignments: tuple[str, ...],
    kit_name: str | None,
    where: str | None,
    values: str | None,
    whole_form: bool,
    base: str | None,
    name: str | None,
    reason: str,
    reviewed: bool | None,
    operation: str | None,
    requester: str,
    dry_run: bool,
    accept_loss: bool,
    no_wait: bool,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> int | None:
    """
    Change fields of ORDER through Git, as far as its kit allows.

    FIELD=VALUE sets, FIELD+=VALUE and FIELD-=VALUE add and take away an element of a list or a
    number, FIELD- removes. After a direct change the command waits until that commit is Ready;
    for a reviewed one it prints the address of the pull request.

    With --kit there is no ORDER, and all orders of a kit are changed; 'orderkit campaign' can
    resume and revert that.

    Example: orderkit change garage-ae86 stage=stage3 --reason "race day" --dry-run
    """
    if kit_name is not None or where is not None:
        if kit_name is None or values is not None or base or name or accept_loss or no_wait:
            raise click.UsageError("--kit goes with FIELD=VALUE, --where, --reason, --operation")
        from orderkit.cli.commands.campaign import change_many

        return change_many(
            connect_to(platform_file),
            (order, *assignments),
            kit_name,
            where or "",
            how=_how(reviewed),
            reason=reason,
            operation=operation,
            requester=requester,
            dry_run=dry_run,
            timeout_s=timeout_s,
            as_json=as_json,
        )
    from orderkit.cli import inputs
    from orderkit.cli.views import change_views
    from orderkit.flows.change import ChangeRequest
    from orderkit.ports.requesters import Requester

    if bool(assignments) == (values is not None):
        raise click.UsageError("give either FIELD=VALUE or --values")
    platform = connect_to(platform_file)
    change_request = ChangeRequest(
        order=order,
        edits=inputs.edits(assignments),
        requester=Requester(requester),
        base=base,
        reason=reason,
        change=name,
        how=_how(reviewed),
        operation=operation,
        dry_run=dry_run,
        accept_loss=accept_loss,
    )
    entry = None if values is None else change_views.entered(values, whole_form=whole_form)
    outcome = _changed(platform, change_request, entry)
    wait_s = None if no_wait else timeout_s
    change_views.show_changed(_finish(platform, outcome, wait_s, as_json=as_json), as_json)
    return None


def _changed(platform: Platform, change_request: ChangeRequest, entry: FormEntry | None) -> Changed:
    from orderkit.flows.change import change
    from orderkit.flows.change.applying import change_by_form
    from orderkit.flows.order.live_order import find_living

    if entry is None:
        return change(platform, change_request)
    return change_by_form(
        platform, find_living(platform, change_request.order), entry, change_request
    )


@click.command("revert")
@click.argument("order", shell_complete=completion.orders)
@click.argument("commit")
@reason_option
@_how_option
@_operation_option
@requester_option
@_dry_run_option
@accept_loss_option
@_no_wait_option
@timeout_option("120s")
@platform_option
@json_option
def revert_command(
    order: str,
    commit: str,
    reason: str,
    reviewed: bool | None,
    operation: str | None,
    requester: str,
    dry_run: bool,
    accept_loss: bool,
    no_wait: bool,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Undo what COMMIT did to the fields of ORDER, with the same checks as any change.

    A field that somebody changed since is a conflict. See 'orderkit history ORDER' for commits.

    Example: orderkit revert garage-ae86 1f3a9c02
    """
    from orderkit.cli.views import change_views
    from orderkit.flows.change.reverting import RevertRequest, revert
    from orderkit.ports.requesters import Requester

    platform = connect_to(platform_file)
    revert_request = RevertRequest(
        order=order,
        commit=commit,
        requester=Requester(requester),
        reason=reason,
        how=_how(reviewed),
        operation=operation,
        dry_run=dry_run,
        accept_loss=accept_loss,
    )
    outcome = revert(platform, revert_request)
    wait_s = None if no_wait else timeout_s
    change_views.show_changed(_finish(platform, outcome, wait_s, as_json=as_json), as_json)


@click.command("merge")
@click.argument("order", shell_complete=completion.orders)
@click.argument("number", type=click.IntRange(min=1))
@requester_option
@_no_wait_option
@timeout_option("120s")
@platform_option
@json_option
def merge_command(
    order: str,
    number: int,
    requester: str,
    no_wait: bool,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Merge pull request NUMBER of ORDER once somebody else has approved it on the forge.

    An approval counts for the newest commit only, and not from whoever asked for the change,
    opened it or pushed to it. Only the platform's account can merge where a kit wants reviews.
    Nothing is merged after which the order would be refused. The command waits until the merged
    commit is Ready; repeating it changes nothing.

    Example: orderkit merge garage-ae86 3
    """
    from orderkit.cli.output import Progress
    from orderkit.cli.views import change_views
    from orderkit.flows.change.reviewing import merge_reviewed
    from orderkit.flows.order.awaiting import await_commit

    platform = connect_to(platform_file)
    merged = merge_reviewed(platform, order, number, requester=requester)
    if not no_wait:
        progress = Progress(enabled=False if as_json else None)
        await_commit(platform, order, merged.commit, timeout_s=timeout_s, on_wait=progress.on_wait)
    change_views.show_merged(merged, as_json)


def _how(reviewed: bool | None) -> How | None:
    from orderkit.core.kit.kit_file import How

    return None if reviewed is None else How.REVIEW if reviewed else How.DIRECT


def _finish(
    platform: Platform, outcome: Changed, wait_s: float | None, *, as_json: bool
) -> Finished:
    """Wait until the commit is delivered, if there is one and `wait_s` is set."""
    from orderkit.cli.output import Progress
    from orderkit.cli.views.change_views import Finished, PhaseProgress
    from orderkit.flows.order.awaiting import await_commit

    if outcome.state != "committed" or outcome.commit is None or wait_s is None:
        return Finished(outcome, None)
    steps = Progress(enabled=False if as_json else None)
    progress = PhaseProgress(steps)
    progress.committed(outcome)
    state = await_commit(
        platform,
        outcome.order,
        outcome.commit,
        timeout_s=wait_s,
        on_state=progress,
        on_wait=steps.on_wait,
    )
    return Finished(outcome, state)


@click.command("history")
@click.argument("order", shell_complete=completion.orders)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="COMMITS",
    help="How many commits to show, newest first.",
)
@platform_option
@json_option
def history_command(order: str, limit: int, platform_file: str | None, as_json: bool) -> None:
    """
    Show who changed which field of ORDER, from what to what, why, and in which commit.

    Commits made by hand are included.

    Example: orderkit history garage-ae86
    """
    from orderkit.cli.views import status_views
    from orderkit.flows.order.order_history import history

    status_views.show_history(
        order, history(connect_to(platform_file, reads_only=True), order, limit=limit), as_json
    )


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
