"""
The command line's root, and the one place where errors become exit codes.

Modules of this package import click and nothing heavy: ``--help`` must stay within five times
bare Python. Each command parses, calls one flow, prints one result.
"""

from __future__ import annotations

import sys

import click

from orderkit import __version__
from orderkit.core import errors

_COMMANDS = {
    "up": "orderkit.cli.platform",
    "doctor": "orderkit.cli.doctor",
    "demo": "orderkit.cli.demo",
    "order": "orderkit.cli.orders",
    "list": "orderkit.cli.orders",
    "status": "orderkit.cli.orders",
    "trace": "orderkit.cli.orders",
    "destroy": "orderkit.cli.orders",
    "team": "orderkit.cli.team",
    "render": "orderkit.cli.render",
    "run": "orderkit.cli.run",
}
"""Where each command lives; ``<module>.<name>_command``."""


class _Lazy(click.Group):
    """Import a command's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        import importlib

        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(_COMMANDS[cmd_name])
        found: click.Command = getattr(module, f"{cmd_name}_command")
        return found


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Try it: 'orderkit up' in one terminal, "
    "'orderkit order garage team_name=ae86 stage=stage2' in another.",
)
@click.version_option(__version__, prog_name="orderkit")
def root() -> None:
    """Platform orders as files in Git, from a form to their proven end."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
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
    except BrokenPipeError:
        return _broken_pipe()
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
    from orderkit.core.secrets import redact

    click.echo(redact(text), err=True)


def _bug() -> int:
    import traceback

    _say(traceback.format_exc())
    _say("error: this is a bug in Orderkit; please report the lines above")
    return errors.EXIT_BUG


def _broken_pipe() -> int:
    """Whoever read our output has enough; do not fail again while flushing it."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return errors.EXIT_DONE
