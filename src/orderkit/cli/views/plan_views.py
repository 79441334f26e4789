"""
How a plan looks: for people on a terminal, as JSON, as Markdown, or as a picture in a file.

On a terminal what is long is folded: values, many fields of one resource, and resources to which
the same happens; ``--full`` unfolds everything. Lines fit the terminal. Where the output goes
into a file or a pipe nothing is cut to a width.

A plan over many orders (``show_fleet``) has no picture.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

import click

from ground.errors import InvalidInputError, NotFoundError
from ground.objects.values import shown_pair, whole
from ground.visible_text import visible
from orderkit.cli.output import colored, emit_json, say
from orderkit.core.order.change import FieldDifference, shown
from orderkit.core.plan import Action, Plan, ResourceChange
from orderkit.core.plan.assembly import key_text
from orderkit.core.plan.comparison import shown_manifest
from orderkit.core.plan.cost import Costs, changed_lines
from orderkit.core.plan.fleet_markdown import fleet_markdown
from orderkit.core.plan.fleet_plan import (
    FleetCosts,
    FleetPlan,
    Fold,
    OrderVerdict,
    counted,
    folds,
    of_categories,
)
from orderkit.core.plan.plan_json import fleet_json, plan_document
from orderkit.core.plan.plan_markdown import to_markdown
from yamlfiles.yaml11 import dump_block

Shape = Literal["json", "markdown"]
Line = tuple[str, str]
"""A text and its colour, which may be empty."""

_COLORS = {
    Action.ADDED: "green",
    Action.CHANGED: "yellow",
    Action.REMOVED: "red",
    Action.REPLACED: "red",
}
_FIELDS_MAX, _EQUAL_MIN = 12, 4
"""How many fields of a resource are shown, and how many equal changes become one."""
_WIDTH_MIN = 40


@dataclass(frozen=True, slots=True)
class Screen:
    """How much of a plan is shown, how wide, and whether in colour."""

    full: bool = False
    width: int | None = None
    """In characters; None: as long as it takes."""
    color: bool | None = None
    """None: on a terminal only."""

    @classmethod
    def of(cls, *, full: bool = False, color: str = "auto") -> Screen:
        """Look at the terminal, if there is one."""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        is_colored = {"always": True, "never": False}.get(color, colored())
        return cls(full, max(width, _WIDTH_MIN) if width else None, is_colored)

    def echo(self, lines: Iterable[Line]) -> None:
        """Print lines, each in its colour, within the width."""
        for line, color in lines:
            for fitted in self._fitted(visible(line)):
                click.echo(click.style(fitted, fg=color) if color else fitted, color=self.color)

    def _fitted(self, line: str) -> list[str]:
        if self.width is None or len(line) <= self.width:
            return [line]
        indent = " " * (len(line) - len(line.lstrip()))
        hanging = f"{indent}  " if len(indent) > 2 else " " * 14  # noqa: PLR2004 - below its label
        return textwrap.wrap(
            line, self.width, subsequent_indent=hanging, break_on_hyphens=False
        ) or [line]


def show(order: str, plan: Plan, shape: Shape | None, screen: Screen | None = None) -> None:
    """Print a plan to stdout."""
    screen = screen or Screen.of()
    if shape == "json":
        emit_json("orderkit.plan/v1", {"order": order, **plan_document(plan).to_json()})
    elif shape == "markdown":
        click.echo(to_markdown(plan))
    else:
        screen.echo([(f"{order}: {plan.summary}", "")])
        screen.echo(lines_of(plan, screen))


def show_within(plan: Plan | None, why_not: str) -> None:
    """Print the plan of a change whose fields have been told."""
    screen = Screen.of()
    if plan is None:
        screen.echo([(f"  no plan     {why_not}", "yellow")])
    else:
        screen.echo([(f"  plan        {plan.summary}", "")])
        screen.echo(_lines(plan, screen))


def draw(plan: Plan, file: Path) -> None:
    """
    Write the graph of a plan: as SVG, as Mermaid, or as Markdown with Mermaid in it.

    Raises:
        InvalidInputError: The file's name has another ending.
        NotFoundError: It cannot be written.
    """
    from orderkit.core.plan.graph import graph_of, to_mermaid
    from orderkit.core.plan.graph_svg import to_svg

    check_drawable(file)
    graph = graph_of(plan)
    if file.suffix == ".svg":
        text = to_svg(graph)
    else:
        text = to_mermaid(graph)
        text = f"```mermaid\n{text}```\n" if file.suffix == ".md" else text
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NotFoundError(
            f"{file} cannot be written: {error.strerror}", hint="choose another --graph"
        ) from error


def check_drawable(file: Path) -> None:
    """
    Check that a graph can be written into a file of this name, before anything is planned.

    Raises:
        InvalidInputError: Its ending says nothing we can draw.
    """
    if file.suffix not in {".svg", ".mmd", ".md"}:
        raise InvalidInputError(
            "--graph",
            str(file),
            "has no known picture format",
            hint="plan.svg, plan.mmd or plan.md",
        )


def lines_of(plan: Plan, screen: Screen) -> Iterator[Line]:
    """Yield a plan, the order's own fields first."""
    yield from ((f"  {_field(field, screen)}", "") for field in plan.fields)
    yield from _lines(plan, screen)


