"""
A plan as Markdown: a pull request's body or comment, and what a portal shows.

It begins with a one-line summary, then lists dangers, then every resource in a collapsed section.
Limited in length, because a forge cuts long bodies: what does not fit is left out and counted.
Values are written as code, and nothing in them can end the code or mention a user.
"""

from __future__ import annotations

from collections.abc import Iterator

from ground.objects.values import shown_pair
from ground.visible_text import visible
from orderkit.core.order.change import ABSENT, FieldDifference, shown
from orderkit.core.plan.assembly import key_text
from orderkit.core.plan.comparison import Action, Plan, ResourceChange, shown_manifest
from orderkit.core.plan.cost import CostLine, Costs, changed_lines
from orderkit.core.plan.dangers.danger_codes import AcceptedPlanDanger
from yamlfiles import yaml11

MAX_CHARACTERS = 30_000
"""Of a whole plan. Gitea stores 65,535 bytes of a pull request's text in some databases."""
_FIELDS_MAX, _COSTS_MAX = 40, 60


def to_markdown(plan: Plan) -> str:
    """Return the plan as Markdown, at most about `MAX_CHARACTERS` long. Deterministic."""
    parts = [f"**Plan: {plan.summary}.**{_readiness(plan)}"]
    parts += _list("It needs approval by:", (plan.approval,) if plan.approval else ())
    parts += _list("Paused:", tuple(plan.paused.values()))
    parts += _list("Not by the newest Composition:", tuple(plan.after.pinned.values()))
    parts += _list("Not as it should be now:", (drift.message for drift in plan.drift))
    parts += _list("It would be refused:", (_fault(plan, number) for number in _faults(plan)))
    parts += _list(
        "Dangers:", (f"`{d.path or 'order'}` {d.message} ({d.code})" for d in plan.dangers)
    )
    parts += _list("Accepted by the kit:", map(_accepted, plan.accepted))
    parts += _list("Not known:", plan.unknowns)
    settings = plan.settings[:_FIELDS_MAX]
    parts += _list("Settings:", (f"{change.field} ({change.decision})" for change in settings))
    parts += _bounded([_resource(change) for change in plan.changes])
    parts += _costs(plan.costs) if plan.costs else []
    if len(plan.waves) > 1:
        waves = (", ".join(map(cell, wave)) for wave in plan.waves)
        parts += ["In this order: " + "; then ".join(waves) + "."]
    return "\n\n".join(parts)


def _readiness(plan: Plan) -> str:
    readiness_text = {
        "Ready": " The order is Ready in the end.",
        "Paused": " The order is paused: nothing of this happens until it is resumed.",
        "not known": " Whether the order is Ready in the end is not known.",
    }
    is_refused = bool(plan.faults) and plan.readiness == "Ready"
    return "" if is_refused else readiness_text.get(plan.readiness, "")


def _costs(costs: Costs) -> list[str]:
    """Return the cost section: lines that change, their calculation, kinds without a price."""
    table = costs.table
    rows = [_cost_row(old, new) for old, new in changed_lines(costs)][:_COSTS_MAX]
    rows = ["\n".join(["| What | From | To | |", "|---|---|---|---|", *rows])] if rows else []
    remarks = (
        [f"Not priced: {plain_line(', '.join(costs.after.unpriced))}."]
        if costs.after.unpriced
        else []
    )
    remarks += _list("Not calculated:", costs.after.unread)
    source = plain_line(f"Prices: {table.origin}.")
    body = "\n\n".join([*rows, *remarks, source])
    summary = f"<summary>Costs: {costs.sums}</summary>"
    return [f"<details>{summary}\n\n{body}\n\n</details>"]


def _cost_row(old: CostLine | None, new: CostLine | None) -> str:
    line = new or old
    assert line is not None  # noqa: S101 - one of them is there
    sums = [cell(line_side.reckoned if line_side else ABSENT) for line_side in (old, new)]
    label = cell(f"{line.path or 'order'}: {line.title}")
    remarks = "; ".join(filter(None, ("up to" if line.up_to else "", line.assumes)))
    return f"| {label} | {sums[0]} | {sums[1]} | {plain_line(remarks).replace('|', ' ')} |"


def _faults(plan: Plan) -> range:
    return range(len(plan.faults))


def _fault(plan: Plan, number: int) -> str:
    fault = plan.faults[number]
    hint = f"; {fault.hint}" if fault.hint else ""
    return f"`{fault.where or 'pipeline'}` {fault.message} ({fault.code}){hint}"


def _accepted(accepted: AcceptedPlanDanger) -> str:
    danger = accepted.danger
    return f"`{danger.path or 'order'}` {danger.message} ({danger.code}): {accepted.reason}"


def _list(title: str, lines: Iterator[str] | tuple[str, ...]) -> list[str]:
    rows = [f"- {plain_line(line)}" for line in lines]
    return ["\n".join([title, "", *rows])] if rows else []


def plain_line(text: str) -> str:
    """Keep a sentence on one line and free of mentions, links and HTML."""
    flat = visible(" ".join(text.split())).replace("<", "&lt;")
    return flat.replace("@", "@\u200b").replace("](", "]\u200b(")


def _bounded(resources: list[str]) -> list[str]:
    kept: list[str] = []
    room = MAX_CHARACTERS
    for number, text in enumerate(resources):
        room -= len(text)
        if room < 0:
            return [*kept, f"{len(resources) - number} more resources are not shown here."]
        kept.append(text)
    return kept


def _resource(change: ResourceChange) -> str:
    title = f"{change.action.sign} {key_text(change.manifest)}"
    if change.fields and change.action is not Action.ADDED and change.action is not Action.REMOVED:
        body = _table(change.fields)
    else:
        body = _fenced(yaml11.dump(shown_manifest(change.manifest)))
    head = f"<code>{in_html(title)}</code> {change.action} ({in_html(change.path)})"
    return f"<details><summary>{head}</summary>\n\n{body}\n\n</details>"


def in_html(text: str) -> str:
    """Write a text into a line of HTML inside Markdown."""
    return plain_line(text.replace("&", "&amp;"))


def _table(fields: tuple[FieldDifference, ...]) -> str:
    rows = [f"| {cell(f.path)} | {_values(f)} |" for f in fields[:_FIELDS_MAX]]
    hidden_count = len(fields) - _FIELDS_MAX
    rows += [f"| and {hidden_count} more | | |"] if hidden_count > 0 else []
    return "\n".join(["| Field | From | To |", "|---|---|---|", *rows])


def _values(difference: FieldDifference) -> str:
    pair = shown_pair(difference.old, difference.new)
    pairs = zip((difference.old, difference.new), pair, strict=True)
    return " | ".join(cell(value if value is ABSENT else text) for value, text in pairs)


def cell(value: object) -> str:
    """Write a value into a cell of a Markdown table."""
    text = shown(value).replace("|", "\\|").replace("`", "'")
    return text if value is ABSENT else f"`{text}`"


def _fenced(text: str) -> str:
    text, fence = visible(text), "```"
    while fence in text:
        fence += "`"
    return f"{fence}yaml\n{text.rstrip()}\n{fence}"
