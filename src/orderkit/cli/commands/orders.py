"""Commands about orders: register, adopt, list, status, trace, events, repair, destroy."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from ground.errors import EXIT_DIFFERS, OrderkitError, raise_problems
from orderkit.cli import completion
from orderkit.cli.options import (
    connect_to,
    default_requester,
    json_option,
    no_color_option,
    platform_option,
    requester_option,
    timeout_option,
)

if TYPE_CHECKING:
    from orderkit.core.order.end_record import Survivor

_OBJECTS_BETWEEN_COLLECTIONS = 1_000_000


@click.command("register")
@click.argument("order", shell_complete=completion.orders)
@click.option("--kit", required=True, help="The kit of the order.")
@click.option("--team", required=True, help="The team that orders.")
@requester_option
@platform_option
@json_option
def register_command(
    order: str,
    kit: str,
    team: str,
    requester: str,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Register ORDER in the ledger, so that it is delivered. Its repository must exist already.

    This is the last step of an order; 'orderkit order' does all steps. It can be repeated:
    where main is protected, it delivers what somebody wrote to main past Orderkit.

    Example: orderkit register garage-ae86 --kit garage --team ae86
    """
    from ground.names import OrderId, TeamName, check_label
    from orderkit.cli.views import order_views
    from orderkit.flows.order.registering import Registration, register

    registration = Registration(
        OrderId(check_label("order", order)),
        kit,
        TeamName(check_label("team", team)),
        requester,
    )
    order_views.show_registered(register(connect_to(platform_file), registration), as_json)


