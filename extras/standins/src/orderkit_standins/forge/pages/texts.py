"""
What of a file can be shown as text: its lines, bounded in number and length.

Changes have their own bounds in ``changes``.
"""

from __future__ import annotations

from dataclasses import dataclass

import pygit2

from orderkit_standins.forge.media_types import is_binary
from orderkit_standins.visible_html import decode, reorders

FILE_MAX_BYTES = 2 * 1024 * 1024
LINES_MAX = 5_000
"""Lines on one page; the next page shows the next ones."""
README_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Text:
    """One page of the lines of a file."""

    first: int
    lines: tuple[str, ...]
    total: int
    page: int
    pages: int
    crlf: bool
    final_newline: bool
    reorders: bool

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def text_page(data: bytes, page: int) -> Text:
    """Return one page of a text, counted from 1; a number beyond the last gives the last."""
    source = decode(data)
    lines = source.split("\n")
    final_newline = lines[-1] == ""
    if final_newline:
        lines.pop()
    crlf = bool(lines) and all(line.endswith("\r") for line in lines)
    pages = max((len(lines) + LINES_MAX - 1) // LINES_MAX, 1)
    page = min(max(page, 1), pages)
    page_lines = lines[(page - 1) * LINES_MAX : page * LINES_MAX]
    return Text(
        first=(page - 1) * LINES_MAX + 1,
        lines=tuple(line[:-1] if crlf else line for line in page_lines),
        total=len(lines),
        page=page,
        pages=pages,
        crlf=crlf,
        final_newline=final_newline,
        reorders=reorders(source),
    )


def readme_text(blob: pygit2.Blob) -> str:
    """Return a README, or empty if it is not text or too large."""
    if blob.size > README_MAX_BYTES or is_binary(blob.data):
        return ""
    return decode(blob.data).replace("\r\n", "\n")
