"""
Print one result: data to stdout, everything else to stderr.

``--json`` prints one stable object with a ``schema`` field. Progress goes to stderr, one line
a step, and only for people: on a terminal, unless ``--json``. Colours are for terminals too.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import click

from ground.errors import InvalidInputError, OrderkitError, SeveralProblemsError, shorten
from ground.secrets import redact
from ground.visible_text import visible

Row = tuple[str, ...]
Colors = Mapping[int, Callable[[str], str]]
WAITING = "… "
"""How a summary begins that says what is waited for."""
_WAITING_STEP = "waiting"
_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)
_NO_COLORS: Colors = {}
_GAP = "   "
_COLUMNS, _LINES = 80, 24
_WRAPPED_MIN = 24
"""Columns below which a last column is not worth wrapping."""
_PHASE_COLORS = {
    "Ready": "green",
    "Attention": "yellow",
    "Failing": "red",
    "Waiting": "yellow",
    "Written": "cyan",
    "Delivering": "cyan",
    "Assembling": "cyan",
    "Ending": "magenta",
    "Ended": "bright_black",
}


def say(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print a text that may hold words of strangers: terminals and runners must not obey them."""
    _line.clear()
    click.echo(_inert(visible(text)), nl=nl, err=err)


def _inert(text: str) -> str:
    """Return a text without lines such as ``::name::``, commands to runners of GitHub and Gitea."""
    return _COMMAND.sub(r"\1: :", text) if "::" in text else text


def emit_json(schema: str, value: dict[str, Any], *, indent: int | None = 2) -> None:
    """Print one JSON object; `schema` is for example ``orderkit.order/v1``."""
    say(as_json({"schema": schema, **value}, indent=indent))


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that stdout can hold: all readers expect UTF-8, whatever the locale."""
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    is_ascii = encoding != "utf-8"
    if indent:
        import msgspec  # lazy: heavy

        # Python indents in Python, which takes four times as long. Not JSON, and left to it: half
        # of a surrogate pair, and what is no number.
        with contextlib.suppress(UnicodeEncodeError, msgspec.DecodeError):
            return msgspec.json.format(json.dumps(value, ensure_ascii=is_ascii), indent=indent)
    return json.dumps(value, indent=indent, ensure_ascii=is_ascii)


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
    if not is_terminal(stream):
        return None
    text = os.environ.get("COLUMNS", "")
    if text.isdigit() and int(text):
        return int(text)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (ValueError, OSError):
        return None


def emit_table(
    head: Row,
    rows: Sequence[Row],
    colors: Colors = _NO_COLORS,
    *,
    has_head: bool = True,
    last_below: bool = False,
) -> None:
    """
    Print rows in columns as wide as their widest cell; trailing blanks are cut.

    In a narrow terminal the last column wraps between words. Where that leaves it no room, each row
    is a paragraph with one line a cell.

    Args:
        colors: By the number of a column, the colour of a cell's text.
        has_head: Print the names of the columns too.
        last_below: Before rows become paragraphs, put the last cell below the others.
    """
    lines = table_lines(head, rows, colors, has_head=has_head, last_below=last_below)
    say_colored("\n".join(lines))


def table_lines(
    head: Row,
    rows: Sequence[Row],
    colors: Colors = _NO_COLORS,
    *,
    has_head: bool = True,
    last_below: bool = False,
) -> list[str]:
    """Return the lines that `emit_table` prints, the head first, with colours."""
    rows = [tuple(visible(" ".join(cell.split("\n"))) for cell in row) for row in rows]
    widths = [max(columns_of(row[column]) for row in (head, *rows)) for column in range(len(head))]
    columns = terminal_columns(sys.stdout)
    if columns is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > columns:
        room = columns - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
        if room < _WRAPPED_MIN:
            if last_below and sum(widths[:-1]) + len(_GAP) * (len(widths) - 2) <= columns:
                shown = head if any(row[-1] for row in rows) else (*head[:-1], "")
                lines = _with_last_below(shown, rows, columns, colors)
                return lines if has_head else lines[1 + bool(shown[-1]) :]
            return list(_paragraphs(head, rows, columns, colors))
        widths[-1] = room
    lines = []
    for number, (*cells, last) in enumerate((head, *rows)):
        for line, text in enumerate(_wrapped(last, widths[-1] if columns else 0)):
            texts = [*(cells if line == 0 else [""] * len(cells)), text]
            padded = [
                _colored(cell, (colors if number else _NO_COLORS).get(column))
                + " " * (widths[column] - columns_of(cell)) * (column < len(cells))
                for column, cell in enumerate(texts)
            ]
            lines.append(_GAP.join(padded).rstrip())
    return lines if has_head else lines[1:]


def _with_last_below(head: Row, rows: Sequence[Row], columns: int, colors: Colors) -> list[str]:
    """Return a table whose last cells, where there are some, stand below their rows."""
    short = table_lines(head[:-1], [row[:-1] for row in rows], colors)
    lines: list[str] = []
    for line, row in zip(short, (head, *rows), strict=True):
        lines += [line, *(f"  {part}" for part in _wrapped(row[-1], columns - 2) if part)]
    return lines


def _paragraphs(head: Row, rows: Sequence[Row], columns: int, colors: Colors) -> Iterator[str]:
    indent = max(map(len, head))
    for number, row in enumerate(rows):
        if number:
            yield ""
        for column, (name, cell) in enumerate(zip(head, row, strict=True)):
            for line, text in enumerate(_wrapped(cell, max(columns - indent - 2, 1))):
                label = name if line == 0 else ""
                yield f"{label:<{indent}}  {_colored(text, colors.get(column))}".rstrip()


@contextlib.contextmanager
def screen() -> Iterator[None]:
    """Use the terminal's other screen meanwhile: what was there before comes back."""
    click.echo("\033[?1049h", nl=False, color=True)
    try:
        yield
    finally:
        click.echo("\033[?1049l", nl=False, color=True)
        sys.stdout.flush()


