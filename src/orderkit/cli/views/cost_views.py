"""How statements look: as text for people, as CSV, or as one JSON object."""

from __future__ import annotations

import csv
import sys

from orderkit.cli.output import emit_json, emit_table, say
from orderkit.core.plan.cost_statement import (
    CSV_HEAD,
    Statement,
    StatementSum,
    cents,
    csv_row,
    moment,
)

_HEAD = ("TEAM", "KIT", "ORDERS", "HOURS", "COST", "UP TO", "NOT KNOWN")
_HOUR_S = 3_600


def show_statement(statement: Statement, *, as_json: bool) -> None:
    """Show sums, and what they do not contain."""
    if as_json:
        emit_json("orderkit.cost/v1", statement.answer.to_json())
        return
    say(f"from {moment(statement.begin)} up to {moment(statement.end)}")
    sums = statement.sums
    if not sums:
        say("no orders", err=True)
        return
    emit_table(_HEAD, [_cells(line) for line in sums], {})
    for currency in sorted({line.currency for line in sums if line.currency}):
        amounts = [line.amount for line in sums if line.currency == currency]
        say(f"together: {cents(sum(amounts, start=amounts[0] * 0))} {currency}")
    for line in sums:
        who = f"{line.team}, {line.kit}"
        for text in [*line.reasons][:3]:
            say(f"  not known   {who}: {text}")
        for text in line.stale:
            say(f"  old prices  {who}: {text}")
        if line.claimed_s:
            say(
                f"  claimed     {who}: {_hours(line.claimed_s)} hours after merges, or pushes "
                "that bypassed Orderkit, whose times are those that Git says"
            )
    for measured in statement.measured:
        say(f"  measured    {measured.order}: {measured.title} {measured.value}, as of now")


def print_csv(statement: Statement) -> None:
    """Print each interval as a line."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    writer.writerows(map(csv_row, statement.intervals))


def _cells(line: StatementSum) -> tuple[str, ...]:
    is_known = line.unknown_s < line.seconds
    least = "at least " * bool(line.partly_s or line.unknown_s)
    return (
        line.team,
        line.kit or "-",
        str(len(line.orders)),
        _hours(line.seconds),
        f"{least}{cents(line.amount)} {line.currency}" if is_known else "not known",
        f"{cents(line.up_to)} {line.currency}" if line.up_to else "-",
        f"{_hours(line.unknown_s)} hours" if line.unknown_s else "-",
    )


def _hours(seconds: int) -> str:
    return f"{seconds / _HOUR_S:,.2f}"
