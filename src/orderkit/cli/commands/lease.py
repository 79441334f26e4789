"""``orderkit lease``: show, extend and sweep how long orders live."""

from __future__ import annotations

import click

from orderkit.cli import completion
from orderkit.cli.options import (
    connect_to,
    json_option,
    platform_option,
    requester_option,
    timeout_option,
)


class _OrderOrCommand(click.Group):
    """A group whose argument is a command of its own, or else an order to show."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group("lease", cls=_OrderOrCommand, subcommand_metavar="ORDER | COMMAND [ARGS]...")
def lease_command() -> None:
    """
    Show when ORDER expires; extend it, or do what is due about all orders.

    Example: orderkit lease garage-ae86
    """


@lease_command.command("show")
@click.argument("order", shell_complete=completion.orders)
@platform_option
@json_option
def lease_show(order: str, platform_file: str | None, as_json: bool) -> None:
    """
    Show when ORDER expires, its warnings, and how it was extended. 'show' may be left out.

    Example: orderkit lease show garage-ae86
    """
    from orderkit.cli.views import lease_views
    from orderkit.flows.lease.extending import lease_of

    lease_views.show_lease(lease_of(connect_to(platform_file), order), as_json)


@lease_command.command("extend")
@click.argument("order", shell_complete=completion.orders)
@click.argument("duration")
@click.option("--reason", required=True, metavar="TEXT", help="Why; kept in Git.")
@click.option(
    "--operation",
    default="",
    metavar="ID",
    help="Names this request: a repetition with the same ID does not extend again.",
)
@requester_option
@platform_option
@json_option
def lease_extend(
    order: str,
    duration: str,
    reason: str,
    operation: str,
    requester: str,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Let ORDER live longer by DURATION: 90m, 8h, 30d or 4w. An order without an expiry gets one.

    Example: orderkit lease extend garage-ae86 8h --reason 'the demo is tomorrow'
    """
    from orderkit.cli.views import lease_views
    from orderkit.core.durations import parse_duration
    from orderkit.flows.lease.extending import ExtendRequest, check_operation, extend_lease
    from orderkit.ports.requesters import Requester

    request = ExtendRequest(
        order,
        parse_duration(duration, field="duration"),
        Requester(requester),
        reason,
        check_operation(operation),
    )
    lease_views.show_lease(extend_lease(connect_to(platform_file), request), as_json)


@lease_command.command("sweep")
@click.option("--dry-run", is_flag=True, help="Show what is due. Nothing is written.")
@click.option(
    "--at",
    metavar="TIME",
    help="With --dry-run: what would be due then, for example 2027-01-31T12:00:00Z, or +9h.",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Give orders without an expiry the lease that their kit gives to new ones.",
)
@timeout_option("300s")
@platform_option
@json_option
def lease_sweep(
    dry_run: bool,
    at: str | None,
    adopt: bool,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Record warnings, and pause or end the orders whose lease is over.

    Repeating it is not an error, nor is running it twice at the same time. The service does it by
    itself; exit 1 if something failed. The timeout is that of one end; the next sweep continues it.

    Example: orderkit lease sweep --dry-run --at +30d
    """
    from orderkit.cli.output import Progress
    from orderkit.cli.views import lease_views
    from orderkit.flows.lease.sweeping import SweepRequest, sweep

    platform = connect_to(platform_file)
    moment = lease_views.moment(at, platform.clock.now()) if at else None
    request = SweepRequest(dry_run, moment, adopt, timeout_s)
    progress = Progress(enabled=False if as_json else None)
    swept = sweep(platform, request, on_order=lambda order: progress(order.action, order.order))
    lease_views.show_swept(swept, dry_run=dry_run, as_json=as_json)
    return int(not all(order.done for order in swept.orders))
