"""
Commands that order and get what was ordered: order, wait, outputs.

``orderkit order`` orders a kit with the values of its form, or the XR of a file. ``orderkit wait``
and ``orderkit outputs`` are for pipelines.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ground.errors import (
    EXIT_DIFFERS,
    AlreadyOrderedError,
    ApprovalError,
    OrderkitError,
    RefusedError,
)
from orderkit.cli import completion
from orderkit.cli.commands.changes import accept_loss_option, reason_option
from orderkit.cli.options import (
    PathOption,
    connect_to,
    duration_option,
    json_option,
    platform_option,
    requester_option,
    timeout_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orderkit.cli.output import Progress
    from orderkit.cli.views.order_views import OrderedFacts
    from orderkit.flows.change import Changed
    from orderkit.flows.change.declared_order import ChangeTerms, Declared, DeclaredOrder
    from orderkit.flows.order.awaiting import Goal
    from orderkit.flows.order.order_report import OrderReport
    from orderkit.flows.platform import Platform

_SIZE_MAX = 1_000_001
"""Bytes that are read of a file; one byte more than a manifest may have."""


@click.command("order")
@click.argument("kit", required=False, shell_complete=completion.kits)
@click.argument(
    "assignments",
    metavar="FIELD=VALUE...",
    nargs=-1,
    shell_complete=completion.form_fields,
)
@click.option(
    "--file",
    "file",
    type=PathOption(exists=True, dir_okay=False),
    help="Instead of KIT: a file with an XR of a kit, or with several. FIELD=VALUE adds to one.",
)
@click.option(
    "--change",
    "is_changed",
    is_flag=True,
    help="With --file: if the order has other values, change it under its kit's rules.",
)
@reason_option
@accept_loss_option
@requester_option
@click.option(
    "--plan",
    "is_planned",
    is_flag=True,
    help="Show what would be composed and what it would cost. Nothing is written.",
)
@click.option(
    "--no-wait",
    is_flag=True,
    help="Return when the order is registered; do not wait until it is Ready.",
)
@timeout_option("120s")
@platform_option
@json_option
def order_command(
    kit: str | None,
    assignments: tuple[str, ...],
    file: Path | None,
    is_changed: bool,
    reason: str,
    accept_loss: bool,
    requester: str,
    is_planned: bool,
    no_wait: bool,
    timeout_s: float,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Order KIT with the values of its form, as the portal would, or what a file declares.

    Repeating it changes nothing and says so. After a crash, repeat it: it continues.

    Example: orderkit order garage team_name=ae86 stage=stage2, or: orderkit order --file env.yaml
    """
    from orderkit.cli.views import order_views
    from orderkit.flows.change.declared_order import ChangeTerms

    texts = (*filter(None, [kit]), *assignments) if file else assignments
    values, wait_s = order_views.assignments(texts), None if no_wait else timeout_s
    ordering = _Ordering(platform_file, values, requester, wait_s, as_json=as_json)
    if file is not None:
        terms = ChangeTerms(is_changed, reason, accept_loss)
        return ordering.from_file(file, terms, is_planned=is_planned)
    if kit is None:
        raise click.UsageError(f"Missing argument 'KIT'.{_kits_of(platform_file)}")
    if is_changed or reason or accept_loss:
        raise click.UsageError("--change, --reason and --accept-loss belong to --file")
    return ordering.plan(kit) if is_planned else ordering.order(kit)


def _kits_of(platform_file: str | None) -> str:
    """Name the kits of the platform, if one can be asked."""
    from orderkit.flows.platform import published_pack

    with suppress(OrderkitError):
        return f" One of: {', '.join(published_pack(connect_to(platform_file)).kit_names)}."
    return ""


