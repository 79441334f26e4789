"""Command plan: what a change of a living order will do, before anybody commits it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from orderkit.cli.commands.plan_fleet import FleetOptions, fleet_options, plan_kit, plan_replayed
from orderkit.cli.options import (
    connect_to,
    function_option,
    platform_option,
    requester_option,
)
from orderkit.cli.time_limits import within


@click.command("plan")
@click.argument("order", required=False)
@click.argument("assignments", metavar="[FIELD=VALUE...]", nargs=-1)
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
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
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the order's graph before and after: .svg, .mmd (Mermaid), .md.",
)
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
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
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="CRDs and OpenAPI documents to judge by, before the cluster's and the pack's.",
)
@function_option
@requester_option
@platform_option
@click.option("--json", "shape", flag_value="json", help="As data, in crossplane-diff's shape.")
@click.option("--markdown", "shape", flag_value="markdown", help="As for a pull request.")
@fleet_options
@click.pass_context
def plan_command(
    ctx: click.Context,
    order: str | None,
    assignments: tuple[str, ...],
    file: Path | None,
    base: str | None,
    head: str | None,
    pull: str | None,
    no_post: bool,
    offline: bool,
    picture: Path | None,
    prices_file: Path | None,
    full: bool,
    color: str,
    schemas_folder: Path | None,
    function_texts: tuple[str, ...],
    requester: str | None,
    platform_file: str | None,
    shape: Literal["json", "markdown"] | None,
) -> int:
    """
    Say what a change of ORDER does, down to composed resources. Writes nothing.

    The stations of the platform's pack run here, on the order as it is and as it would be.
    Ends with 0 if nothing changes, 2 if it would be refused, 3 if something changes, else 1.

    With --kit, what a changed pack does to all living orders of a kit. There 1 is also for an
    order that could not be planned.

    Example: orderkit plan garage-ae86 stage=stage3

    Example: orderkit plan --kit garage --pack .
    """
    from orderkit.cli import inputs
    from orderkit.cli.views import plan_views
    from orderkit.core.plan.plan_json import exit_code

    given, screen = FleetOptions.of(ctx), plan_views.Screen.of(full=full, color=color)
    if pull or no_post:
        others = (order, file, base, head, schemas_folder, given.kit, given.record, given.snapshot)
        if not pull or any(others):
            raise click.UsageError("--pull-request stands alone; --no-post goes with it")
        from orderkit.cli.commands import plan_pulls  # lazy: needs all flows of changes

        _check(None, None, picture)
        limit_s = _PLATFORM_S + given.limit_s * _SIDES
        asked = plan_pulls.PullAsked(
            *plan_pulls.parse_pull(pull), prices_file, offline, not no_post, limit_s
        )
        return plan_pulls.run(connect_to(platform_file), asked, (shape, screen), picture)
    if given.kit is not None:
        if order or file or head or picture or schemas_folder or function_texts:
            raise click.UsageError("--kit goes without ORDER and what is for one order")
        prices = inputs.prices_of(prices_file)
        return plan_kit(given, platform_file, base, prices, offline=offline, show=(shape, screen))
    if order is None or sum(map(bool, (assignments, file, head))) != 1:
        raise click.UsageError(_ONE_OF_THEM)
    _check(base, head, picture)
    prices = inputs.prices_of(prices_file)
    schemas = inputs.schemas_of(schemas_folder)
    with within(_PLATFORM_S + given.limit_s * _SIDES):
        if given.snapshot:
            found = plan_replayed(given, order, assignments, file, (prices, schemas))
        else:
            from orderkit.cli.commands import (
                plan_change,  # lazy: a snapshot needs no flow of changes
            )
            from orderkit.flows.plan.order_plan import Basis

            platform = plan_change.calling(connect_to(platform_file), function_texts)
            recorder = given.recorder(order)
            basis = Basis(offline, prices, schemas, recorder)
            asking = plan_change.Asking(platform, order, basis)
            found = asking.of(assignments, file, (base, head), requester)
            if given.record:
                asking.save(given.record)
    plan_views.show(order, found, shape, screen)
    if picture:
        plan_views.draw(found, picture)
    return exit_code(found)


_SIDES, _PLATFORM_S = 3, 60.0
"""Before, after, and as a new order would be; and what asking the platform may take."""
_ONE_OF_THEM = (
    "give ORDER and FIELD=VALUE, --file FILE or --head COMMIT, one of them; "
    "or --kit KIT, or --pull-request OWNER/REPO#N"
)


def _check(base: str | None, head: str | None, picture: Path | None) -> None:
    from orderkit.cli.views import plan_views

    if base and not head:
        raise click.UsageError("--base goes with --head")
    if picture:
        plan_views.check_drawable(picture)
