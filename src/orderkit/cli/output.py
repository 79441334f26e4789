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
from typing import Any

import click

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


def emit_table(head: Row, rows: Sequence[Row]) -> None:
    """Print rows in columns as wide as their widest cell; trailing blanks are cut."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("   ".join(cells).rstrip())


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