def _lines(plan: Plan, screen: Screen) -> Iterator[Line]:
    yield from _live_state(plan, screen)
    for changes in _folded(plan.changes, screen):
        yield from _resources(changes, screen)
    yield from _settings(plan, screen)
    for field in plan.status:
        yield f"  status.{_field(field, screen, prefix=10)}", ""
    for fault in plan.faults:
        yield f"  refused     {fault.where}{': ' if fault.where else ''}{fault.message}", "red"
        if fault.hint:
            yield f"              {fault.hint}", ""
    yield from _dangers(plan)
    for text in plan.unknowns:
        yield f"  not known   {text}", "yellow"
    if plan.costs is not None:
        yield from _costs(plan.costs, screen)
    if len(plan.waves) > 1:
        yield "  in order    " + "; then ".join(", ".join(wave) for wave in plan.waves), ""
    yield from _end(plan)


def _end(plan: Plan) -> Iterator[Line]:
    """Yield who has to approve it first, and how the order ends up."""
    if plan.approval:
        yield f"  approval    by {plan.approval}", "yellow"
    if not plan.faults:
        yield f"  in the end  {plan.readiness}", ""


def _dangers(plan: Plan) -> Iterator[Line]:
    for danger in plan.dangers:
        yield f"  danger      {danger.message} ({danger.code})", "red"
    for accepted in plan.accepted:
        yield f"  accepted    {accepted.danger.message}: {accepted.reason}", ""


def _settings(plan: Plan, screen: Screen) -> Iterator[Line]:
    """Yield the settings that change, with their layers; in full also those that stay."""
    changes = plan.settings if screen.full else plan.settings[:_FIELDS_MAX]
    for change in changes:
        yield f"  setting     {_field(change.field, screen, prefix=14)} ({change.decision})", ""
    if len(plan.settings) > len(changes):
        hidden_count = len(plan.settings) - len(changes)
        yield f"              and {hidden_count} more settings (--full shows them)", ""
    if screen.full:
        changing = {change.field.path for change in changes}
        for path in sorted(plan.after.settings.keys() - changing):
            setting = plan.after.settings[path]
            yield f"  setting     {path} {whole(setting.value)} (layer: {setting.layer})", ""


def _live_state(plan: Plan, screen: Screen) -> Iterator[Line]:
    yield from ((f"  paused      {text}", "red") for text in plan.paused.values())
    for path, text in plan.after.pinned.items():
        yield f"  pinned      {path or 'order'}: {text}", "yellow"
    for drift in plan.drift:
        yield f"  drift       {drift.message}", "yellow"
        for field in drift.fields[: None if screen.full else _FIELDS_MAX]:
            yield f"              {_field(field, screen, prefix=14)}", ""


