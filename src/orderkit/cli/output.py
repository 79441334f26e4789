"""
Print one result: data to stdout, everything else to stderr.

``--json`` prints one stable object with a ``schema`` field. Progress goes to stderr, one line
a step, and only for people: on a terminal, unless ``--json``.
"""

from __future__ import annotations

import codecs
import json
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

import click

from orderkit.core.errors import (
    InvalidInputError,
    OrderkitError,
    SeveralProblemsError,
    shorten,
)
from orderkit.core.secrets import redact
from orderkit.core.visible_text import visible

Row = tuple[str, ...]


def say(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print a text that may hold words of strangers: terminals must not obey them."""
    click.echo(visible(text), nl=nl, err=err)


def emit_json(schema: str, value: dict[str, Any], *, indent: int | None = 2) -> None:
    """Print one JSON object; `schema` is for example ``orderkit.order/v1``."""
    say(as_json({"schema": schema, **value}, indent=indent))


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that stdout can hold: all readers expect UTF-8, whatever the locale."""
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    return json.dumps(value, indent=indent, ensure_ascii=encoding != "utf-8")


def emit_error(error: OrderkitError) -> None:
    """
    Print an error as the object of a command's ``--json``.

    Invalid input has ``field``, ``value`` and ``rule`` too; of several problems, each has.
    """
    details = _details(error)
    details["exitCode"] = error.exit_code
    if isinstance(error, SeveralProblemsError):
        details["problems"] = [_details(problem) for problem in error.problems]
    text = json.dumps({"schema": "orderkit.error/v1", "error": details}, indent=2)
    say(redact(text))


def _details(error: OrderkitError) -> dict[str, Any]:
    details: dict[str, Any] = {"message": str(error), "hint": error.hint}
    if isinstance(error, InvalidInputError):
        details |= {"field": error.field, "value": shorten(repr(error.value)), "rule": error.rule}
    return details


def say_wrapped(text: str) -> None:
    """Print a sentence to stderr; in a narrow terminal, between words. Long words stay whole."""
    import textwrap

    columns = terminal_columns(sys.stderr)
    lines = text.splitlines() or [""]
    if columns is not None:
        lines = [
            part
            for line in lines
            for part in textwrap.wrap(
                line,
                columns,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
                replace_whitespace=False,
            )
            or [""]
        ]
    say("\n".join(lines), err=True)


def terminal_columns(stream: TextIO) -> int | None:
    """Return the width of the terminal that a stream goes to, or ``COLUMNS``; None: no terminal."""
    import os

    if not stream.isatty():
        return None
    text = os.environ.get("COLUMNS", "")
    if text.isdigit() and int(text):
        return int(text)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (ValueError, OSError):
        return None


def emit_table(head: Row, rows: Sequence[Row]) -> None:
    """
    Print rows in columns as wide as their widest cell; trailing blanks are cut.

    Where the terminal is too narrow, each row is a paragraph with one line a cell.
    """
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    columns = terminal_columns(sys.stdout)
    if columns is not None and sum(widths) + 3 * (len(widths) - 1) > columns:
        for number, row in enumerate(rows):
            say(nl=number > 0)
            for name, cell in zip(head, row, strict=True):
                _say_cell(name, cell, max(map(len, head)), columns)
        return
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("   ".join(cells).rstrip())


def _say_cell(name: str, cell: str, indent: int, columns: int) -> None:
    """Print one cell with its column's name before it, wrapped between words."""
    import textwrap

    width = max(columns - indent - 2, 1)
    first, *more = textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
    say(f"{name:<{indent}}  {first}".rstrip())
    for line in more:
        say(f"{'':<{indent}}  {line}")


class Progress:
    """Say on stderr what has just been done, with the seconds since the start."""

    def __init__(self, *, enabled: bool | None = None) -> None:
        self._enabled = sys.stderr.isatty() if enabled is None else enabled
        self._begin_s = time.monotonic()

    def __call__(self, step: str, summary: str) -> None:
        if self._enabled:
            elapsed_s = time.monotonic() - self._begin_s
            label = click.style(f"{step:<14}", bold=True)
            text = f"{elapsed_s:6.2f} s  {label} {visible(summary)}"
            click.echo(text, err=True, color=colored())


def colored() -> bool | None:
    """Return what click wants to know: colour on a terminal only, and never with NO_COLOR."""
    import os

    return False if os.environ.get("NO_COLOR") else None
