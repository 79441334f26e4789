"""Command plan: what a change of a living order will do, before anybody commits it."""

from __future__ import annotations

from typing import Any

import click

from orderkit.cli import completion
from orderkit.cli.options import PathOption, function_option, platform_option, requester_option


@click.command("plan")
@click.argument("order", required=False, shell_complete=completion.orders)
@click.argument(
    "assignments",
    metavar="[FIELD=VALUE...]",
    nargs=-1,
    shell_complete=completion.order_fields,
)
@click.option(
    "--file",
    "file",
    type=PathOption(exists=True, dir_okay=False),
    metavar="FILE",
    help="Instead of FIELD=VALUE: the whole XR as it would be.",
)
@click.option(
    "--base", metavar="COMMIT", help="The order as of this commit; default: as Git has it now."
)
@click.option("--head", metavar="COMMIT", help="Instead of FIELD=VALUE: the order as of this.")
@click.option(
    "--pull-request",
    "--pr",
    "pull",
    metavar="OWNER/REPO#N",
    help="Instead of ORDER: an open pull request; its status and one comment tell the plan.",
)
@click.option("--no-post", is_flag=True, help="With --pull-request: print only, post nothing.")
@click.option(
    "--offline", is_flag=True, help="Ask the cluster nothing; the plan says what it lacks."
)
@click.option(
    "--graph",
    type=PathOption(dir_okay=False),
    metavar="FILE",
    help="Write the order's graph before and after: .svg, .mmd (Mermaid), .md.",
)
@click.option(
    "--prices",
    "prices_file",
    type=PathOption(exists=True, dir_okay=False),
    metavar="FILE",
    help="A price table: what it costs a month. Default: the pack's gitops/prices.yaml.",
)
@click.option("--full", is_flag=True, help="Fold nothing: every field, whole values.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour; auto: on a terminal, unless NO_COLOR is set.",
)
@click.option(
    "--schemas",
    "schemas_folder",
    type=PathOption(exists=True, file_okay=False),
    metavar="FOLDER",
    help="CRDs and OpenAPI documents to judge by, before the cluster's and the pack's.",
)
@function_option
@requester_option
@platform_option
@click.option("--json", "shape", flag_value="json", help="As data, in crossplane-diff's shape.")
@click.option("--markdown", "shape", flag_value="markdown", help="As for a pull request.")
@click.option(
    "--kit",
    metavar="KIT",
    shell_complete=completion.kits,
    help="Instead of ORDER: what another pack does to all live orders of this kit. "
    "--base: a branch or commit of the platform's pack, with --xrs and --snapshot of the "
    "pack folder's git repository.",
)
@click.option(
    "--pack",
    "pack_folder",
    type=PathOption(),
    metavar="DIR",
    default=".",
    help="With --kit and --snapshot: the other pack's folder. Default: the current folder.",
)
@click.option(
    "--order",
    "orders",
    metavar="ORDER",
    multiple=True,
    shell_complete=completion.orders,
    help="With --kit: only this order.",
)
@click.option(
    "--team", "teams", metavar="TEAM", multiple=True, help="With --kit: only this team's."
)
@click.option(
    "--xrs",
    "xr_folder",
    type=PathOption(exists=True, file_okay=False),
    metavar="DIR",
    help="With --kit: XRs from the files of a folder; no platform is needed.",
)
@click.option(
    "--limit",
    "limit_s",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the stations may take for one order, in seconds.",
)
@click.option(
    "--lanes",
    type=click.IntRange(min=0),
    default=0,
    metavar="NUMBER",
    help="With --kit: orders planned at the same time. Default: one for each processor.",
)
@click.option(
    "--record",
    "record_file",
    type=PathOption(dir_okay=False),
    metavar="FILE",
    help="Write down what the plan is made from.",
)
@click.option(
    "--snapshot",
    "snapshot_file",
    type=PathOption(exists=True, dir_okay=False),
    metavar="FILE",
    help="Plan from what --record wrote, by the pack of --pack; nothing is contacted.",
)
def plan_command(**options: Any) -> int:
    """
    Say what a change of ORDER does, down to composed resources. Writes nothing.

    The stations of the platform's pack run here, on the order as it is and as it would be.
    Exit codes: 0 nothing changes, 10 something changes, 4 it would be refused, 1 no plan.

    With --kit, what a changed pack does to all live orders of a kit. There 1 is also for an
    order that could not be planned.

    Example: orderkit plan garage-ae86 stage=stage3

    Example: orderkit plan --kit garage --pack .
    """
    from orderkit.cli.commands.plan_request import PlanRequest

    request = PlanRequest(**options)
    request.check()
    if request.pull:
        from orderkit.cli.commands import plan_pulls

        return plan_pulls.run(request)
    if request.kit is not None:
        from orderkit.cli.commands import plan_fleet

        return plan_fleet.run(request)
    from orderkit.cli.commands import plan_request

    return plan_request.run_order(request)