class _Ordering:
    """What both ways to order have in common."""

    def __init__(
        self,
        platform_file: str | None,
        values: dict[str, str],
        requester: str,
        wait_s: float | None,
        *,
        as_json: bool,
    ) -> None:
        """Take what was given; `wait_s` is None if nothing is waited for."""
        self.platform_file, self.values, self.requester = platform_file, values, requester
        self.wait_s, self.as_json = wait_s, as_json

    def plan(self, kit: str) -> int:
        from orderkit.cli.views import plan_views
        from orderkit.flows.plan.order_plan import plan_assignments

        platform = connect_to(self.platform_file)
        draft, plan = plan_assignments(platform, kit, self.values, self.requester)
        plan_views.show(draft.entry.order, plan, "json" if self.as_json else None)
        return RefusedError.exit_code if plan.faults else 0

    def order(self, kit: str) -> int:
        from orderkit.cli.views import order_views
        from orderkit.flows.order import placing
        from orderkit.ports.requesters import Requester

        progress = self._progress()
        request = placing.TaskRequest(
            kit,
            {},
            Requester(self.requester),
            assignments=self.values,
            on_step=lambda event: progress(event.step, event.summary),
        )
        platform = connect_to(self.platform_file)
        ordered = placing.order(platform, request, on_wait=progress.on_wait, wait_s=self.wait_s)
        order_views.show_ordered(ordered, self._facts(platform, ordered.report), self.as_json)
        return 0

    def _facts(self, platform: Platform, report: OrderReport) -> OrderedFacts:
        """Return the price and the page of an order."""
        from orderkit.cli.connecting import load_settings
        from orderkit.cli.views.order_views import OrderedFacts
        from orderkit.flows.order.viewing import costs_of

        service = load_settings(self.platform_file).service_address
        page = f"{service}/orders/{report.entry.order}" if service else ""
        return OrderedFacts(costs_of(platform, report), page)

    def _progress(self) -> Progress:
        from orderkit.cli.output import Progress

        return Progress(enabled=False if self.as_json else None)

    def from_file(self, file: Path, terms: ChangeTerms, *, is_planned: bool) -> int:
        from orderkit.cli.views import order_views
        from orderkit.flows.change.declared_order import DeclaredFile, place_declared, read_every

        with file.open("rb") as stream:
            data = stream.read(_SIZE_MAX)
        platform = connect_to(self.platform_file)
        declared_file = DeclaredFile(str(file), data, self.values, self.requester)
        orders = read_every(platform, declared_file)
        if len(orders) > 1:
            return self._many(platform, file, orders, terms, is_planned=is_planned)
        (declared,) = orders
        if is_planned:
            return self._plan_file(platform, declared)
        outcome = self._placed(platform, file, declared, terms, place_declared)
        changed = outcome.changed
        report = self._waited(platform, outcome)
        facts = self._facts(platform, report)
        order_views.show_declared(outcome, report, facts, self.as_json)
        is_proposed = changed is not None and changed.state == "proposed"
        return ApprovalError.exit_code if is_proposed else 0

    def _placed(
        self,
        platform: Platform,
        file: Path,
        declared: DeclaredOrder,
        terms: ChangeTerms,
        place: Callable[..., Declared],
    ) -> Declared:
        outcome = place(platform, declared, terms, on_step=self._progress())
        if outcome.changed is not None and outcome.changed.state == "planned":
            raise self._differing(file, outcome.changed)
        return outcome

    def _many(
        self,
        platform: Platform,
        file: Path,
        orders: tuple[DeclaredOrder, ...],
        terms: ChangeTerms,
        *,
        is_planned: bool,
    ) -> int:
        """Order everything that a file declares; what is refused does not stop the others."""
        from ground.errors import raise_problems
        from orderkit.cli.views import order_views
        from orderkit.flows.change.declared_order import place_in_turn

        if self.values or self.as_json:
            raise click.UsageError("FIELD=VALUE and --json are for a file with one order")
        if is_planned:
            return max(self._plan_file(platform, declared) for declared in orders)
        placed: list[Declared] = []
        results: dict[str, tuple[str, str]] = {}
        problems: list[OrderkitError] = []
        for declared in orders:
            try:
                placed.append(self._placed(platform, file, declared, terms, place_in_turn))
            except OrderkitError as error:
                word = "failed" if error.retryable else "refused"
                results[declared.entry.order] = word, str(error)
                problems += error.problems
        for outcome in placed:
            order = outcome.entry.order
            try:
                state = self._waited(platform, outcome).state
                results[order] = outcome.result, f"{state.phase}: {state.reason}".removesuffix(": ")
            except OrderkitError as error:
                results[order] = outcome.result, str(error)
                problems += error.problems
        order_views.show_every({d.entry.order: results[d.entry.order] for d in orders})
        raise_problems(problems)
        proposed = any(o.changed and o.changed.state == "proposed" for o in placed)
        return ApprovalError.exit_code if proposed else 0

    def _plan_file(self, platform: Platform, declared: DeclaredOrder) -> int:
        from orderkit.cli.views import change_views, plan_views
        from orderkit.flows.change.declared_order import is_living, planned_change
        from orderkit.flows.order.placing import TaskRequest
        from orderkit.flows.plan.order_plan import plan_new_order

        if is_living(platform, declared):
            changed = planned_change(platform, declared)
            change_views.show_changed(change_views.Finished(changed, None), self.as_json)
            return 0 if changed.state == "unchanged" else EXIT_DIFFERS
        task = TaskRequest(declared.kit.name, declared.values, declared.requester)
        draft, plan = plan_new_order(platform, task)
        plan_views.show(draft.entry.order, plan, "json" if self.as_json else None)
        return RefusedError.exit_code if plan.faults else 0

    def _differing(self, file: Path, changed: Changed) -> AlreadyOrderedError:
        """Show what would change; return the error that says so."""
        from orderkit.cli.views import change_views

        if not self.as_json:
            change_views.show_changed(change_views.Finished(changed, None), as_json=False)
        edits = ", ".join(map(str, changed.edits))
        typed = (f"{name}={text}" for name, text in self.values.items())
        command = shlex.join(("orderkit", "order", "--file", str(file), "--change", *typed))
        return AlreadyOrderedError(
            f"{changed.order} has other values than {file}: {edits}",
            hint=f"this makes the change: {command}; or correct the file",
        )

    def _waited(self, platform: Platform, outcome: Declared) -> OrderReport:
        """Wait for the newest commit, unless it is not wanted or not written; report the order."""
        from orderkit.flows.order.awaiting import WaitRequest, report_of, wait

        changed = outcome.changed
        if self.wait_s is not None and (changed is None or changed.state == "committed"):
            commit = str(changed.commit or "") if changed else ""
            goal: Goal = "commit" if commit else "ready"
            order = outcome.entry.order
            request = WaitRequest(order, goal, commit, timeout_s=self.wait_s)
            wait(platform, request, on_wait=self._progress().on_wait)
        return report_of(platform, outcome.entry.order)


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
