"""
What ``orderkit plan`` reads and writes on this machine: schemas, XRs, and recorded plans.

The pack's own ``schemas/`` is read with the pack.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ground.errors import InvalidInputError
from kubeschema.known import Layer, read_layer
from orderkit.core.plan.snapshot import PlanSnapshot, from_text, to_text

_SCHEMA_MAX_BYTES, _SNAPSHOT_MAX_BYTES = 20_000_000, 500_000_000
_SUFFIXES = {".yaml", ".yml", ".json"}


def read_schemas(folder: Path) -> Layer:
    """
    Read a folder of schemas: CRDs, XRDs, OpenAPI documents; other files are skipped.

    Raises:
        InvalidInputError: A link, a file beyond 20 MB, or one that cannot be read.
    """
    files: dict[PurePosixPath, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.suffix not in _SUFFIXES:
            continue
        if path.is_symlink() or path.stat().st_size > _SCHEMA_MAX_BYTES:
            raise InvalidInputError(
                str(path),
                None,
                "is a symbolic link, or larger than 20 MB",
                hint="--file FILE with a plain file of at most 20 MB",
            )
        files[PurePosixPath(path.relative_to(folder))] = path.read_bytes()
    return read_layer(files)


def manifest_files(folder: Path) -> Iterator[tuple[str, bytes | str]]:
    """Yield the name of every YAML and JSON file in a folder, and its bytes or why it has none."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES):
        name = path.relative_to(folder).as_posix()
        try:
            yield name, path.read_bytes()
        except OSError as error:
            yield name, f"cannot be read: {error.strerror}"


def save_snapshot(snapshot: PlanSnapshot, file: Path) -> None:
    """
    Write a snapshot, whole or not at all; only its owner may read it.

    Raises:
        InvalidInputError: The file cannot be written.
    """
    beside = file.with_name(f".{file.name}.new")
    try:
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(to_text(snapshot))
        beside.replace(file)
    except OSError as error:
        raise InvalidInputError(
            "--record",
            str(file),
            f"cannot be written: {error.strerror}",
            hint="--record FILE in a folder that you may write to",
        ) from error


def load_snapshot(file: Path) -> PlanSnapshot:
    """
    Read a snapshot.

    Raises:
        InvalidInputError: It cannot be read, is none, or of another version of the format.
    """
    try:
        if file.stat().st_size > _SNAPSHOT_MAX_BYTES:
            raise InvalidInputError(
                "--snapshot",
                str(file),
                "is larger than 500 MB",
                hint="record fewer orders: orderkit plan --kit KIT --team TEAM --record FILE",
            )
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            "--snapshot",
            str(file),
            f"cannot be read: {error}",
            hint="record it again: orderkit plan ORDER FIELD=VALUE --record FILE",
        ) from error
    return from_text(text, name=str(file))