def draw_screen(lines: Sequence[str]) -> None:
    """Draw visible lines from the top of the screen; the last one says how many have no room."""
    height = max(os.get_terminal_size(sys.stdout.fileno()).lines or _LINES, 2)
    shown = list(lines)
    if len(shown) >= height:
        shown = [*shown[: height - 2], f"… and {len(lines) - height + 2} more lines"]
    context = click.get_current_context(silent=True)
    if colored() is False or (context and context.color is False):
        shown = [click.unstyle(line) for line in shown]
    _line.clear()
    # K clears the rest of a line, H goes to the top of the screen, J clears the rest of it
    text = "".join(f"{line}\033[K\n" for line in shown)
    click.echo(f"\033[H{text}\033[J", nl=False, color=True)
    sys.stdout.flush()


def draws_in_place(stream: TextIO | None) -> bool:
    """Say whether a stream goes to a terminal that understands where to draw."""
    return is_terminal(stream) and os.environ.get("TERM", "dumb") != "dumb"


def is_lost(stream: TextIO | None) -> bool:
    """Say whether nobody reads a stream any more (see ``cli.main``)."""
    return stream is None or getattr(getattr(stream, "file", None), "failure", None) is not None


def emit_fields(pairs: Sequence[tuple[str, str]]) -> None:
    """
    Print named values below each other; in a terminal, long ones wrap in their column.

    A value without a name continues the one before.
    """
    columns = terminal_columns(sys.stdout)
    indent = min(max([10, *(columns_of(name) for name, _ in pairs)]), (columns or _COLUMNS) // 2)
    for name, value in pairs:
        room = max(columns - indent - 4, 1) if columns else 0
        lines = [part for line in visible(value).split("\n") for part in _wrapped(line, room)]
        for number, line in enumerate(lines):
            say(f"  {name if number == 0 else '':<{indent}}  {line}".rstrip())


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap between words; long words stay whole: they can be copied. Width 0: never."""
    import textwrap

    if not width or columns_of(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters take two."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def cut_in_middle(text: str, room: int, mark: str = "…") -> str:
    """
    Return a text that fits: its middle is left out, between words where that is near.

    The beginning says whose line it is, the end why. Both matter more than the names between them.
    """
    if columns_of(text) <= room:
        return text
    rest = max(room - columns_of(mark), 0)
    begin, end = _fitting(text, rest - rest // 3), _fitting(text[::-1], rest // 3)[::-1]
    near = end.find(" ")
    if 0 <= near < len(end) // 3:
        begin, end = _fitting(text, rest - columns_of(end[near:])), end[near:]
    return f"{begin}{mark}{end}"


def _fitting(text: str, room: int) -> str:
    """Return the longest beginning of a text that fits."""
    while text and columns_of(text) > room:
        text = text[:room] if len(text) > room else text[:-1]
    return text


def phase_color(phase: str) -> str:
    """Return the colour of a phase; empty: none."""
    return _PHASE_COLORS.get(phase.split(" ", maxsplit=1)[0], "")


def _colored(text: str, color: Callable[[str], str] | None) -> str:
    return in_color(text, color(text)) if color else text


def in_color(text: str, color: str) -> str:
    """Return a visible text in a colour, if there is one; print it with `say_colored`."""
    return click.style(text, fg=color) if color else text


def say_colored(text: str) -> None:
    """Print a text that is visible already, with colours if stdout is a terminal."""
    _line.clear()
    click.echo(_inert(text), color=colored())


class Progress:
    """
    Say on stderr what has just been done, with the seconds since the start.

    A summary that begins with `WAITING` is what is waited for. In a terminal that is one line,
    which is drawn again; elsewhere, a line for each change.
    """

    def __init__(self, *, enabled: bool | None = None) -> None:
        self._enabled = is_terminal(sys.stderr) if enabled is None else enabled
        self._begin_s = time.monotonic()
        self._last: tuple[str, str] | None = None

    def __call__(self, step: str, summary: str) -> None:
        if not self._enabled:
            return
        is_waiting = summary.startswith(WAITING)
        elapsed = f"{time.monotonic() - self._begin_s:6.2f} s"
        if is_waiting and draws_in_place(sys.stderr):
            _line.draw(f"{elapsed}  {f'{step:<14} ' * (step != _WAITING_STEP)}{summary}")
        elif not is_waiting or self._last != (step, summary):
            _line.clear()
            label = click.style(f"{step:<14}", bold=True)
            text = " ".join(visible(summary).split("\n"))
            click.echo(f"{elapsed}  {label} {text}", err=True, color=colored())
        self._last = (step, summary)

    @property
    def on_wait(self) -> Callable[[str], None] | None:
        """What says what is waited for; None: nobody would see it."""
        return (lambda reason: self(_WAITING_STEP, f"{WAITING}{reason}")) if self._enabled else None


class _TransientLine:
    """A line of the terminal behind stderr that the next output replaces."""

    def __init__(self) -> None:
        self._is_drawn = False

    def draw(self, text: str) -> None:
        """Show a text in place of the line before; what does not fit into the window is cut."""
        encoding = sys.stderr.encoding or "utf-8"
        text = " ".join(visible(text).split("\n"))
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        room = (terminal_columns(sys.stderr) or _COLUMNS) - 1
        text = cut_in_middle(text, room, "…" if "…".encode(encoding, "ignore") else "")
        click.echo(f"\r{text}\033[K", nl=False, err=True, color=True)
        sys.stderr.flush()
        self._is_drawn = True

    def clear(self) -> None:
        """Remove the line; anything else may be printed then."""
        if self._is_drawn:
            self._is_drawn = False
            click.echo("\r\033[K", nl=False, err=True, color=True)
            sys.stderr.flush()


_line = _TransientLine()


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether somebody looks at a stream; one that is closed is none."""
    return stream is not None and not stream.closed and stream.isatty()


def colored() -> bool | None:
    """
    Return what click wants to know: None means colours on a terminal only, or as its context says.

    NO_COLOR, a dumb terminal and ``--no-color`` mean none.
    """
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if is_plain else None