def _costs(costs: Costs, screen: Screen) -> Iterator[Line]:
    yield f"  costs       {costs.sums}", ""
    cost_lines = list(changed_lines(costs))
    if screen.full:
        cost_lines = [(None, line) for line in costs.after.lines]
    for old, new in cost_lines:
        line = new or old
        if line is None:
            continue
        sums = " → ".join(cost_line.reckoned for cost_line in (old, new) if cost_line)
        gone_note = " (no more)" if new is None else ""
        remarks = "".join(
            f"; {remark}" for remark in ("up to" * line.up_to, line.assumes) if remark
        )
        yield f"      {line.path or 'order'}: {line.title} {sums}{gone_note}{remarks}", ""
    if costs.after.unpriced:
        yield f"  not priced  {', '.join(costs.after.unpriced)}", "yellow"
    yield from ((f"  not known   costs: {text}", "yellow") for text in costs.after.unread)
    yield f"  prices      {costs.table.origin}", "yellow" if costs.table.stale else ""


def _folded(changes: Sequence[ResourceChange], screen: Screen) -> Iterator[list[ResourceChange]]:
    """Yield groups of neighbouring changes that are equal, to be shown as one."""
    for _, run in groupby(changes, key=_sameness):
        equal = list(run)
        if len(equal) < _EQUAL_MIN or screen.full:
            yield from ([change] for change in equal)
        else:
            yield equal


def _sameness(change: ResourceChange) -> tuple[str, ...]:
    kind = str(change.manifest.get("kind"))
    return (change.action.value, kind, *map(repr, change.fields))


def _resources(changes: Sequence[ResourceChange], screen: Screen) -> Iterator[Line]:
    first, color = changes[0], _COLORS[changes[0].action]
    if len(changes) == 1:
        yield f"  {first.action.sign} {key_text(first.manifest)}   {first.path}", color
    else:
        yield f"  {first.action.sign} {len(changes)} of kind {first.manifest['kind']}", color
        yield "      " + ", ".join(change.path for change in changes), ""
    if screen.full and first.action in {Action.ADDED, Action.REMOVED}:
        text = dump_block(shown_manifest(first.manifest))
        yield from ((f"      {line}", "") for line in text.splitlines())
    if first.action in {Action.CHANGED, Action.REPLACED}:
        yield from _fields(first.fields, screen)


def _fields(fields: Sequence[FieldDifference], screen: Screen) -> Iterator[Line]:
    fields_shown = fields if screen.full else fields[:_FIELDS_MAX]
    for field in fields_shown:
        yield f"      {_field(field, screen, prefix=6)}", ""
    if len(fields) > len(fields_shown):
        yield f"      and {len(fields) - len(fields_shown)} more fields (--full shows them)", ""


