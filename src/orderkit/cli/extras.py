"""
What other distributions bring: commands, and the embedded platform for tests of packs.

They are found by entry points, never imported by name, so `orderkit` installs and runs without
them. ``orderkit.commands`` has click commands by their names, ``orderkit.platforms`` what
`StandIns` describes. Where a distribution is missing, the error names the extra that brings it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import click

from ground.errors import UsageError
from orderkit.cli.command_list import EXTRA_OF

if TYPE_CHECKING:
    from ground.objects.kube_objects import Kind
    from orderkit.ports.forge import Forge

COMMANDS, PLATFORMS = "orderkit.commands", "orderkit.platforms"
_EMBEDDED = "embedded"
_EXTRA_OF_MODULE = {
    **dict.fromkeys(("itsdangerous", "jwt", "starlette", "uvicorn"), "service"),
    "mcp": "mcp",
    "opentelemetry": "traces",
}
"""The modules that an extra of this distribution brings, and that commands import as they run."""


class MissingExtraError(UsageError):
    """What is asked for comes with a distribution that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} comes with the extra '{extra}', which is not installed",
            hint=f"pip install 'orderkit[{extra}]'",
        )


class StandIns(Protocol):
    """What the distribution behind the extra ``embedded`` does for other commands."""

    def running_catalog(self, forge: Forge) -> AbstractContextManager[tuple[str, str]]:
        """Run a catalog on the loopback until the block ends; hand out its URL and its token."""

    def serves(self, kind: Kind) -> bool:
        """Return whether the embedded cluster serves a kind of Kubernetes' own."""


def command(name: str) -> click.Command:
    """Return a command that another distribution brings; if it is missing, one that says so."""
    loaded = _loaded(COMMANDS, name)
    return _refusing(name, EXTRA_OF[name]) if loaded is None else cast("click.Command", loaded)


def stand_ins() -> StandIns | None:
    """Return what runs a catalog for a moment; None if the extra ``embedded`` is missing."""
    return cast("StandIns | None", _loaded(PLATFORMS, _EMBEDDED))


def missing_extra(error: BaseException) -> MissingExtraError | None:
    """Return what an import that failed needs; None if no extra brings it."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    extra = _EXTRA_OF_MODULE.get(name.partition(".")[0])
    return MissingExtraError(f"the library {name}", extra) if extra else None


def _loaded(group: str, name: str) -> object | None:
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        return cast("object", entry.load())
    return None


def _refusing(name: str, extra: str) -> click.Command:
    """Return a command that takes everything and refuses: `--help` and Tab go on without it."""

    def refuse(**_: Any) -> NoReturn:
        raise MissingExtraError(f"orderkit {name}", extra)

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
