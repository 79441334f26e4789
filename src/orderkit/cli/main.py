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
    "up": ("platform", "Run the embedded platform until ctrl-C."),
    "bootstrap": ("bootstrap", "Set a platform up, or show the steps that this takes."),
    "doctor": ("doctor", "Report what is missing and what to do about it."),
    "demo": ("demo", "Run the whole cycle on a temporary platform."),
    "order": ("orders", "Order a kit and wait until it is Ready."),
    "register": ("orders", "Register an order whose repository exists already."),
    "adopt": ("orders", "Turn an existing repository or a live XR into an order."),
    "list": ("orders", "List all orders and their states."),
    "status": ("orders", "Show the state of one order, its commit and the reason."),
    "trace": ("orders", "Show an order's tree and what fails first."),
    "events": ("orders", "List the cluster's events about an order in the last hour."),
    "plan": ("plan", "Show what a change will do, down to composed resources."),
    "change": ("changes", "Change fields of a live order through Git."),
    "revert": ("changes", "Undo what one commit did to an order."),
    "history": ("changes", "Show who changed what in an order, and why."),
    "destroy": ("orders", "End an order and verify that nothing is left."),
    "team": ("team", "Manage teams: who may order, which kits and how much."),
    "kit": ("kit", "Create, generate, check and test the kits of a pack."),
    "init": ("init", "Start a pack: a repository for kits of your own."),
    "serve": ("serve", "Run the HTTP service for portals and programs."),
    "function": ("function", "Serve a pack's stations to Crossplane over gRPC."),
    "access": ("serve", "Let programs use the service."),
    "platform": ("platform", "Render, compare and upgrade a platform."),
    "validate": ("validate", "Validate files of orders as the API server will."),
    "edit": ("edit", "Edit values of a YAML file and leave every other byte alone."),
    "render": ("render", "Render a skeleton as the portal would, or check it."),
    "run": ("run", "Run a scaffolder template: a file, or a template of the pack."),
}
"""Each command's module and its line in ``--help``, which imports no command."""


class _Lazy(click.Group):
    """Import a command's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        import importlib

        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"orderkit.cli.commands.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


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
    """The reader closed the pipe; do not fail again while flushing."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return errors.EXIT_DONE
