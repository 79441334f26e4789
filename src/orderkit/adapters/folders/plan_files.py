"""
Files of manifests on this machine, for ``orderkit plan`` and ``orderkit validate``.

A plan reads schemas and XRs, and reads and writes recorded plans. The pack's own ``schemas/`` is
read with the pack.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from ground.errors import InvalidInputError, UsageError
from kubeschema.known import Layer, read_layer
from kubeschema.validate.file_check import SourceFile
from orderkit.core.kit.model import Kit
from orderkit.core.order import order_file
from orderkit.core.order.order_check import SUFFIXES, OrderRepository
from orderkit.core.order.order_file import MANIFESTS, OrderFile
from orderkit.core.plan.snapshot import PlanSnapshot, from_text, to_text
from yamlfiles.manifests import DEFAULT_LIMITS


def sources(paths: Sequence[Path]) -> Iterator[SourceFile]:
    """
    Yield the files that are meant: each named one, and of folders all YAML and JSON.

    A folder with ``manifests/`` is an order's repository: only that is read. Symbolic links
    and hidden folders inside a folder are skipped.

    Raises:
        UsageError: A path does not exist.
    """
    for path in paths:
        if path.is_dir():
            root = path / MANIFESTS if (path / MANIFESTS).is_dir() else path
            yield from (_source(file, is_named=root != path) for file in _files(root))
        elif path.is_file():
            yield _source(path, is_named=True)
        else:
            raise UsageError(f"{path} does not exist", hint="give files or folders that exist")


def order_repository(folder: Path, kit: Kit, record: OrderFile) -> OrderRepository:
    """Return an order's repository as it lies in a folder; symbolic links are not followed."""

    def read(path: PurePosixPath) -> bytes | None:
        file = folder / path
        if file.is_symlink():
            return None
        with file.open("rb") as stream:
            # one byte more tells that it is larger
            return stream.read(DEFAULT_LIMITS.size_bytes + 1)

    files = (file for file in folder.rglob("*") if file.is_symlink() or file.is_file())
    paths = (PurePosixPath(file.relative_to(folder)) for file in files)
    own = sorted(path for path in paths if path.parts[0] != ".git")
    return OrderRepository(record.order, kit, own, read, folder)


def order_record(folder: Path) -> OrderFile | None:
    """
    Return the record of the order whose repository a folder is; None if it is none.

    Raises:
        InvalidInputError: The record cannot be read.
    """
    file = folder / order_file.PATH
    return order_file.parse(file.read_bytes(), name=str(file)) if file.is_file() else None


def _files(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*")):
        hidden = any(name.startswith(".") for name in file.relative_to(root).parts)
        plain = file.is_file() and not file.is_symlink()
        if file.suffix in SUFFIXES and plain and not hidden:
            yield file


def _source(path: Path, *, is_named: bool) -> SourceFile:
    size_bytes = path.stat().st_size
    data = path.read_bytes() if size_bytes <= DEFAULT_LIMITS.size_bytes else None
    return SourceFile(path, data, is_named=is_named)


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
        # made anew: what lies there could be a link, or readable to others
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
