"""
The command line's root, and the one place where errors become exit codes.

Modules of this package import click and nothing heavy. Each command parses, calls one flow, prints
one result.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import click

from ground import errors
from orderkit import __version__
from orderkit.cli import extras
from orderkit.cli.command_list import COMMANDS, EPILOG, EXTRA_OF, FORMER, READING, SUMMARY
from orderkit.cli.options import no_color_option

_COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_SERVING = ("serve", "up", "mcp")
"""Commands whose requests are traces, and not the command itself."""


class _Lazy(click.Group):
    """Import a command's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        import importlib

        cmd_name = FORMER.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in EXTRA_OF:
            return extras.command(cmd_name)
        module = importlib.import_module(f"orderkit.cli.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:  # click looks only at commands that are imported
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=SUMMARY,
    epilog=" ".join(EPILOG),
)
@click.version_option(__version__, prog_name="orderkit")
@no_color_option
def root() -> None:
    """Choose a command."""


def invoke(arguments: list[str]) -> int:
    """Run one command; return the exit code (see ``ground.errors``)."""
    try:
        with _traced(arguments):
            code = root.main(arguments, prog_name="orderkit", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - the last line of defence
        error = _explained(raised, arguments)
        if "--json" in arguments:
            from orderkit.cli.output import emit_error

            emit_error(error)
        return error.exit_code
    return code if isinstance(code, int) else errors.EXIT_DONE


@contextlib.contextmanager
def _traced(arguments: list[str]) -> Iterator[None]:
    """Record the command as a trace, if the environment names a collector for OpenTelemetry."""
    if not any(map(os.environ.get, _COLLECTORS)):
        yield
        return
    from orderkit.adapters.open_telemetry import OpenTelemetryRecorder
    from orderkit.core import telemetry

    name = next((word for word in arguments if word in COMMANDS), "orderkit")
    recorder = OpenTelemetryRecorder(__version__)
    telemetry.record_with(recorder)
    try:
        with contextlib.nullcontext() if name in _SERVING else telemetry.root_span(name, {}):
            yield
    finally:
        telemetry.record_with(None)
        recorder.close()


class _InterruptedError(errors.OrderkitError):
    exit_code = errors.EXIT_INTERRUPTED


class _BugError(errors.OrderkitError):
    exit_code = errors.EXIT_BUG


def _explained(raised: BaseException, arguments: list[str]) -> errors.OrderkitError:
    """Say on stderr what went wrong; return it as an error with its exit code."""
    if isinstance(raised, click.ClickException):
        raised.show()
        return errors.UsageError(raised.format_message())
    if isinstance(raised, KeyboardInterrupt | click.exceptions.Abort):
        return _said(_InterruptedError("interrupted", hint=_after_interrupt(arguments)))
    if isinstance(raised, OSError) and raised.filename is not None:
        return _said(_file_error(raised))
    if isinstance(raised, errors.OrderkitError):
        return _said(raised)
    missing = extras.missing_extra(raised)
    return _said(missing) if missing else _said_bug()


def _after_interrupt(arguments: list[str]) -> str:
    """Say what an interrupt left behind; a command that only reads leaves nothing."""
    if not arguments or arguments[0] in (*READING, *EXTRA_OF):
        return ""
    return "Orderkit undid nothing; the same command continues from the last step that was written"


def _file_error(error: OSError) -> errors.OrderkitError:
    """Return what is wrong with a file or folder of this machine, and what to do."""
    import errno

    hints = {
        errno.ENOSPC: "free some space on that disk",
        errno.ENOENT: "check the path",
        errno.EISDIR: "name a file",
        errno.ENOTDIR: "name a folder",
    }
    may_not = "choose a place that you may write to, or change its permissions"
    message = f"{error.filename}: {(error.strerror or str(error)).lower()}"
    return errors.OrderkitError(message, hint=hints.get(error.errno or 0, may_not))


def _said(error: errors.OrderkitError) -> errors.OrderkitError:
    from ground.secrets import redact
    from orderkit.cli.output import say_wrapped

    say_wrapped(redact(f"error: {error}"))
    if error.hint:
        say_wrapped(redact(f"hint:  {error.hint}"))
    return error


def _said_bug() -> errors.OrderkitError:
    import traceback

    from ground.secrets import redact
    from orderkit.cli.output import say

    say(redact(traceback.format_exc()), err=True)
    return _said(_BugError("this is a bug in Orderkit; please report the lines above"))
