"""
The command line's root, and the one place where errors become exit codes.

Modules of this package import click and nothing heavy. Each command parses, calls one flow, prints
one result. Called by ``cli.main``.
"""

from __future__ import annotations

import click

from orderkit import __version__
from orderkit.cli.command_list import COMMANDS, EPILOG, SUMMARY
from orderkit.core import errors


class _Lazy(click.Group):
    """Import a command's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        import importlib

        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"orderkit.cli.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

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
def root() -> None:
    """Choose a command."""


def invoke(arguments: list[str]) -> int:
    """Run one command; return the exit code (see ``core.errors``)."""
    try:
        code = root.main(arguments, prog_name="orderkit", standalone_mode=False)
    except errors.OrderkitError as error:
        return _failed(error)
    except click.ClickException as error:
        error.show()
        return errors.UsageError.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        return errors.EXIT_INTERRUPTED
    except Exception:  # noqa: BLE001 - the last line of defence
        return _bug()
    else:
        return code if isinstance(code, int) else errors.EXIT_DONE


def _failed(error: errors.OrderkitError) -> int:
    _say(f"error: {error}")
    if error.hint:
        _say(f"hint:  {error.hint}")
    return error.exit_code


def _say(text: str) -> None:
    from orderkit.cli.output import say
    from orderkit.core.secrets import redact

    say(redact(text), err=True)


def _bug() -> int:
    import traceback

    _say(traceback.format_exc())
    _say("error: this is a bug in Orderkit; please report the lines above")
    return errors.EXIT_BUG