@click.command("adopt")
@click.argument("subjects", metavar="OWNER/REPOSITORY|KIND/NAME...", nargs=-1, required=True)
@click.option("--namespace", "-n", default="", help="Namespace of the XR, if it has one.")
@click.option(
    "--team", default="", help="The team that owns the order, if no field of the XR names it."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check everything and show what would be added. Nothing is written.",
)
@requester_option
@platform_option
@json_option
def adopt_command(
    subjects: tuple[str, ...],
    namespace: str,
    team: str,
    dry_run: bool,
    requester: str,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Turn an existing repository or a live XR into an order. The XR is not changed.

    Adds what is missing: the record, the catalog entry, a README, the entry in the ledger. Several
    are adopted one after another, and let people's requests to the forge pass. What is refused does
    not stop the others.

    Example: orderkit adopt ae86/garage-ae86 --dry-run, or: orderkit adopt XGarage/garage-ae86
    """
    from orderkit.cli.views import order_views
    from orderkit.flows.order.adopting import AdoptRequest, adopt
    from orderkit.ports.urgency import background

    is_one = len(subjects) == 1
    if as_json and not is_one:
        raise click.UsageError("--json is for one repository or XR")
    platform = connect_to(platform_file)
    problems: list[OrderkitError] = []
    for subject in dict.fromkeys(subjects):
        try:
            with nullcontext() if is_one else background():
                wanted = AdoptRequest(subject, requester, namespace, team, dry_run=dry_run)
                adopted = adopt(platform, wanted)
            order_views.show_adopted(adopted, dry_run=dry_run, as_json=as_json)
        except OrderkitError as error:
            problems += error.problems
            for problem in error.problems if not is_one else ():
                problem.args = (f"{subject}: {problem}",)
    raise_problems(problems)


@click.command("list")
@click.option(
    "--team",
    default="",
    metavar="TEAM",
    shell_complete=completion.teams,
    help="Only orders of this team.",
)
@click.option(
    "--kit",
    default="",
    metavar="KIT",
    shell_complete=completion.kits,
    help="Only orders of this kit.",
)
@click.option("--failing", is_flag=True, help="Only orders that fail.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="PHASE",
    shell_complete=completion.phases,
    help="Only orders in this phase. Repeatable.",
)
@click.option(
    "--text",
    default="",
    metavar="TEXT",
    help="Only orders with this text in id, team, kit, owner, reason or an output.",
)
@click.option(
    "--sort",
    default="team",
    show_default=True,
    metavar="KEY",
    help="team, order, kit, owner, phase, since, created, expires or cost; -cost: the other way.",
)
@click.option("--cost", "with_costs", is_flag=True, help="What each order costs a month, too.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["short", "wide"]),
    default="short",
    show_default=True,
    help="wide: team, kit, owner, expiry and revision, too.",
)
@click.option("--watch", is_flag=True, help="Go on, and show what changes, until Ctrl-C.")
@no_color_option
@platform_option
@json_option
def list_command(
    team: str,
    kit: str,
    failing: bool,
    phases: tuple[str, ...],
    text: str,
    sort: str,
    with_costs: bool,
    output: str,
    watch: bool,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    List the orders of the ledger with phase, age and reason.

    With --watch, a terminal shows the list as it is now; elsewhere, rows that changed follow. With
    --json and --watch, each line is an object.

    Example: orderkit list --team ae86 --failing --watch
    """
    from dataclasses import replace

    from orderkit.cli.views import list_views
    from orderkit.core.gc_pause import uncollected
    from orderkit.core.order.order_view import OrderQuery

    chosen = list_views.phases_of(phases, failing=failing)
    query = OrderQuery(team=team, kit=kit, phase=chosen, text=text, sort=sort)
    with_costs = with_costs or sort.endswith("cost")
    platform = connect_to(platform_file)
    columns = list_views.Columns(is_wide=output == "wide", with_costs=with_costs)
    # Ten thousand orders are millions of objects that live until the end: looking for cycles among
    # them takes as long as everything else.
    if watch:
        gc.freeze()
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        list_views.watch(platform, query, replace(columns, with_costs=False), as_json=as_json)
        return
    with uncollected():
        list_views.show_selected(platform, query, columns, as_json=as_json)


@click.command("log")
@click.option(
    "--team", default="", metavar="TEAM", shell_complete=completion.teams, help="Only this team."
)
@click.option(
    "--person", default="", metavar="REF", help="Only what this person did: eve, user:default/eve."
)
@click.option(
    "--kit", default="", metavar="KIT", shell_complete=completion.kits, help="Only this kit."
)
@click.option("--since", default="", metavar="TIME", help="A day, a time, or how long ago: 7d.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=30,
    show_default=True,
    help="How many entries to show.",
)
@click.option("--cursor", default="", metavar="TEXT", help="Where the page before ended.")
@platform_option
@json_option
def log_command(
    team: str,
    person: str,
    kit: str,
    since: str,
    limit: int,
    cursor: str,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Tell what happened to all orders, newest first: when, to which order, who, what and why.

    Commits made by hand are included, and say so.

    Example: orderkit log --team ae86 --since 7d
    """
    from orderkit.cli.views import status_views
    from orderkit.flows.order.activity import ActivityQuery, activity

    query = ActivityQuery(team, person, kit, since, limit, cursor)
    told = activity(connect_to(platform_file, reads_only=True), query)
    given = {"--team": team, "--person": person, "--kit": kit, "--since": since}
    asked = " ".join(f"{name} {text}" for name, text in given.items() if text)
    status_views.show_activity(told, as_json, asked=f"orderkit log {asked}".rstrip())


@click.command("status")
@click.argument("order", shell_complete=completion.orders)
@click.option("--check", is_flag=True, help="Exit 10 unless the order is Ready.")
@no_color_option
@platform_option
@json_option
def status_command(
    order: str,
    check: bool,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Show ORDER, compared with the head of its repository: phase, outputs, parts, cost, owner, pulls.

    Example: orderkit status garage-ae86
    """
    from orderkit.cli.views import status_views
    from orderkit.flows.order import order_damage, tracing, viewing
    from orderkit.ports.requesters import Requester

    platform = connect_to(platform_file, reads_only=True)
    tree = tracing.trace_of(platform, order_damage.status(platform, order))
    report = tree.report
    viewer = viewing.Viewer(Requester(default_requester()))
    shown = viewing.view(platform, order, viewer, tree=tree)
    status_views.show_status(report, shown, as_json)
    return EXIT_DIFFERS if check and not report.state.ready else 0


@click.command("trace")
@click.argument("order", shell_complete=completion.orders)
@platform_option
@json_option
def trace_command(order: str, platform_file: str | None, as_json: bool) -> None:
    """
    Show the tree of ORDER: Application, XR and composed resources, with SYNCED and READY.

    Example: orderkit trace garage-ae86
    """
    from orderkit.cli.views import order_views
    from orderkit.flows.order import tracing

    order_views.show_trace(tracing.trace(connect_to(platform_file), order), as_json)


@click.command("events")
@click.argument("order", shell_complete=completion.orders)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many to show, newest first.",
)
@platform_option
@json_option
def events_command(order: str, limit: int, platform_file: str | None, as_json: bool) -> None:
    """
    List the cluster's events about ORDER and its parts in the last hour, newest first.

    Example: orderkit events garage-ae86
    """
    from orderkit.cli.views import order_views
    from orderkit.flows.order.order_objects import order_events

    order_views.show_events(
        order, order_events(connect_to(platform_file), order, limit=limit), as_json
    )


@click.command("repair")
@click.argument("order")
@click.option(
    "--dry-run", is_flag=True, help="Show what was done to it and what helps. Nothing is written."
)
@requester_option
@platform_option
@json_option
def repair_command(
    order: str, dry_run: bool, requester: str, platform_file: str | None, as_json: bool
) -> int:
    """
    Undo what was done to ORDER by hand, where that is safe: nothing is deleted.

    Brings back its file in the ledger, its repository, branch, record or name, and ends a sync that
    is stuck. Exit 1 if something is left for a person. Repeating it is not an error.

    Example: orderkit repair garage-ae86 --dry-run
    """
    from orderkit.cli.views import order_views
    from orderkit.flows.order.repairing import RepairRequest, repair

    request = RepairRequest(order, requester, dry_run=dry_run)
    repaired = repair(connect_to(platform_file), request)
    order_views.show_repaired(repaired, dry_run=dry_run, as_json=as_json)
    return int(not repaired.is_whole)


@click.command("destroy")
@click.argument("order", shell_complete=completion.orders)
@click.option(
    "--delete-repository/--archive-repository",
    default=None,
    help="Delete the order's repository, which frees the name, or archive it. "
    "Without either: as the kit says.",
)
@click.option(
    "--take",
    metavar="NAME[=true|false]",
    multiple=True,
    help="Also remove a resource that would survive, by its name in the kit's end. Repeatable.",
)
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option(
    "--confirm",
    metavar="ORDER",
    help="Do not ask, and refuse unless this equals the order's id.",
)
@click.option("--reason", default="", metavar="TEXT", help="Why; kept in Git.")
@requester_option
@timeout_option("300s")
@platform_option
@json_option
def destroy_command(
    order: str,
    delete_repository: bool | None,
    take: tuple[str, ...],
    is_sure: bool,
    confirm: str | None,
    reason: str,
    requester: str,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    End ORDER: empty it through Git, verify that every part is gone, write a tombstone.

    Shows what goes and what stays, and asks on a terminal. Elsewhere it needs --yes or --confirm.
    If it is interrupted, repeat the command: it continues at the recorded step.

    Example: orderkit destroy garage-ae86
    """
    from ground.errors import InvalidInputError
    from orderkit.cli.output import Progress
    from orderkit.cli.views import order_views
    from orderkit.flows.end.destroying import destroy, preview_end
    from orderkit.flows.end.end_request import EndRequest

    if confirm not in (None, order):
        raise InvalidInputError("confirm", confirm, "is not the order's id", hint=f"type {order}")
    end_request = EndRequest(
        order,
        requester,
        repository=None if delete_repository is None else _survivor(delete=delete_repository),
        timeout_s=timeout_s,
        reason=reason,
        take=_names_to_take(take),
    )
    platform = connect_to(platform_file)
    if confirm is None:
        order_views.confirm_end(
            preview_end(platform, order, repository=end_request.repository),
            is_sure=is_sure,
            is_silent=as_json,
        )
    progress = Progress(enabled=False if as_json else None)
    ended = destroy(
        platform,
        end_request,
        on_step=progress,
        on_wait=progress.on_wait,
    )
    order_views.show_ended(ended, as_json)


def _names_to_take(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names to take along; a form sends NAME=false for those that were not ticked."""
    from ground.errors import InvalidInputError

    names = []
    for text in texts:
        name, assigned, value = text.partition("=")
        if value not in ("", "true", "false"):
            raise InvalidInputError(
                "take",
                text,
                "is not a NAME, NAME=true or NAME=false",
                hint="--take NAME; 'orderkit destroy ORDER' shows the names",
            )
        if value == "true" or not assigned:
            names.append(name)
    return tuple(names)


def _survivor(*, delete: bool) -> Survivor:
    return "delete" if delete else "archive"
