"""Options that several commands share, and how they reach a platform."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit.flows.platform import Platform

F = TypeVar("F", bound=Callable[..., Any])


class PathOption(click.Path):
    """A path as ``pathlib`` knows it, which is imported once there is one, not for help."""

    def coerce_path_result(self, value: str | os.PathLike[str]) -> Path:
        from pathlib import Path

        return Path(value)


platform_option = click.option(
    "--platform",
    "platform_file",
    envvar="ORDERKIT_PLATFORM",
    metavar="FILE",
    help="The platform's platform.yaml. Default: the one that 'orderkit up' wrote.",
)
function_option = click.option(
    "--function",
    "function_texts",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Run this Composition function at that address (gRPC without TLS). Repeatable.",
)
size_limit_option = click.option(
    "--size-limit",
    "size_limit",
    metavar="MIB",
    type=click.IntRange(1, 4096),
    callback=lambda _context, _option, mib: (mib or 0) << 20,
    help="How much may be held in memory: half of it may be rendered, of one file an eighth. "
    "Files that are only copied from this machine do not count.  [default: 32 MiB]",
)


def _checked_shards(_context: click.Context, _option: click.Parameter, shards: int) -> int:
    from orderkit.core.campaign.cluster_jobs import checked_shards

    return checked_shards(shards)


shards_option = functools.partial(
    click.option, "--shards", type=click.IntRange(1), callback=_checked_shards
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object with a schema field."
)


def _without_color(context: click.Context, _option: click.Parameter, is_plain: bool) -> None:
    if is_plain:
        context.color = False


no_color_option = click.option(
    "--no-color",
    is_flag=True,
    expose_value=False,
    callback=_without_color,
    help="Print no colours; NO_COLOR in the environment does the same.",
)
requester_option = click.option(
    "--requester",
    callback=lambda _context, _option, reference: reference or default_requester(),
    metavar="REF",
    help="Who asks for it, as a catalog reference. Default: user:default/<your login>.",
)


profile_option = click.option(
    "--profile",
    default="service",
    show_default=True,
    metavar="service|plugin|natural",
    help="How a portal runs templates: by one request to the service, by the actions of Orderkit's"
    " plugin, or by their own steps.",
)


def _names(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


adopt_option = click.option(
    "--adopt",
    "adopted",
    metavar="NAME[,NAME]",
    multiple=True,
    callback=_names,
    help="Accept these owners, writers or keys of what exists on the forge already.",
)


def state_option(function: F) -> F:
    """Add ``--state``: the folder of an embedded platform."""
    return click.option(
        "--state",
        "state_folder",
        envvar="ORDERKIT_STATE",
        metavar="DIR",
        help="State folder of the embedded platform. Default: $XDG_STATE_HOME/orderkit.",
    )(function)


def _seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    from ground.errors import InvalidInputError
    from orderkit.core.durations import parse_duration

    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        try:
            return parse_duration(text, field="").total_seconds()
        except InvalidInputError:
            seconds = -1
    if not 0 <= seconds < float("inf"):
        raise click.BadParameter(f"{text!r} is not a duration, for example 90, 90s, 20m or 2h")
    return seconds


def duration_option(flag: str, name: str, default: str, text: str) -> Callable[[F], F]:
    """Add an option for a number of seconds, also as ``90s``, ``20m``, ``2h``."""
    return functools.partial(
        click.option(
            flag,
            name,
            callback=_seconds,
            default=default,
            show_default=True,
            metavar="DURATION",
            help=text,
        )
    )


def timeout_option(default: str) -> Callable[[F], F]:
    """Add ``--timeout``."""
    text = "How long to wait: seconds, or 90s, 20m, 2h."
    return duration_option("--timeout", "timeout_s", default, text)


def state_path(folder: str | None) -> Path:
    """Return the state folder: the given one, else the default."""
    from pathlib import Path

    from orderkit.adapters.state_folder import default_state

    return Path(folder).absolute() if folder else default_state()


def connect_to(platform_file: str | None, *, reads_only: bool = False) -> Platform:
    """
    Connect to the platform of a platform.yaml; None: the default one.

    Args:
        reads_only: The command neither writes nor waits, so it asks the forge each thing once.

    Raises:
        NotFoundError: Its platform.yaml is missing. InvalidInputError: it is broken.
    """
    from orderkit.cli.connecting import connect, load_settings

    platform = connect(load_settings(platform_file))
    if reads_only:
        platform.forge.remember()
    return platform


def default_requester() -> str:
    """Name the person at the terminal as a catalog reference. A claim, not a proof."""
    import getpass
    import re

    try:
        login = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has a number and no name
        login = "unknown"
    return f"user:default/{re.sub(r'[^A-Za-z0-9_.-]', '-', login)}"