def _field(field: FieldDifference, screen: Screen, *, prefix: int = 2) -> str:
    if screen.full:
        return f"{field.label} {whole(field.old)} → {whole(field.new)}"
    text = str(field)
    room = (screen.width or len(text) + prefix) - prefix
    if len(text) <= room:
        return text
    limit_each = max(8, (room - len(field.label) - 4) // 2)
    old, new = shown_pair(field.old, field.new, limit=limit_each)
    return f"{field.label} {old} → {new}"


_FLEET_FIELDS_MAX, _FOLDS_MAX, _UNREAD_MAX = 8, 40, 20


def show_fleet(
    fleet: FleetPlan, shape: Literal["json", "markdown"] | None, screen: Screen | None = None
) -> None:
    """Print a plan to stdout."""
    if shape == "json":
        # megabytes, which no person reads: with line breaks it takes ten times as long to write
        emit_json("orderkit.fleet-plan/v1", fleet_json(fleet), indent=None)
    elif shape == "markdown":
        say(fleet_markdown(fleet))
    else:
        screen = screen or Screen.of()
        screen.echo(_fleet_lines(fleet, screen))


_FOLD_LEADS = (
    ("fault", "refused     ", "red"),
    ("standing-fault", "as before   refused by both packs: ", "yellow"),
    ("danger", "danger      ", "red"),
    ("accepted", "accepted    by the kit: ", ""),
    ("paused", "paused      ", "yellow"),
    ("pinned", "not affected: pinned: ", "yellow"),
)
"""Categories of folds that are a sentence, in the order shown; how a line begins; its colour."""


def _fleet_lines(fleet: FleetPlan, screen: Screen) -> Iterator[Line]:
    yield f"{', '.join(fleet.kits)}: {fleet.summary}", ""
    yield f"  from        {fleet.base.title}", ""
    yield f"  to          {fleet.candidate.title}", ""
    all_folds = folds(fleet)
    for category, lead, color in _FOLD_LEADS:
        for fold in of_categories(all_folds, category):
            code = f" ({fold.code})" if fold.code else ""
            yield f"  {lead}{fold.title}{code}: {_orders(fold)}", color
    for change in fleet.defaults:
        step = f"{change.path} {shown(change.old)} → {shown(change.new)}"
        keep = f"{counted(change.orders)} keep the old value; only new orders get the new one"
        yield f"  default     {step}: {keep}", "yellow"
    yield from _changes(of_categories(all_folds, "resource", "field", "status"), screen)
    yield from _unread(fleet, screen)
    unread = {order_plan.order for order_plan in fleet.of(OrderVerdict.UNKNOWN)}
    for fold in of_categories(all_folds, "unknown"):
        if not unread.issuperset(fold.orders):
            yield f"  not known   {fold.title}: {_orders(fold)}", "yellow"
    if (costs := fleet.costs) is not None:
        yield from _fleet_costs(costs, screen)
    for text in fleet.notes:
        yield f"  note        {text}", ""
    yield f"  in          {fleet.read_s:.1f} s reading, {fleet.planned_s:.1f} s planning", ""


def _fleet_costs(costs: FleetCosts, screen: Screen) -> Iterator[Line]:
    yield f"  costs       {costs.summary}", ""
    if costs.unpriced:
        yield f"  not priced  {', '.join(costs.unpriced)}", "yellow"
    unread_shown = costs.unread if screen.full else costs.unread[:_UNREAD_MAX]
    yield from ((f"  not known   costs: {text}", "yellow") for text in unread_shown)
    if len(costs.unread) > len(unread_shown):
        count_hidden = len(costs.unread) - len(unread_shown)
        yield f"  not known   costs: {count_hidden:,} more amounts (--full names them)", "yellow"
    table = costs.sums.table
    yield f"  prices      {table.origin}", "yellow" if table.stale else ""


def _orders(fold: Fold) -> str:
    return f"{counted(fold.count)} ({fold.examples()})"


def _changes(change_folds: tuple[Fold, ...], screen: Screen) -> Iterator[Line]:
    folds_shown = change_folds if screen.full else change_folds[:_FOLDS_MAX]
    for fold in folds_shown:
        path_prefix = {"field": "spec.", "status": "status."}.get(fold.category, "")
        color = _COLORS[fold.action] if fold.action else ""
        sign = fold.action.sign if fold.action else "~"
        if fold.category != "resource":
            yield f"  ~ {path_prefix}{fold.fields[0]}   {_orders(fold)}", color
            continue
        yield f"  {sign} {fold.title}   {_orders(fold)}", color
        fields = fold.fields if screen.full else fold.fields[:_FLEET_FIELDS_MAX]
        yield from ((f"      {field}", "") for field in fields)
        if len(fold.fields) > len(fields):
            yield f"      and {len(fold.fields) - len(fields)} more fields (--full shows them)", ""
    if len(change_folds) > len(folds_shown):
        yield f"  and {len(change_folds) - len(folds_shown)} more changes (--full shows them)", ""


def _unread(fleet: FleetPlan, screen: Screen) -> Iterator[Line]:
    missing = fleet.of(OrderVerdict.UNKNOWN)
    plans_shown = missing if screen.full else missing[:_UNREAD_MAX]
    for order_plan in plans_shown:
        yield f"  no plan     {order_plan.order}: {order_plan.why_not}", "red"
    if len(missing) > len(plans_shown):
        yield (
            f"  no plan     of {len(missing) - len(plans_shown):,} more orders (--full names them)",
            "red",
        )
