"""``orderkit backup`` and ``orderkit restore``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import (
    PathOption,
    connect_to,
    json_option,
    platform_option,
    requester_option,
)
from orderkit.cli.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit.ports.mirrors import Mirrors

_FOLDER = click.argument("folder", metavar="DIR", type=PathOption(file_okay=False))


@click.command("backup", short_help="Copy the platform's repositories into a folder.")
@_FOLDER
@platform_option
@json_option
def backup_command(folder: Path, platform_file: str | None, as_json: bool) -> int:
    """
    Copy the pack, the ledger and all orders' repositories into DIR.

    DIR gets bare git repositories and backup.yaml. Repeating it copies what is new. Nothing of the
    platform is changed.

    Example: orderkit backup /var/backups/orderkit
    """
    from orderkit import __version__
    from orderkit.flows.install import backing_up

    platform, mirrors = connect_to(platform_file), _mirrors(folder, platform_file)
    done = backing_up.back_up(platform, mirrors, release=__version__)
    count = len(done.backup.repositories)
    if as_json:
        from orderkit.cli.output import emit_json

        emit_json(
            "orderkit.backup/v1",
            {
                "folder": str(folder),
                "taken": done.backup.taken,
                "repositories": count,
                "failures": list(done.failures),
            },
        )
    else:
        say(f"{count} repositories in {folder}, as of {done.backup.taken}")
    done.check()
    return 0


@click.command("restore", short_help="Bring repositories back from a backup.")
@_FOLDER
@click.option("--repository", metavar="OWNER/NAME", default="", help="Only this one. Default: all.")
@click.option(
    "--accept",
    metavar="CODE",
    default="",
    help="Let Argo CD go on: the code of the report that you read.",
)
@click.option(
    "--ended",
    metavar="ORDER",
    multiple=True,
    help="This order ended after the backup and is not made again. Repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Name the repositories. Nothing is written.")
@requester_option
@platform_option
@json_option
def restore_command(
    folder: Path,
    repository: str,
    accept: str,
    ended: tuple[str, ...],
    dry_run: bool,
    requester: str,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Write the repositories that the forge lacks, from the backup in DIR.

    Argo CD is held meanwhile. If the cluster is newer than the backup, a report says what differs
    and what would happen, the exit code is 10, and Argo CD stays held until --accept.

    Example: orderkit restore /var/backups/orderkit
    """
    from ground.errors import EXIT_DIFFERS
    from orderkit.cli.output import Progress, emit_json
    from orderkit.cli.views.restore_views import show_restored
    from orderkit.flows.install import restoring

    platform, mirrors = connect_to(platform_file), _mirrors(folder, platform_file)
    request = restoring.RestoreRequest(requester, repository, accept, ended, dry_run=dry_run)
    progress = Progress(enabled=None if as_json else True)
    done = restoring.restore(platform, mirrors, request, on_step=progress)
    if as_json:
        emit_json("orderkit.restore/v1", done.to_json())
    else:
        show_restored(done, folder, dry_run=dry_run)
    return EXIT_DIFFERS if done.held else 0


def _mirrors(folder: Path, platform_file: str | None) -> Mirrors:
    from pathlib import Path

    from orderkit.adapters.folders.git_mirrors import GitMirrors
    from orderkit.cli.connecting import forge_login, load_settings

    settings = load_settings(platform_file)
    user, password = forge_login(settings)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca_file = settings.forge.ca_file
    return GitMirrors(folder, user, password, Path(ca_file) if ca_file else None)
