"""What a terminal shows of a restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orderkit.cli.output import emit_table, say

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit.flows.install.restoring import Restored


def show_restored(done: Restored, folder: Path, *, dry_run: bool) -> None:
    """Show the report, and what to type next."""
    verb = "would be written" if dry_run else "written"
    say(f"{len(done.written)} repositories {verb}, as of {done.backup.taken}")
    if dry_run:
        for name in done.written:
            say(f"  {name}")
        return
    if done.rows:
        emit_table(
            ("WHAT", "FOUND", "IF YOU ACCEPT"),
            [(row.name, row.what, row.on_accept) for row in done.rows],
        )
        for row in done.rows:
            if row.otherwise:
                say(f"{row.name}, otherwise: {row.otherwise}")
    if not done.held and done.rows and not done.is_new_cluster:
        say("Accepted: Argo CD delivers again.")
    if done.held:
        say("Argo CD delivers nothing until you accept this report:")
        say(f"  orderkit restore {folder} --accept {done.code}")
    elif done.is_new_cluster:
        say("The cluster delivers nothing of the platform yet: orderkit bootstrap")
