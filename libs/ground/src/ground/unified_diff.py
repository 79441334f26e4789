"""Write the difference of two files as ``diff -u`` does."""

from __future__ import annotations

import difflib

__all__ = ["unified_diff"]


def unified_diff(before: bytes | None, after: bytes | None, old: str, new: str) -> str:
    """
    Return the unified diff of two files; empty if they are the same.

    Args:
        before: None: there is no such file.
        old: What the header calls the file before, and `new` the one after.
    """
    lines = difflib.unified_diff(_lines(before), _lines(after), old, new)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(data: bytes | None) -> list[str]:
    lines = (data or b"").decode(errors="replace").split("\n")
    terminated_lines = [f"{line}\n" for line in lines[:-1]]
    return [*terminated_lines, lines[-1]] if lines[-1] else terminated_lines
