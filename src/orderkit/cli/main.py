"""
The entry point: answers ``--help`` and ``--version`` itself and leaves all else to ``cli.root``.

Both must stay within five times bare Python, and click's import alone takes more than three. So
this module imports nothing but the list of commands.

Output never makes a command fail: by the time it is printed, a commit may be written and a pull
request open. What the terminal's encoding lacks is escaped, and what cannot be written is dropped.
"""

from __future__ import annotations

import errno
import io
import sys

from orderkit import __version__

TYPE_CHECKING = False  # of one's own: importing typing for it takes as long as all else here
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_LOST, _INTERRUPTED = 1, 130


def main() -> None:
    """Run the command line and end the process with its exit code."""
    out = _tolerant(sys.stdout)
    err = _tolerant(sys.stderr)
    sys.stdout, sys.stderr = out or sys.stdout, err or sys.stderr
    arguments = sys.argv[1:]
    code = run(arguments)
    for stream in filter(None, (out, err)):
        stream.flush()
    sys.exit(_after_loss(arguments, code, out) if out else code)


def run(arguments: list[str]) -> int:
    """Run one command; return the exit code (see ``ground.errors``)."""
    try:
        text = _quick_answer(arguments)
        if text is None:
            # lazy: click's import alone takes more than three times as long as bare Python
            from orderkit.cli.root import invoke

            return invoke(arguments)
        if sys.stdout:
            sys.stdout.write(text)
    except KeyboardInterrupt:  # while modules are imported; later `cli.root` answers
        sys.stderr.write("interrupted before anything was done\n")
        return _INTERRUPTED
    return 0


def _quick_answer(arguments: list[str]) -> str | None:
    """Return what is printed for ``--help`` and ``--version``; None: ask click."""
    if arguments in (["--help"], ["-h"]):
        from orderkit.cli.command_list import help_text

        return help_text()
    return f"orderkit, version {__version__}\n" if arguments == ["--version"] else None


class _TolerantFile(io.FileIO):
    """A file that drops everything after the first failed write, and remembers the failure."""

    failure: OSError | None = None

    def write(self, data: ReadableBuffer) -> int:
        if self.failure is None:
            try:
                return super().write(data) or 0
            except OSError as error:
                # a commit may be written by now: what cannot be printed makes no command fail
                self.failure = error
        return memoryview(data).nbytes


class _TolerantText(io.TextIOWrapper):
    """A text stream that neither its encoding nor a full disk or a closed pipe can break."""

    def __init__(self, stream: TextIO) -> None:
        self.file = _TolerantFile(stream.fileno(), "w", closefd=False)
        super().__init__(
            io.BufferedWriter(self.file),
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def _tolerant(stream: TextIO | None) -> _TolerantText | None:
    """Return a stream to use instead; None if there is none, or it is not a file."""
    try:
        return _TolerantText(stream) if stream else None
    except (OSError, ValueError):
        return None


def _after_loss(arguments: list[str], code: int, out: _TolerantText) -> int:
    """Report output that was lost; a command that only reads has failed by that."""
    failure = out.file.failure
    if failure is None or failure.errno == errno.EPIPE:
        return code  # the reader of a pipe had enough
    from orderkit.cli.command_list import READING

    print(f"error: the output is incomplete: {failure.strerror}", file=sys.stderr)  # noqa: T201
    if arguments and arguments[0] in READING:
        return code or _LOST
    print(f"hint:  the command itself is over, with exit code {code}", file=sys.stderr)  # noqa: T201
    return code
