"""Commands about orders: order, list, status, trace, destroy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import (
    connect_to,
    json_option,
    platform_option,
    requester_option,
    timeout_option,
)

if TYPE_CHECKING:
    from orderkit.core.endrecord import Survivor


@click.command("order")
@click.argument("kit")
@click.argument("assignments", metavar="FIELD=VALUE...", nargs=-1)
@requester_option
@click.option("--no-wait", is_flag=True, help="Return once it is registered.")
@timeout_option(120.0)
@platform_option
@json_option
def order_command(
    kit: str,
    assignments: tuple[str, ...],
    requester: str | None,
    no_wait: bool,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Order KIT with the values of its form, as the portal would.

    The same order again changes nothing and says so; after a crash it goes on.

    Example: orderkit order garage team_name=ae86 stage=stage2
    """
    from orderkit.cli import views
    from orderkit.cli.output import Progress
    from orderkit.flows import ordering
    from orderkit.flows.platform import default_requester

    wanted = ordering.OrderRequest(
        kit,
        views.assignments(assignments),
        requester or default_requester(),
        wait=not no_wait,
        timeout_s=timeout_s,
    )
    progress = Progress(enabled=False if as_json else None)
    views.show_ordered(ordering.order(connect_to(platform_file), wanted, on_step=progress), as_json)


@click.command("list")
@platform_option
@json_option
def list_command(platform_file: str | None, as_json: bool) -> None:
    """
    List every order of the ledger with its team, phase and reason.

    Example: orderkit list --json
    """
    from orderkit.cli import views
    from orderkit.flows import orders

    views.show_list(orders.list_orders(connect_to(platform_file)), as_json)


@click.command("status")
@click.argument("order")
@click.option("--check", is_flag=True, help="Exit 10 unless the order is Ready.")
@platform_option
@json_option
def status_command(
    order: str,
    check: bool,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Say how ORDER is doing, compared with the head of its repository.

    Example: orderkit status garage-ae86
    """
    from orderkit.cli import views
    from orderkit.flows import orders

    report = orders.status(connect_to(platform_file), order)
    views.show_status(report, as_json)
    return 10 if check and not report.state.ready else 0


@click.command("trace")
@click.argument("order")
@platform_option
@json_option
def trace_command(order: str, platform_file: str | None, as_json: bool) -> None:
    """
    Show the tree of ORDER: Application, XR, everything composed, with SYNCED and READY.

    Example: orderkit trace garage-ae86
    """
    from orderkit.cli import views
    from orderkit.flows import tracing

    views.show_trace(tracing.trace(connect_to(platform_file), order), as_json)


@click.command("destroy")
@click.argument("order")
@click.option(
    "--delete-repository/--archive-repository",
    default=None,
    help="Delete the order's repository, which frees the name, or archive it. "
    "Without either: as the kit says.",
)
@requester_option
@timeout_option(300.0)
@platform_option
@json_option
def destroy_command(
    order: str,
    delete_repository: bool | None,
    requester: str | None,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    End ORDER: empty it through Git, see every part gone, leave a tombstone in the ledger.

    Interrupted, the same command goes on at the recorded step.

    Example: orderkit destroy garage-ae86
    """
    from orderkit.cli import views
    from orderkit.cli.output import Progress
    from orderkit.flows import destroying
    from orderkit.flows.platform import default_requester

    wanted = destroying.EndRequest(
        order,
        requester or default_requester(),
        repository=None if delete_repository is None else _survivor(delete=delete_repository),
        timeout_s=timeout_s,
    )
    progress = Progress(enabled=False if as_json else None)
    ended = destroying.destroy(connect_to(platform_file), wanted, on_step=progress)
    views.show_ended(ended, as_json)


def _survivor(*, delete: bool) -> Survivor:
    return "delete" if delete else "archive"
