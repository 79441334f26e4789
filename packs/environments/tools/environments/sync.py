"""
Publish a built front end: ``python -m environments.sync DIST s3://BUCKET[/PREFIX]``.

The page is whole at every moment. Files go up in stages (see `Stage`), index.html last. Then, and
only if all of them are there, what the build no longer has is removed. Killed or failed at any
point, the same command goes on: what is there with the right hash and headers is not sent again.
Objects that this tool did not upload stay, unless ``--delete-foreign`` says otherwise.

Exit codes: 0 done, 1 nothing was changed, 2 wrong arguments, 5 partly done (run it again).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TypeVar

import click

from environments.files import BuildError, BuiltFile, Stage, built_files, printable
from environments.store import Store, StoreError

T = TypeVar("T")
WORKERS = 16
_TARGET = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")
_SHOWN_EVERY_S = 0.2
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """What a bucket needs to hold a build."""

    uploads: tuple[BuiltFile, ...]
    unchanged: int
    obsolete: tuple[str, ...]
    foreign: tuple[str, ...]
    """Objects that are not of the build and that were not uploaded with this tool."""


def plan_sync(store: Store, files: Sequence[BuiltFile], pool: ThreadPoolExecutor) -> Plan:
    """
    Compare a build with its bucket; nothing is written.

    Raises:
        StoreError: The bucket cannot be read.
    """
    sizes = store.sizes()
    keys = [file.key for file in files if sizes.get(file.key) == file.size_bytes]
    stored = dict(zip(keys, pool.map(store.stored, keys), strict=True))
    uploads = tuple(
        file
        for file in files
        if (stored_object := stored.get(file.key)) is None or not stored_object.has(file)
    )
    surplus = sorted(sizes.keys() - {file.key for file in files})
    ours = {
        key
        for key, stored_object in zip(surplus, pool.map(store.stored, surplus), strict=True)
        if stored_object is not None and stored_object.sha256
    }
    return Plan(
        uploads,
        len(files) - len(uploads),
        tuple(key for key in surplus if key in ours),
        tuple(key for key in surplus if key not in ours),
    )


@dataclass(slots=True)
class Progress:
    """What was done; on a terminal one line that changes, elsewhere a line for each file."""

    of: int
    uploaded: int = 0
    uploaded_bytes: int = 0
    deletes: bool = False
    _lock: Lock = field(default_factory=Lock)
    _shown_at: float = 0.0

    def add(self, file: BuiltFile) -> None:
        """Count an uploaded file. Safe for several threads."""
        with self._lock:
            self.uploaded += 1
            self.uploaded_bytes += file.size_bytes
            if not sys.stderr.isatty():
                line = f"{self.uploaded}/{self.of} {printable(file.key)}"
                click.echo(f"{line} ({_readable(file.size_bytes)})", err=True)
            elif self.uploaded == self.of or monotonic() - self._shown_at > _SHOWN_EVERY_S:
                self._shown_at = monotonic()
                line = f"{self.uploaded}/{self.of} files, {_readable(self.uploaded_bytes)}"
                click.echo(f"\r\x1b[K{line}", nl=self.uploaded == self.of, err=True)


def _readable(size_bytes: float) -> str:
    if size_bytes < _KIB:
        return f"{size_bytes:.0f} B"
    for unit in ("KiB", "MiB"):
        size_bytes /= _KIB
        if size_bytes < _KIB:
            return f"{size_bytes:.1f} {unit}"
    return f"{size_bytes / _KIB:.1f} GiB"


def carry_out(
    store: Store, plan: Plan, delete: Sequence[str], pool: ThreadPoolExecutor, progress: Progress
) -> None:
    """
    Upload stage by stage, each only once the one before it is complete; then delete.

    Raises:
        StoreError: Something was refused; nothing was deleted unless `progress` says so.
    """

    def upload(file: BuiltFile) -> None:
        store.put(file)
        progress.add(file)

    for stage in Stage:
        _do_all(pool, upload, [file for file in plan.uploads if file.stage is stage])
    progress.deletes = bool(delete)
    store.delete(delete)


def _do_all(pool: ThreadPoolExecutor, work: Callable[[T], None], items: Iterable[T]) -> None:
    """Do work for all items; the first failure stops what has not begun, and is raised."""
    futures = [pool.submit(work, item) for item in items]
    finished, waiting = wait(futures, return_when=FIRST_EXCEPTION)
    for future in waiting:
        future.cancel()
    wait(waiting)
    for future in finished:
        future.result()


def _target(_: click.Context, __: click.Parameter, value: str) -> tuple[str, str]:
    """Return bucket and prefix."""
    match = _TARGET.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{printable(value)} is not s3://BUCKET or s3://BUCKET/PREFIX")
    prefix = (match[2] or "").strip("/")
    return match[1], f"{prefix}/" if prefix else ""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("dist", type=click.Path(path_type=Path))
@click.argument("target", metavar="s3://BUCKET[/PREFIX]", callback=_target)
@click.option("--endpoint-url", metavar="URL", help="A server of the S3 API other than AWS.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@click.option("--no-delete", is_flag=True, help="Keep files that the build no longer has.")
@click.option(
    "--delete-foreign", is_flag=True, help="Also remove objects that this tool did not upload."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with a schema field.")
def sync(
    dist: Path,
    target: tuple[str, str],
    endpoint_url: str | None,
    *,
    dry_run: bool,
    no_delete: bool,
    delete_foreign: bool,
    as_json: bool,
) -> None:
    """
    Publish the front end in DIST: only changed files, index.html last.

    What the build no longer has is removed after that. Safe to repeat at any time.

    Example: python -m environments.sync dist s3://acme-mfe-staging-shop
    """
    progress = Progress(0)
    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            files = built_files(dist, target[1])
            store = Store(*target, endpoint_url=endpoint_url, workers=WORKERS)
            plan = plan_sync(store, files, pool)
            obsolete = () if no_delete else plan.obsolete
            delete = obsolete + (plan.foreign if delete_foreign else ())
            progress.of = len(plan.uploads)
            if not dry_run:
                carry_out(store, plan, delete, pool, progress)
        except (BuildError, StoreError) as error:
            sys.exit(_failed(str(error), progress))
    if as_json:
        click.echo(json.dumps(_document(plan, delete, dry_run=dry_run)))
    else:
        _report(target, plan, delete, dry_run=dry_run)


def _failed(why: str, progress: Progress) -> int:
    click.echo(f"error: {why}", err=True)
    if not progress.uploaded and not progress.deletes:
        return 1
    deletion_note = "not everything obsolete was" if progress.deletes else "nothing was"
    summary = (
        f"{progress.uploaded} of {progress.of} files were uploaded, and {deletion_note} deleted"
    )
    click.echo(f"  {summary}: run it again", err=True)
    return 5


def _document(plan: Plan, delete: Sequence[str], *, dry_run: bool) -> dict[str, object]:
    return {
        "schema": "environments.sync/v1",
        "dryRun": dry_run,
        "uploaded": [file.key for file in plan.uploads],
        "unchanged": plan.unchanged,
        "deleted": list(delete),
        "foreign": [key for key in plan.foreign if key not in delete],
    }


def _report(target: tuple[str, str], plan: Plan, delete: Sequence[str], *, dry_run: bool) -> None:
    if dry_run:
        for file in plan.uploads:
            click.echo(f"+ {printable(file.key)}  {file.content_type}  {file.cache_control}")
        for key in delete:
            click.echo(f"- {printable(key)}")
    would = "would be " if dry_run else ""
    click.echo(
        f"s3://{target[0]}/{printable(target[1])}: {len(plan.uploads)} {would}uploaded, "
        f"{plan.unchanged} unchanged, {len(delete)} {would}deleted"
    )
    foreign = [key for key in plan.foreign if key not in delete]
    if foreign:
        click.echo(
            f"  {len(foreign)} that this tool did not upload stay, such as "
            f"{printable(foreign[0])}; --delete-foreign removes them"
        )


if __name__ == "__main__":
    sync()
