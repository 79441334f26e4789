"""
The entry point: answers ``--help`` and ``--version`` itself and leaves all else to ``cli.root``.

Both must stay within five times bare Python, and click's import alone takes more than three. So
this module imports nothing but the list of commands.
"""

from __future__ import annotations

import sys

from orderkit import __version__


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; return the exit code (see ``core.errors``)."""
    try:
        text = _quick_answer(arguments)
        if text is None:
            from orderkit.cli.root import invoke

            return invoke(arguments)
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _swallow_output()
    except KeyboardInterrupt:  # while modules are imported; later `cli.root` answers
        sys.stderr.write("interrupted before anything was done\n")
        return 130
    return 0


def _quick_answer(arguments: list[str]) -> str | None:
    """Return what is printed for ``--help`` and ``--version``; None: ask click."""
    if arguments in (["--help"], ["-h"]):
        from orderkit.cli.command_list import help_text

        return help_text()
    return f"orderkit, version {__version__}\n" if arguments == ["--version"] else None


def _swallow_output() -> None:
    """The reader closed the pipe; do not fail again while flushing."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
