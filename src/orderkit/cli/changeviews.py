"""How changes of living orders look, for people or as one JSON object."""

from __future__ import annotations

import click

from orderkit.cli.output import emit_json
from orderkit.core.orderstate import short
from orderkit.flows.history import HistoryEntry
from orderkit.ports.forge import OPERATION_TRAILER, REASON_TRAILER


def show_history(order: str, entries: list[HistoryEntry], as_json: bool) -> None:
    """Show what happened to an order, newest first."""
    if as_json:
        told = {"order": order, "entries": [entry.to_json() for entry in entries]}
        emit_json("orderkit.history/v1", told)
        return
    for entry in entries:
        click.echo(f"{short(entry.commit.id)}  {entry.commit.when}  {entry.who}{_by_hand(entry)}")
        for line in _deeds(entry):
            click.echo(f"          {line}")


def _by_hand(entry: HistoryEntry) -> str:
    return "" if entry.commit.operation else " (by hand)"


def _deeds(entry: HistoryEntry) -> list[str]:
    if entry.unreadable:
        lines = [f"unreadable: {entry.unreadable}"]
    elif entry.first:
        lines = ["ordered", *(f"{f.path} {f.new_shown}" for f in entry.fields)]
    else:
        lines = [str(found) for found in entry.fields] or [f"no field: {entry.commit.summary}"]
    reason, operation = entry.said(REASON_TRAILER), entry.said(OPERATION_TRAILER)
    lines += [f"because {reason}"] if reason else []
    lines += [f"operation {operation}"] if operation else []
    return lines
