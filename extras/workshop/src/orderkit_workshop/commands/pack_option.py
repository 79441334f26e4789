"""The option that names a pack's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from orderkit_workshop.folders.local_pack import LocalPack


def _local_pack(_context: click.Context, _option: click.Parameter, folder: str) -> LocalPack:
    from pathlib import Path

    from orderkit_workshop.folders.local_pack import LocalPack

    return LocalPack(Path(folder))


pack_option = click.option(
    "--pack",
    metavar="DIR",
    default=".",
    callback=_local_pack,
    help="The pack's folder. Default: the current folder.",
)
